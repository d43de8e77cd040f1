#!/usr/bin/env bash
# Statement coverage of the packages that are pure: all that they do can be reached by a test, so all of it should be.
set -euo pipefail
cd "$(dirname "$0")/.."

least=90
packages=(./loadgen/arrival ./workers/retry ./workers/breaker ./internal/topology ./internal/ledger)

go test -count=1 -cover "${packages[@]}" | awk -v least="$least" -v wanted="${#packages[@]}" '
	{ print }
	/coverage: [0-9.]+% of statements/ {
		seen++
		for (i = 1; i < NF; i++) if ($i == "coverage:") covered = $(i + 1) + 0
		if (covered < least) { low = 1; printf "%s: below %d %%\n", $2, least }
	}
	END {
		if (seen != wanted) { printf "coverage is known of %d packages, not of %d\n", seen, wanted; exit 1 }
		exit low
	}'
