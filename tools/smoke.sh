#!/usr/bin/env bash
# The main job, short: 1,800 messages through real servers, and every one of them accounted for. What is checked is
# the file that the run leaves, not its word; latencies are not, since others may keep this machine busy. The servers are its own, unless a stack is up already.
set -euo pipefail
cd "$(dirname "$0")/.."

rate=300 warmup=1 duration=5
offered=$((rate * (warmup + duration)))

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

bin/spillway run profiles/steady.yaml -r "$rate" -z "${duration}s" --set "load.warmup=${warmup}s" -o "$out" \
	--set "thresholds=[messages.retries_scheduled==0]" --set expect.busy_machine=true </dev/null

# expect KEY VALUE: the key is there, once, with this value. The file is indented, one key on a line.
failed=0
expect() {
	local found
	found=$(sed -n "s/^ \{2,4\}\"$1\": \(.*[^,]\),\{0,1\}\$/\1/p" "$out/result.json")
	if [ "$found" != "$2" ]; then
		echo "smoke: $1 is ${found:-missing}, expected $2" >&2
		failed=1
	fi
}
expect verdict '"pass"'
expect exit_code 0
expect shed 0
expect confirmed "$offered"
expect publishes "$offered"
expect queued_at_end 0
expect lost 0
expect duplicate_effects 0
expect missing_effects 0
if [ "$failed" -ne 0 ]; then
	exit 1
fi
echo "smoke: $offered messages, verdict pass"
