#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BIN N [OPTION…]: runs the build in BIN with seeded bug N under the faults that reveal it, with one seed
# after the other, until the checker that is named for the bug reports it. Exit 0: reported within 10 minutes; 1:
# not reported.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1
bug=$2
shift 2
limit_s=600

row=$(grep "^$bug | " "$here/bugs.txt") || {
    echo "chaos: there is no bug $bug; numbers are in tests/chaos/bugs/bugs.txt" >&2
    exit 2
}
expected=$(echo "$row" | cut -d'|' -f2)
options=$(echo "$row" | cut -d'|' -f4)
what=$(echo "$row" | cut -d'|' -f5-)
# Keeps only the faults that this kit has.
only=
for fault in $(echo "$row" | cut -d'|' -f3 | tr ',' ' '); do
    if "$bin/claimd-chaos" --list | grep -q "^$fault "; then
        only=${only:+$only,}$fault
    fi
done

work=${bin%/*}/bug-$bug # a fixed name: what a killed run left is removed by the next
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
mkdir "$work"
began=$(date +%s)
seed=0
echo "chaos: bug $bug:$what; expected from:$expected"
while [ $(($(date +%s) - began)) -lt $limit_s ]; do
    seed=$((seed + 1))
    rm -rf "$work/run"
    words=$(echo "$options" | sed "s/SEED/$seed/")
    # shellcheck disable=SC2086  # options are words
    CLAIMD_BUG=$bug "$bin/claimd-chaos" --bug "$bug" --seconds 40 --seed "$seed" ${only:+--only "$only"} \
        --folder "$work/run" $words "$@" >"$work/out" 2>&1 || true
    found=$(grep '^check: FAILED' "$work/out" || echo 'check: OK')
    echo "chaos: bug $bug, seed $seed, $(($(date +%s) - began)) s: $found"
    for checker in $expected; do
        case $found in *" $checker x"*)
            grep -m 1 "^VIOLATION ${checker%/*} ${checker#*/}" "$work/out" || true
            echo "chaos: OK bug $bug caught by $checker after $(($(date +%s) - began)) s"
            exit 0 ;;
        esac
    done
done
echo "chaos: FAILED bug $bug was not reported by$expected within $limit_s s"
exit 1
