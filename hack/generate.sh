#!/usr/bin/env bash
# Generates code, CRDs, docs/metrics.md and docs/problems.md below the folder that is named: "." changes the checkout, any
# other leaves it alone. Expects buf, its plugins and controller-gen on PATH.
set -euo pipefail

out=${1:?usage: hack/generate.sh FOLDER}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."

buf lint
buf generate --output "$out"
go run ./internal/listings "$out"
controller-gen object paths=./api/v1alpha1 output:object:dir="$out/api/v1alpha1"

crds=$out/config/crd
controller-gen crd paths=./api/v1alpha1 output:crd:dir="$crds"
# The chart can include only files of its own.
mkdir -p "$out/charts/windlass/files/crds"
cp "$crds"/*.yaml "$out/charts/windlass/files/crds/"

mkdir -p "$out/docs"
go run ./internal/metricsdoc >"$out/docs/metrics.md.new"
mv "$out/docs/metrics.md.new" "$out/docs/metrics.md"
go run ./internal/problemsdoc >"$out/docs/problems.md.new"
mv "$out/docs/problems.md.new" "$out/docs/problems.md"
