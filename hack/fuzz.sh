#!/usr/bin/env bash
# Runs every fuzz target of the module, each for as long as the first argument
# says, as many at a time as there are processors, and prints for each how many
# inputs were tried and how many of them were new. What a target finds is left in
# testdata/fuzz beside it. Further arguments are regular expressions of packages or
# targets; default: all.
#
# An input that is new is made smaller for a second: by default it would be for a
# minute, in which nothing else is tried.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:?usage: hack/fuzz.sh TIME [PATTERN...], for example hack/fuzz.sh 60s gateway}
shift
only=$(IFS='|'; echo "${*:-.}")

# fuzz PACKAGE TARGET runs one of them, as go test does in the package's folder.
fuzz() {
  local package=$1 target=$2 began=$SECONDS result=passed out last execs new
  out=$(cd "$package" && "$programs/$package/fuzz" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$each" \
    -test.fuzzminimizetime 1s -test.parallel 1 -test.fuzzcachedir "$corpus/$package" 2>&1) || result=FAILED
  # Before Go 1.27 a fuzzer may take the end of its own time for a failure
  # (go.dev/issue/75804). It names no input then.
  if grep -qx '    context deadline exceeded' <<<"$out" && ! grep -qE 'Failing input written|^panic:' <<<"$out"; then
    result=passed
  fi
  # The last line of the fuzzer's account: "fuzz: elapsed: 3s, execs: 9 (3/sec), new interesting: 1 (total: 4)".
  last=$(grep -o 'execs: [0-9]* .*new interesting: [0-9]* (total: [0-9]*)' <<<"$out" | tail -n 1 || true)
  execs=$(sed -n 's/^execs: \([0-9]*\).*/\1/p' <<<"$last")
  new=$(sed -n 's/.*interesting: \([0-9]*\).*/\1/p' <<<"$last")
  echo "fuzz=${package#./}.$target result=$result execs=${execs:-0} new=${new:-0} seconds=$((SECONDS - began))"
  [[ $result = passed ]] || { echo "$out" >&2; return 1; }
}
export -f fuzz
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
corpus=$(go env GOCACHE)/fuzz/$(go list -m)
export each programs corpus

targets=$(git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sort |
  sed -E 's|/[^/]*:func | |; s|^|./|' | awk -v only="$only" '($1 "." $2) ~ only')
ran=$(grep -c . <<<"$targets" || true)
if [[ $ran = 0 ]]; then
  echo "No fuzz target matches $only. One is called, for example, ./api/v1alpha1.FuzzDecode" >&2
  exit 1
fi
# One build after the other: two at a time would each compile what they share.
for package in $(cut -d ' ' -f 1 <<<"$targets" | sort -u); do
  mkdir -p "$programs/$package"
  go test -c -vet=off -fuzz . -ldflags '-s -w' -o "$programs/$package/fuzz" "$package"
done
result=passed
xargs -r -P "$(getconf _NPROCESSORS_ONLN)" -L 1 bash -euo pipefail -c 'fuzz "$@"' fuzz <<<"$targets" || result=FAILED
echo "fuzz_targets=$ran result=$result"
[[ $result = passed ]]
