#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the tests of deploy/ share. $root is set by whoever reads this.

fail() {
    echo "$*" >&2
    exit 1
}

# need PROGRAM PACKAGE
need() {
    command -v "$1" >/dev/null && return
    echo "SKIPPED: $1 is not installed (Debian package $2)" >&2
    [ "${CLAIMD_REQUIRE_SERVICES:-}" != 1 ] || exit 1
    exit 77
}

# The documented metrics, "name type".
documented() {
    # shellcheck disable=SC2016,SC2154  # backticks of Markdown; root
    sed -n 's/^| `\([a-z_]*\)` | \([a-z]*\) .*/\1 \2/p' "$root/docs/metrics.md"
}

# check_names TEXT: each name of a metric in it is documented; histograms have suffixes.
check_names() {
    series=$(documented | awk '
        { print $1 }
        $2 == "histogram" { print $1 "_bucket"; print $1 "_sum"; print $1 "_count" }')
    used=$(printf '%s\n' "$1" | grep -oE '\b(claimd|process)_[a-z_]+\b' | sort -u)
    [ -n "$used" ] || fail "no metric is named"
    for name in $used; do
        printf '%s\n' "$series" | grep -qx "$name" || fail "$name is not in docs/metrics.md"
    done
}
