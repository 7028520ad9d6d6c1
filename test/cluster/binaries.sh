#!/usr/bin/env bash
# Builds the programs of the test cluster, each only if it is missing or if what
# pins it has changed: binaries.sh [FOLDER]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=v1.34.4
helm=v3.22.0
kwok=v0.8.0
out=${1:-${WINDLASS_KUBERNETES_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/windlass/kubernetes-$release}}
mkdir -p "$out/.pins"
out=$(cd "$out" && pwd)
work=$(mktemp -d "$out/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0
# Another project's settings must not reach these builds.
export GOFLAGS=-buildvcs=false GOWORK=off

# build NAME PIN COMMAND...: the command leaves $work/NAME.
build() {
	local name=$1 pin=$2 start=$SECONDS
	shift 2
	pin="$pin $(go env GOOS GOARCH | tr '\n' ' ')"
	if [[ -x $out/$name && -f $out/.pins/$name && $(<"$out/.pins/$name") == "$pin" ]]; then
		return
	fi
	printf '%-24s ' "$name" >&2
	"$@"
	mv "$work/$name" "$out/$name"
	printf '%s\n' "$pin" >"$work/pin"
	mv "$work/pin" "$out/.pins/$name"
	printf '%4d s\n' $((SECONDS - start)) >&2
}

gobuild() { # FOLDER NAME PACKAGE LDFLAGS
	(cd "$1" && go build -trimpath -ldflags "-s -w $4" -o "$work/$2" "$3")
}

sum() { cat "$@" | cksum | cut -d ' ' -f 1; }

version=k8s.io/component-base/version
stamp="-X $version.gitVersion=$release -X $version.gitMajor=1 -X $version.gitMinor=34 -X $version.gitTreeState=clean"
kubernetes=$(sum "$here/kubernetes/go.mod" "$here/kubernetes/go.sum")
for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
	build "$name" "$release $kubernetes" gobuild "$here/kubernetes" "$name" "k8s.io/kubernetes/cmd/$name" "$stamp"
done

etcd=$(cd "$here" && go list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3)
build etcd "$etcd" gobuild "$here" etcd go.etcd.io/etcd/server/v3 ''

build coredns "$(sum "$here"/coredns/go.* "$here"/coredns/*.go)" gobuild "$here/coredns" coredns . ''
build pause "$(sum "$here"/pause/*.go)" gobuild "$here" pause ./pause ''
build helm "$helm" env GOBIN="$work" go install -trimpath -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$helm" "helm.sh/helm/v3/cmd/helm@$helm"
# Only measurements of many nodes need it.
if [ -n "${WITH_KWOK:-}" ]; then
	build kwok "$kwok" env GOBIN="$work" go install -trimpath -ldflags '-s -w' "sigs.k8s.io/kwok/cmd/kwok@$kwok"
fi
echo "The programs of the test cluster are in $out" >&2
