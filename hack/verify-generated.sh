#!/usr/bin/env bash
# Generates code, CRDs, docs/metrics.md and docs/problems.md into a temporary folder and
# fails if the checkout differs from it: in a file's text, by a file too few, or by a file
# that nothing generates.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/generate.sh "$fresh"

generated() {
  (cd "$1" && {
    find api -name '*.pb.go' -o -name 'zz_generated.*.go'
    find config/crd charts/windlass/files/crds -name '*.yaml'
    printf '%s\n' docs/{metrics,problems}.md
    # Written by hand, but for the names that internal/listings puts into them.
    printf '%s\n' api/v1alpha1/template_types.go \
      charts/windlass/{values.schema.json,values.yaml,README.md} docs/{functions,glossary,manifest,runtimes}.md
  }) | sort
}

stale=0
for file in $( (generated .; generated "$fresh") | sort -u); do
  if [ ! -e "$fresh/$file" ]; then
    echo "$file: nothing generates it any more; remove it" >&2
    stale=1
  elif ! diff -u -N --label "$file" --label "$file (generated now)" "$file" "$fresh/$file"; then
    stale=1
  fi
done

if [ "$stale" != 0 ]; then
  echo 'Generated code does not follow its sources: run "make generate" and commit the result.' >&2
  exit 1
fi
echo "generated code is up to date"
