#!/usr/bin/env bash
# Checks the Grafana dashboards of the chart: whether their code makes what is committed,
# whether Grafana's own types fit them, and the rules of hack/dashboards/lint.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/dashboards.sh "$fresh"
if ! diff -u -r --exclude='*.yaml' charts/windlass/dashboards "$fresh/charts/windlass/dashboards"; then
  echo 'The dashboards do not follow their code: run "make dashboards" and commit the result.' >&2
  exit 1
fi

cd hack/dashboards
node build/check.js "$fresh/charts/windlass/dashboards" build/types
node_modules/.bin/tsc -p tsconfig.types.json
go vet ./lint
go test -count=1 ./lint
