#!/usr/bin/env bash
# Every test, unit and integration, with the race detector, on real servers. The servers are those that the caller names
# in SPILLWAY_TEST_URI, SPILLWAY_TEST_MANAGEMENT and SPILLWAY_TEST_POSTGRES (all three), or a stack of our own.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/stack.sh

# The race detector is built with cgo, and so with a C compiler, which a fresh machine may lack.
need_c_compiler() {
	if command -v "$(go env CC)" >/dev/null; then
		return
	fi
	echo "installing gcc for the race detector"
	local root=()
	if [ "$(id -u)" -ne 0 ]; then
		root=(sudo)
	fi
	"${root[@]}" apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null ||
		{ "${root[@]}" apt-get update -qq && "${root[@]}" apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null; }
}

# use_own_servers exports the addresses of a stack under the names that tests read, and under no other: a test of the
# command line must not find servers in its environment by chance.
use_own_servers() {
	trap stack_down EXIT
	stack_up
	bin/spillway stack status
	eval "$(bin/spillway stack env --prefix SPILLWAY_TEST_)"
}

# show_given_servers prints the exact versions of the caller's servers. What is not well with them is the tests' to find.
show_given_servers() {
	bin/spillway doctor --profile steady || true
}

need_c_compiler
given="${SPILLWAY_TEST_URI:+x}${SPILLWAY_TEST_MANAGEMENT:+x}${SPILLWAY_TEST_POSTGRES:+x}"
case $given in
xxx)
	echo "testing on the servers given in SPILLWAY_TEST_*"
	SPILLWAY_URI=$SPILLWAY_TEST_URI SPILLWAY_MANAGEMENT=$SPILLWAY_TEST_MANAGEMENT \
		SPILLWAY_POSTGRES=$SPILLWAY_TEST_POSTGRES show_given_servers
	;;
"") use_own_servers ;;
*)
	echo "give all of SPILLWAY_TEST_URI, SPILLWAY_TEST_MANAGEMENT and SPILLWAY_TEST_POSTGRES, or none" >&2
	exit 2
	;;
esac

# -count=1: a result from before is none, since the servers are part of what is tested.
tests() {
	CGO_ENABLED=1 go test -race -shuffle=on -count=1 -timeout 8m "$@"
}

# Two packages at once, whatever the machine: tests of several packages share the servers. The whole program is tested
# when nothing else runs: a run whose generator is starved is invalid, and rightly so.
whole=spillway/internal/e2e
mapfile -t parts < <(go list ./... | grep -vx "$whole")
failed=0 # one failure does not hide another
tests -p 2 "${parts[@]}" || failed=1
tests "$whole" || failed=1
tools/cover.sh || failed=1
exit "$failed"
