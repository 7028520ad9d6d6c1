#!/usr/bin/env bash
# Runs the programs of an older commit together with those of this checkout, in the fault lab. Which
# commit, test/skew/baseline says: the last release or, before there is one, the last commit with another
# Function, other flags or another wire. Its programs are kept in .cache/skew.
set -euo pipefail
cd "$(dirname "$0")/../.."

commit=$(<test/skew/baseline)
older=$PWD/.cache/skew/$commit
if [ ! -x "$older/podagent" ]; then
  # Git's own words, because it also refuses a clone of another user.
  git cat-file -e "$commit^{commit}" || {
    echo "test/skew/baseline names the commit $commit, which this clone does not have or git does not show: if it is shallow, git fetch --unshallow" >&2
    exit 1
  }
  work=$(mktemp -d)
  trap 'git worktree remove --force "$work/tree" 2>/dev/null; rm -rf "$work"' EXIT
  git worktree add -q --detach "$work/tree" "$commit"
  for program in windlass podagent; do
    (cd "$work/tree" && CGO_ENABLED=0 go build -trimpath -buildvcs=false \
      -ldflags "-X github.com/windlass-dev/windlass/internal/buildinfo.Version=$(git describe --always "$commit")" \
      -o "$work/$program" "./cmd/$program")
  done
  mkdir -p "$older"
  mv "$work/windlass" "$older/windlass"
  mv "$work/podagent" "$older/podagent" # last, so that an interrupted build is built again
fi
go run ./test/faults -older "$older" "$@"
