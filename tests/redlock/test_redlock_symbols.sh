#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_redlock_symbols.sh SOURCE_DIR LIB_DIR [update]: libredlock.so and libredlock.a export what the public headers declare, no
# more, no less, and redlock/libredlock0.symbols has a line for each of these functions. `update` writes that file: a new
# function came in this version, and one that was never released may go.
set -eu
export LC_ALL=C
source=$(cd "$1" && pwd)
lib=$2/libredlock.so
list=$source/redlock/libredlock0.symbols
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# symbols FILE: function@version, as dpkg-gensymbols writes it; the version itself is a symbol, too.
symbols() {
    nm -D --defined-only "$1" | sed -n -e 's/^[0-9a-f]* A \([A-Z0-9_.]*\)$/\1@\1/p' \
        -e 's/^[0-9a-f]* [A-Z] \([^@]*\)@\{1,2\}\([^@]*\)$/\1@\2/p' | sort -u
}

# listed FILE
listed() {
    sed -n 's/^ \([^ ]*\) .*/\1/p' "$1"
}

grep -hv '^typedef' "$source"/redlock/redlock*.h |
    sed -n 's/^\([a-z].*[ *]\)\{0,1\}\(redlock_[a-z0-9_]*\)(.*/\2/p' | sort -u >"$work/declared"
grep -h -o 'static inline [^(]*' "$source"/redlock/redlock*.h | sed 's/.*[ *]//' | sort -u >"$work/inline"
comm -23 "$work/declared" "$work/inline" >"$work/wanted"
symbols "$lib" >"$work/symbols"
sed -n 's/^\([a-z].*\)@.*/\1/p' "$work/symbols" | sort -u >"$work/exported"
diff "$work/wanted" "$work/exported" || { echo "the headers (<) and libredlock.so (>) differ"; exit 1; }
nm --defined-only --extern-only "$2/libredlock.a" | sed -n 's/^[0-9a-f]* [A-Z] //p' | sort -u >"$work/visible"
diff "$work/wanted" "$work/visible" || { echo "the headers (<) and libredlock.a (>) differ"; exit 1; }

if [ "${3:-}" = update ]; then
    release=$(sed -n 's/^set(CLAIMD_RELEASE \(.*\))$/\1/p' "$source/cmake/Version.cmake")
    listed "$list" | sort >"$work/before"
    comm -23 "$work/before" "$work/symbols" | while read -r symbol; do
        grep -qFx " $symbol $release" "$list" ||
            { echo "$symbol was released: it goes with a new soname only (redlock/README.md, The ABI)"; exit 1; }
    done
    awk -v release="$release" '
        FNR == NR { if (/^ /) since[$1] = $2; else print; next }
        { print " " $1 " " ($1 in since ? since[$1] : release) }' "$list" "$work/symbols" >"$work/new"
    cat "$work/new" >"$list"
fi

listed "$list" | diff - "$work/symbols" || {
    echo "redlock/libredlock0.symbols (<) and libredlock.so (>) differ. If that is meant:"
    echo "    $0 $source $2 update"
    exit 1
}
