#!/usr/bin/env bash
# golangci-lint in the version that .golangci.yml was written for: an installed one, else it is built, which takes some
# minutes the first time and is cached by Go.
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.15.0

for candidate in "$(command -v golangci-lint || true)" "$(go env GOPATH)/bin/golangci-lint"; do
	if [ -x "$candidate" ] && "$candidate" version --short 2>/dev/null | grep -qx "v\{0,1\}$version"; then
		exec "$candidate" run ./...
	fi
done
exec go run "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$version" run ./...
