#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, each for as long as
# the first argument says, and prints for each how many inputs were tried and how
# many of them were new. What a target finds is left in testdata/fuzz beside it.
# Further arguments are regular expressions of packages or targets; default: all.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:?usage: hack/fuzz.sh TIME [PATTERN...], for example hack/fuzz.sh 60s gateway}
shift
only=$(IFS='|'; echo "${*:-.}")

failed=0 ran=0
while IFS=: read -r file target; do
  package=./$(dirname "$file")
  [[ $package.$target =~ $only ]] || continue
  ran=$((ran + 1))
  began=$SECONDS
  if out=$(go test -run '^$' -fuzz "^$target\$" -fuzztime "$each" "$package" 2>&1); then
    result=passed
  else
    result=FAILED failed=$((failed + 1))
  fi
  # The last line of the fuzzer's account: "fuzz: elapsed: 3s, execs: 9 (3/sec), new interesting: 1 (total: 4)".
  last=$(grep -o 'execs: [0-9]* .*new interesting: [0-9]* (total: [0-9]*)' <<<"$out" | tail -n 1 || true)
  execs=$(sed -n 's/^execs: \([0-9]*\).*/\1/p' <<<"$last")
  new=$(sed -n 's/.*interesting: \([0-9]*\).*/\1/p' <<<"$last")
  echo "fuzz=${package#./}.$target result=$result execs=${execs:-0} new=${new:-0} seconds=$((SECONDS - began))"
  [[ $result = passed ]] || echo "$out" >&2
done < <(git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sed 's/:func /:/' | sort)

echo "fuzz_targets=$ran failed=$failed"
[[ $ran -gt 0 && $failed -eq 0 ]]
