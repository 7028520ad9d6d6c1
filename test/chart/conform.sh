#!/usr/bin/env bash
# Validates what the chart renders against the API of several releases of
# Kubernetes. Downloads kubeconform and, for each release, some 20 MB; all of it
# stays in the caches of the user.
set -euo pipefail
cd "$(dirname "$0")"
exec go test -tags apiserver,conform -count 1 -timeout 30m -run TestConform "$@" .
