#!/usr/bin/env bash
# Two runs on one set of real servers: the path at rest, and the same path with its database stopped for 15 s. Each prints
# its summary; the script ends with both verdicts, and with the exit code of the first run that did not pass.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/stack.sh

profiles=(steady outage)
stamp=$(date -u +%Y%m%dt%H%M%S)
code=0
verdicts=()

# Where no stack can be held in the background, each run brings its own servers.
stack_up || echo "each run starts its own servers"
trap stack_down EXIT

for profile in "${profiles[@]}"; do
	out=results/$stamp-$profile
	echo
	echo "== $profile: $out"
	run=0
	bin/spillway run "profiles/$profile.yaml" -o "$out" || run=$?
	verdict=$(sed -n 's/^  "verdict": "\([a-z]*\)",*$/\1/p' "$out/result.json" 2>/dev/null || true)
	verdicts+=("$(printf '%-8s %-8s exit %d   %s' "$profile" "${verdict:-none}" "$run" "$out")")
	if [ "$code" -eq 0 ]; then
		code=$run
	fi
done

echo
echo "== verdicts"
printf '%s\n' "${verdicts[@]}"
exit "$code"
