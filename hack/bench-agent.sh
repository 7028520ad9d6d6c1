#!/usr/bin/env bash
# Prints what an agent costs: size, memory and CPU, idle and under load; and the size of windlass
# as it is released.
# The argument is the program to measure; "make build" builds bin/podagent.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$PWD/bin/podagent
[[ $# -eq 0 ]] || program=$(realpath "$1")
[[ -x $program ]] || { echo "$program is not there: run \"make build\"" >&2; exit 1; }
out=$(PODAGENT_BINARY=$program go test -count=1 -run '^$' -bench '^BenchmarkFootprint$' -benchtime 1x ./cmd/podagent 2>&1) ||
  { echo "$out" >&2; exit 1; }
grep '^agent_' <<<"$out" || { echo "$out" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$work/windlass" ./cmd/windlass
stat -c %s "$work/windlass" | awk '{ printf "windlass_binary_mb=%.2f goal<=80\n", $1 / 1e6 }'
