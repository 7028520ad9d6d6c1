#!/usr/bin/env bash
# Prints a folder with prometheus and promtool: where they are installed, or else
# FOLDER, into which those of Debian's package are unpacked. The package is not
# installed, since that would start a server: prometheus.sh [FOLDER]
set -euo pipefail
if installed=$(command -v prometheus) && [ -x "$(dirname "$installed")/promtool" ]; then
	dirname "$installed"
	exit
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/.cache/prometheus}
if [ ! -x "$out/promtool" ]; then
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		echo 'prometheus and promtool are missing: install Prometheus 2.40 or later, and put both on the PATH' >&2
		exit 1
	fi
	mkdir -p "$out"
	work=$(mktemp -d "$out/.unpack.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	download() { apt-get download -q prometheus >download.log 2>&1; }
	# The lists of packages may be missing or too old.
	download || { apt-get update -qq >update.log 2>&1 && download; } || {
		cat ./*.log >&2
		echo 'the Debian package prometheus cannot be downloaded: install Prometheus, or run "apt-get update"' >&2
		exit 1
	}
	dpkg-deb -x prometheus_*.deb .
	# Others may unpack at the same time; a file is there as a whole or not at all.
	mv -f usr/bin/prometheus usr/bin/promtool "$out/"
fi
"$out/prometheus" --version >/dev/null 2>&1 || {
	echo "$out/prometheus does not run: remove that folder, or install Prometheus" >&2
	exit 1
}
(cd "$out" && pwd)
