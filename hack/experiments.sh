#!/usr/bin/env bash
# Runs every experiment of windlass sim at its quick size and prints its figures. Which
# goals are missed is written down in experiments-missed.txt; it fails if that is not
# what happens. The argument is the folder with recorded traces. Without it the goals that
# need traces, which have the word traces behind them, are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT
go run ./cmd/windlass sim all --quick --data "$1" >"$out"
grep -E '^[a-z0-9]+_[a-z0-9_]+=' "$out"
missed=$(sed -nE 's/^([a-z0-9]+_[a-z0-9_]+)=.*  MISSED.*/\1/p' "$out" | sort)
expected=$(sed 's/ traces$//' hack/experiments-missed.txt | sort)
if [ ! -d "$1" ]; then
  expected=$(sed '/ traces$/d' hack/experiments-missed.txt | sort)
  echo "There are no recorded traces in $1. Left out: $(sed -n 's/ traces$//p' hack/experiments-missed.txt | paste -sd ' ')" >&2
fi
if ! diff -u <(printf '%s' "${expected:+$expected$'\n'}") <(printf '%s' "${missed:+$missed$'\n'}"); then
  echo "Other goals are missed (+) or met (-) than hack/experiments-missed.txt says." >&2
  exit 1
fi
