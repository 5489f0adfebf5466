#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# told.sh PROGRAM DOCUMENT: checks that the document's table of faults is what the program lists.
set -eu
listed=$("$1" --list | sed 's/ .*//')
# shellcheck disable=SC2016  # backticks of the document
told=$(sed -n '/^### Faults/,/^### Load/s/^| `\([a-z0-9_]*\)` .*/\1/p' "$2")
[ "$listed" = "$told" ] || {
    echo "$2: the table under '### Faults' and '$1 --list' differ"
    printf '%s\n' "$listed" | sort >"${TMPDIR:-/tmp}/listed.$$"
    printf '%s\n' "$told" | sort | diff "${TMPDIR:-/tmp}/listed.$$" - || true
    rm -f "${TMPDIR:-/tmp}/listed.$$"
    exit 1
}
