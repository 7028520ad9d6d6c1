#!/usr/bin/env bash
# Fails if a message of the wire means something else than in its last frozen state, which is what releases
# have agreed on. Expects buf on PATH. "freeze" makes today's messages the frozen state: with each release,
# and before the first one whenever the wire changes.
set -euo pipefail
cd "$(dirname "$0")/.."

frozen=api/wire/testdata/frozen/wire.binpb
if [ "${1:-}" = freeze ]; then
  exec buf build --exclude-source-info -o "$frozen"
fi

# against RULES IGNORED
against() {
  buf breaking --against "$frozen" --config \
    '{"version": "v2", "modules": [{"path": "api"}], "breaking": {"use": ["'"$1"'"], "ignore": ["'"$2"'"]}}'
}

# What agents live on with may not change on the wire, nor as JSON in what is recorded of it. Within the
# control plane names may not change either.
against WIRE_JSON api/wire/control
against FILE api/wire/agent
echo "the wire is as it was frozen, or has more"
