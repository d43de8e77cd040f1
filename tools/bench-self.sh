#!/usr/bin/env bash
# Measures spillway itself against what was set as its targets, on real servers, and writes docs/performance.md; arguments
# go to benchself. The servers are those that SPILLWAY_URI, SPILLWAY_MANAGEMENT and SPILLWAY_POSTGRES name, or a stack
# that is up, or one of our own.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/stack.sh
stack_life=2h # ten million messages take a while

if [ -z "${SPILLWAY_URI:-}" ]; then
	trap stack_down EXIT
	stack_up
	eval "$(bin/spillway stack env)"
fi
go build -o bin/benchself ./tools/benchself
bin/benchself "$@"
