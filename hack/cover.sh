#!/usr/bin/env bash
# Prints coverage_<package>=<percent> for each package that makes decisions (the row pure of
# internal/archtest/layers_test.go), and fails if one is lower than the minimum. Leaves
# coverage.out for `go tool cover`.
set -euo pipefail
cd "$(dirname "$0")/.."

minimum=${1:?usage: hack/cover.sh PERCENT}
mapfile -t packages < <(awk '/^\t\{"pure", /{ on = 1; next } on && /^\t\}\}/{ exit } on { gsub(/[",\t ]/, ""); print "./" $0 }' internal/archtest/layers_test.go)
[ ${#packages[@]} -gt 0 ] || { echo "internal/archtest/layers_test.go has no row pure any more" >&2; exit 1; }

go test -coverprofile=coverage.out "${packages[@]}" |
  awk -v minimum="$minimum" -v expected=${#packages[@]} '
    $1 != "ok" || !/coverage: [0-9]/ { print; next }
    {
      measured++
      package = $2
      sub(".*/windlass/", "", package)
      percent = $0
      sub(".*coverage: ", "", percent)
      sub("%.*", "", percent)
      name = package
      gsub("[^a-z0-9]", "_", name)
      printf "coverage_%s=%s\n", name, percent
      if (percent + 0 < minimum) low = low " " package
    }
    END {
      if (measured != expected) {
        print "measured " measured + 0 " packages of " expected ": the others have no test, or failed." > "/dev/stderr"
        exit 1
      }
      if (low != "") {
        print "less than " minimum " % covered:" low ". Add tests; see what is missing with: go tool cover -html=coverage.out" > "/dev/stderr"
        exit 1
      }
    }'
