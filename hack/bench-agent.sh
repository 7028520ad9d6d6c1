#!/usr/bin/env bash
# Prints what an agent costs: size, memory and CPU, idle and under load.
# The argument is the program to measure; "make build" builds bin/podagent.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$PWD/bin/podagent
[[ $# -eq 0 ]] || program=$(realpath "$1")
[[ -x $program ]] || { echo "$program is not there: run \"make build\"" >&2; exit 1; }
out=$(PODAGENT_BINARY=$program go test -count=1 -run '^$' -bench '^BenchmarkFootprint$' -benchtime 1x ./cmd/podagent 2>&1) ||
  { echo "$out" >&2; exit 1; }
grep '^agent_' <<<"$out" || { echo "$out" >&2; exit 1; }
