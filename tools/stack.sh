# Sourced by the scripts beside it: one stack for several runs, or for all tests. A stack that is up already is used and
# left up; one that was started here is taken down when the script ends, however it ends.

# stack_life bounds a stack whose script was killed before it could take it down.
stack_life=30m
stack_is_ours=no

stack_up() {
	if bin/spillway stack status >/dev/null 2>&1; then
		echo "using the stack that is up"
		return
	fi
	bin/spillway stack up --detach --ttl "$stack_life" >/dev/null || return
	stack_is_ours=yes
}

stack_down() {
	if [ "$stack_is_ours" = yes ]; then
		stack_is_ours=no
		bin/spillway stack down >/dev/null || echo "the stack could not be taken down: bin/spillway stack status" >&2
	fi
}
