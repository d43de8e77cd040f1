#!/usr/bin/env bash
# Makes what the servers run in, unless it is there. The stack asks sudo for root rights by itself, but never for a
# password; on a terminal a person is asked once, here.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ] && [ -t 0 ] && command -v sudo >/dev/null && ! sudo -n true 2>/dev/null; then
	echo "servers of our own need root rights for namespaces and chroot"
	sudo -v || true # without them the stack looks for servers elsewhere and says which
fi
exec bin/spillway stack setup
