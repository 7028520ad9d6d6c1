#!/usr/bin/env bash
# Prints coverage_<package>=<percent> for each package, and fails if one is
# lower than the minimum. Leaves coverage.out for `go tool cover`.
set -euo pipefail
cd "$(dirname "$0")/.."

minimum=${1:?usage: hack/cover.sh PERCENT PACKAGE...}
shift

go test -coverprofile=coverage.out "${@/#/./}" |
  awk -v minimum="$minimum" -v expected=$# '
    $1 != "ok" || !/coverage: [0-9]/ { print; next }
    {
      measured++
      package = $2
      sub(".*/pkg/", "pkg/", package)
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
