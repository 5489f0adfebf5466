#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# man.sh SOURCE_DIR PROGRAM: the man pages can be read, redlock(1) names every option that
# `redlock help` does, and redlock(3) every function and result of redlock.h and redlock_status.h. 77 = skipped.
set -eu
man=$1/redlock/man
failed=0

say() {
    echo "$*"
    failed=1
}

for page in "$man/redlock.1" "$man/redlock.3" "$man/redlock.7"; do
    [ -s "$page" ] || say "$page is missing"
    if command -v mandoc >/dev/null; then
        found=$(mandoc -T lint -W warning "$page" 2>&1) || true
    elif command -v groff >/dev/null; then
        found=$(groff -mandoc -T utf8 -ww -z "$page" 2>&1) || true
    else
        echo "neither mandoc nor groff is installed"
        exit 77
    fi
    [ -z "$found" ] || say "$found"
done

for verb in exec status nodes bench; do
    for option in $("$2" help $verb | grep -o -e '--[a-z][a-z-]*' | sort -u); do
        grep -q -e "Fl ${option#-}\( \|$\)" "$man/redlock.1" || say "redlock.1 lacks $option of $verb"
    done
done

headers="$1/redlock/redlock.h $1/redlock/redlock_status.h"
# shellcheck disable=SC2086  # two of them
names=$(cat $headers | grep -v '^ \*' | grep -o -e '\*\{0,1\}redlock_[a-z_]*(' | tr -d '*(' | sort -u | grep -vx redlock_unlock_at)
results=$(sed -n '/^enum redlock_result {/,/^};/s/^ *\(REDLOCK_[A-Z_]*\).*/\1/p' "$1/redlock/redlock.h")
[ "$(echo "$results" | wc -l)" -ge 8 ] || say "too few results found in redlock.h"
for name in $names $results; do
    grep -q "\(Fn\|Dv\) $name\( \|$\)" "$man/redlock.3" || say "redlock.3 lacks $name"
done
exit $failed
