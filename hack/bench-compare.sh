#!/usr/bin/env bash
# Measures the pure packages of this checkout, and compares them by benchstat with
#
#   COMMIT   that commit, whose tests are built in a worktree of their own. Both run in turn,
#            so that load and clock of the machine are the same for both;
#   stored   hack/bench-baseline.txt, which shows the trend;
#   store    nothing: it writes that file.
set -euo pipefail
cd "$(dirname "$0")/.."

usage="usage: hack/bench-compare.sh BENCHSTAT ROUNDS COMMIT|stored|store"
benchstat=${1:?$usage} rounds=${2:?$usage} with=${3:?$usage}
packages=(pkg/scheduler/core pkg/queue pkg/autoscaler pkg/provisioner/placement pkg/scheduler/capacity pkg/podagent/core pkg/gateway/core)
baseline=hack/bench-baseline.txt

work=$(mktemp -d)
clean() {
  [ ! -d "$work/base" ] || git worktree remove --force "$work/base"
  rm -rf "$work"
}
trap clean EXIT

# build SIDE: the tests of the checkout in $work/SIDE.dir, which may lack a package.
build() {
  local package
  for package in "${packages[@]}"; do
    if [ ! -d "$(cat "$work/$1.dir")/$package" ]; then
      echo "$package is not in $with: it is left out" >&2
      continue
    fi
    (cd "$(cat "$work/$1.dir")" && go test -c -trimpath -buildvcs=false -o "$work/$1-${package//\//-}" "./$package")
  done
}

# measure SIDE PACKAGE: one round, with one processor, which is what a core uses.
measure() {
  local tests=$work/$1-${2//\//-}
  [ -x "$tests" ] || return 0
  (cd "$(cat "$work/$1.dir")/$2" && "$tests" -test.run '^$' -test.bench . -test.benchtime 0.2s -test.benchmem -test.cpu 1) >>"$work/$1"
}

# processor FILE: of a file of measurements.
processor() { sed -n 's/^cpu: //p' "$1" | head -1; }

sides=(new)
pwd >"$work/new.dir"
case $with in
  stored) [ -e "$baseline" ] || { echo "there is no $baseline: run \"make bench-baseline\"" >&2; exit 1; } ;;
  store) ;;
  *)
    git worktree add --quiet --detach "$work/base" "$with"
    echo "$work/base" >"$work/old.dir"
    build old
    sides=(old new)
    ;;
esac
build new

for round in $(seq "$rounds"); do
  echo "round $round of $rounds" >&2
  for package in "${packages[@]}"; do
    for side in "${sides[@]}"; do measure "$side" "$package"; done
  done
  # Who runs second finds a warmer processor: they take turns.
  [ ${#sides[@]} = 1 ] || sides=("${sides[1]}" "${sides[0]}")
done

case $with in
  store)
    {
      echo "commit: $(git describe --always --dirty --abbrev=12)"
      echo "date: $(date -u +%F)"
      echo "go: $(go env GOVERSION)"
      grep -v '^PASS$' "$work/new"
    } >"$baseline"
    echo "wrote $baseline"
    ;;
  stored)
    cp "$baseline" "$work/old"
    here=$(processor "$work/new") there=$(processor "$baseline")
    echo "baseline: commit $(sed -n 's/^commit: //p' "$baseline"), $(sed -n 's/^date: //p' "$baseline"), $(sed -n 's/^go: //p' "$baseline"), on $there"
    if [ "$here" = "$there" ]; then
      echo "It was measured on such a processor, but not now: look at allocations and at large ratios only. BASE=COMMIT runs both in turn."
    else
      echo "This is another processor, $here: times cannot be compared, so each has a table of its own. BASE=COMMIT runs both here, in turn."
    fi
    (cd "$work" && "$benchstat" -ignore commit,date,go stored=old now=new)
    ;;
  *) (cd "$work" && "$benchstat" "$(git -C "$work/base" rev-parse --short HEAD)"=old now=new) ;;
esac
