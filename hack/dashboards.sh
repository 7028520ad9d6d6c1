#!/usr/bin/env bash
# Writes the Grafana dashboards of hack/dashboards as JSON below the folder that is named:
# "." changes the checkout. Needs node and npm.
set -euo pipefail

out=${1:?usage: hack/dashboards.sh FOLDER}
mkdir -p "$out/charts/windlass/dashboards"
out=$(cd "$out/charts/windlass/dashboards" && pwd)
cd "$(dirname "$0")/dashboards"

# npm keeps its own copy of the lock file, which is as old as what it installed.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  npm ci --ignore-scripts --silent
  touch node_modules/.package-lock.json
fi
rm -rf build
node_modules/.bin/tsc
node build/main.js "$out"
