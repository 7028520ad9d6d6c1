#!/usr/bin/env bash
# Draws docs/images/dashboards again: runs the programs of a cluster under load and a real
# Prometheus, records what the dashboards ask, and has headless Chromium take pictures of it.
# Needs node, npm, chromium, and what `make monitoring` needs: Linux and root.
set -euo pipefail
cd "$(dirname "$0")/../.."

recorded=bin/dashboards/recorded.json
mkdir -p bin/dashboards docs/images/dashboards
# RECORDED=1 draws what was recorded before.
if [ -z "${RECORDED:-}" ]; then
  go run ./test/dashboards -prometheus "$(test/monitoring/prometheus.sh)" -- \
    node hack/dashboards/pictures/record.mjs charts/windlass/dashboards "$recorded"
fi

pictures=hack/dashboards/pictures
(
  cd "$pictures"
  if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
    npm ci --ignore-scripts --silent
    touch node_modules/.package-lock.json
  fi
  node_modules/.bin/esbuild src/main.tsx --bundle --minify --format=esm --target=es2022 --jsx=automatic --outdir=build --log-level=error \
    --define:process.env='{}' --define:process.env.NODE_ENV='"production"' --define:global=globalThis \
    --loader:.svg=dataurl --loader:.png=dataurl --loader:.woff2=dataurl --loader:.ttf=dataurl
  cp index.html build/
)
node "$pictures/shoot.mjs" "$pictures/build" "$recorded" docs/images/dashboards overview function provisioning cold-starts
