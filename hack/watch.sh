#!/usr/bin/env bash
# Watches a Windlass that runs on this machine with Prometheus and the chart's rules,
# until Ctrl-C: watch.sh [OPS_ADDRESS] [LISTEN_ADDRESS]. What it stores is gone then.
set -euo pipefail
cd "$(dirname "$0")/.."
ops=${1:-127.0.0.1:8081}
listen=${2:-127.0.0.1:9090}

if ! curl -fsS -o /dev/null --max-time 5 "http://$ops/metrics"; then
  echo "No Windlass tells its metrics at http://$ops/metrics: start one with \"windlass up\", or name its address with OPS=" >&2
  exit 1
fi
programs=$(test/monitoring/prometheus.sh)

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Ctrl-C is for Prometheus, which ends in order; then this ends too.
trap : INT
cat >"$dir/prometheus.yml" <<YAML
global:
  scrape_interval: 2s
  evaluation_interval: 2s
rule_files: ["$PWD/charts/windlass/rules/*.yaml"]
scrape_configs:
  - job_name: windlass
    static_configs:
      - targets: ["$ops"]
        labels: {namespace: windlass, component: local}
YAML

arguments=()
graph=graph alerts=alerts
# Debian's package has pages of its own, which are found only where it is installed.
if [ -d "$programs/../share/prometheus/web" ]; then
  arguments+=(--web.local-assets="$programs/../share/prometheus/web/")
  graph=classic/graph alerts=classic/alerts
fi

echo "Prometheus watches http://$ops/metrics with the rules of charts/windlass/rules"
echo "  graphs   http://$listen/$graph"
echo "  alerts   http://$listen/$alerts"
echo "Stop with Ctrl-C."
"$programs/prometheus" --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/data" \
  --web.listen-address="$listen" --enable-feature=exemplar-storage --log.level=warn "${arguments[@]}"
