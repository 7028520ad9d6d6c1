#!/usr/bin/env bash
# Runs all attacks and prints what memory each came to, and how many came to nothing. Those
# on what the API server admits need the programs of make cluster-binaries.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT
go test -tags apiserver -count=1 -v -run '^TestAttacks$|^TestS9|^TestS14' ./test/attacks ./test/chart >"$out" 2>&1 || { cat "$out" >&2; exit 1; }

grep -oE '^(attack_heap_peak_mib|agent_resident_peak_mib|strangers_|attack_refused).*' "$out" | sort
grep -oE 'guessed=.*' "$out"
grep -E 'left out' "$out" || true
here=$(grep -oE '^attacks_refused=.*' "$out")
there=$(grep -c '^attack_refused{' "$out")
most=$(grep -oE '^attack_heap_peak_mib.*=[0-9]+' "$out" | sed 's/.*=//' | sort -n | tail -1)
echo "attacks_heap_peak_mib=$most limit=1024"
IFS=/ read -r refused all <<<"${here#*=}"
echo "attacks_refused=$((refused + there))/$((all + there))"
