#!/usr/bin/env bash
# Prepares the functions in examples/: builds those in Go, and installs the
# dependencies of the others. What is up to date is left alone. Where a language
# is missing, or the registry of its packages cannot be reached, its examples are
# left out, and the rest goes on. With CI=true a failed installation is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0

say() { printf '%-20s %s\n' "$1" "$2"; }

# attempt NAME DONE FAILED COMMAND... runs a command. If it fails, it says FAILED
# and the command's output, and returns false.
attempt() {
  local name=$1 done=$2 failure=$3 output
  shift 3
  if output=$("$@" 2>&1); then
    say "$name" "$done"
  else
    say "$name" "$failure"
    printf '%s\n' "$output" | sed 's/^/    /' >&2
    return 1
  fi
}

# install_packages NAME DONE COMMAND... is attempt for what comes from a registry.
install_packages() {
  local name=$1 done=$2
  shift 2
  if ! attempt "$name" "$done" 'left out: its dependencies cannot be installed; repeat this with a network' "$@" && [[ ${CI-} == true ]]; then
    failed=1
  fi
}

build_go() {
  # The Go command knows best what is up to date.
  attempt "$1" "built bin/examples/$1" 'failed: go build' go build -trimpath -buildvcs=false -o "bin/examples/$1" "./examples/$1" || failed=1
}

python_works() {
  # A system may have Python without what makes virtual environments.
  python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

install_python() {
  local dir=examples/$1
  local want=$dir/requirements.txt stamp=$dir/.venv/.installed
  # The stamp holds what was installed. A virtual environment does not survive
  # that its folder is moved or its Python removed, so it is tried too.
  if cmp -s "$want" "$stamp" && "$dir/.venv/bin/python3" -m pip --version >/dev/null 2>&1; then
    say "$1" "$dir/.venv is up to date"
  elif ! python_works; then
    say "$1" 'left out: needs Python 3.10 or later with venv (for example: apt install python3 python3-venv)'
  else
    install_packages "$1" "installed requirements.txt in $dir/.venv" make_venv "$dir" "$want" "$stamp"
  fi
}

make_venv() {
  python3 -m venv --clear "$1/.venv" &&
    "$1/.venv/bin/python3" -m pip install --quiet --disable-pip-version-check --requirement "$2" &&
    cp "$2" "$3" || { rm -rf "$1/.venv" && false; } # make demo calls what is there
}

install_node() {
  local dir=examples/$1
  local stamp=$dir/node_modules/.installed
  if cmp -s "$dir/package-lock.json" "$stamp"; then
    say "$1" "$dir/node_modules is up to date"
  elif ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    say "$1" 'left out: needs Node.js 18 or later with npm (for example: apt install nodejs npm)'
  else
    install_packages "$1" "installed package-lock.json in $dir/node_modules" install_modules "$dir" "$stamp"
  fi
}

install_modules() {
  npm --prefix "$1" ci --no-audit --no-fund --loglevel=error &&
    cp "$1/package-lock.json" "$2" || { rm -rf "$1/node_modules" && false; }
}

needs() {
  if command -v "$2" >/dev/null; then
    say "$1" 'ready as it is'
  else
    say "$1" "left out: needs $3"
  fi
}

build_go fib
build_go search
needs hello python3 'Python 3.9 or later (for example: apt install python3)'
needs clock python3 'Python 3.9 or later (for example: apt install python3)'
install_python thumbnail
install_node markdown
exit "$failed"
