#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_units.sh UNIT_DIR: systemd understands every line of the units, and each of them has an exposure of at most 3.0.
set -eu
units=$1
if ! command -v systemd-analyze >/dev/null; then
    echo "SKIPPED: systemd-analyze is not installed (./dev setup): units NOT checked"
    [ -n "${CLAIMD_LINT_ALL:-}" ] || exit 77
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Not installed here: the programs, and the manual pages that the units name.
for unit in "$units"/*.service; do
    sed -e 's,^ExecStart=[^ ]*,ExecStart=/bin/true,' -e '/^Documentation=/d' "$unit" >"$work/${unit##*/}"
done
ln "$work/claimd-worker@.service" "$work/claimd-worker@one.service"

for unit in claimd-scheduler claimd-web claimd-worker claimd-worker@one; do
    found=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --recursive-errors=no "$work/$unit.service" 2>&1) || failed=1
    [ -z "$found" ] || { echo "$found"; failed=1; }
    # --threshold counts in tenths
    systemd-analyze security --offline=yes --no-pager --threshold=30 "$work/$unit.service" >"$work/out" 2>&1 || failed=1
    tail -n 1 "$work/out"
done

# What no systemd knows must not pass unseen.
sed 's,^WatchdogSec=.*,WatchdogSecond=30,' "$work/claimd-scheduler.service" >"$work/broken.service"
found=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --recursive-errors=no "$work/broken.service" 2>&1) || true
[ -n "$found" ] || { echo "an unknown key was not noticed"; failed=1; }
exit $failed
