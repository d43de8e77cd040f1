#!/usr/bin/env bash
# Speed of a run against a plain loop, in turn on one broker, written to docs/performance.md; arguments go to benchself.
# The broker is the one that SPILLWAY_URI and SPILLWAY_MANAGEMENT name, or a stack that is up, or one of our own.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/stack.sh

if [ -z "${SPILLWAY_URI:-}" ]; then
	trap stack_down EXIT
	stack_up
	eval "$(bin/spillway stack env)"
fi
go build -o bin/benchself ./tools/benchself
bin/benchself "$@"
