#!/usr/bin/env bash
# Prints the folder with prometheus and promtool: where they are installed, or else
# below FOLDER, into which Debian's packages are unpacked. They are not installed,
# since that would start a server: prometheus.sh [FOLDER]
set -euo pipefail
if installed=$(command -v prometheus) && [ -x "$(dirname "$installed")/promtool" ]; then
	dirname "$installed"
	exit
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/.cache/prometheus}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# The pages that Prometheus serves need the libraries.
packages=(prometheus libjs-jquery libjs-popper.js libjs-bootstrap4 libjs-jquery-hotkeys libjs-mustache
	libjs-moment libjs-moment-timezone libjs-eonasdan-bootstrap-datetimepicker libjs-d3 libjs-rickshaw
	fonts-glyphicons-halflings)

download() { apt-get download -q "${packages[@]}" >download.log 2>&1; }

if [ ! -e "$out/.complete" ]; then
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		echo 'prometheus and promtool are missing: install Prometheus 2.40 or later, and put both on the PATH' >&2
		exit 1
	fi
	work=$(mktemp -d "$out/.unpack.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	# The lists of packages may be missing or too old.
	download || { apt-get update -qq >update.log 2>&1 && download; } || {
		cat ./*.log >&2
		echo 'the Debian package prometheus cannot be downloaded: install Prometheus, or run "apt-get update"' >&2
		exit 1
	}
	for package in ./*.deb; do
		dpkg-deb -x "$package" unpacked
	done
	# Zones' sources are 200 MB, and nothing reads them.
	rm -rf unpacked/usr/share/{doc,man,javascript/moment-timezone/data}
	# Another process that unpacks at the same time has the same files.
	cp -a --remove-destination unpacked/usr "$out/"
	touch "$out/.complete"
fi
"$out/usr/bin/prometheus" --version >/dev/null 2>&1 || {
	echo "$out/usr/bin/prometheus does not run: remove $out, or install Prometheus" >&2
	exit 1
}
echo "$out/usr/bin"
