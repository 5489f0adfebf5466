#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_packages.sh SOURCE_DIR: `./dev package` makes packages that lintian accepts; no file is in two of them; each library that a
# program, plugin or library in them names (DT_NEEDED) is in its package's bill of materials; and a package that is built with
# the lock library gets the right dependency on it.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/dev" package >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cat "$work/log"

# missing BOM FILE…: prints the libraries that are needed and not listed
missing() {
    bom=$1
    shift
    for file; do
        readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
    done | sort -u | while read -r soname; do
        grep -q "\"value\" : \"$soname\"" "$bom" || echo "$soname"
    done
}

for deb in "$source"/build/packages/*.deb; do
    dpkg-deb -c "$deb" | awk '!/^d/ { print $6 }'
done | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || { echo "in two packages:"; cat "$work/twice"; exit 1; }

for name in claimd-scheduler claimd-worker claimd-web claimctl libredlock0 redlock-tools; do
    deb=$(echo "$source"/build/packages/"$name"_*.deb)
    dpkg-deb -x "$deb" "$work/$name"
    bom=$work/$name/usr/share/doc/$name/sbom.cdx.json
    programs=$(find "$work/$name" -type f \( -path '*/bin/*' -o -name '*.so' -o -name '*.so.*' \))
    [ -n "$programs" ] || { echo "$name: nothing in it can be run"; exit 1; }
    # shellcheck disable=SC2086  # words
    found=$(missing "$bom" $programs)
    [ -z "$found" ] || { echo "$name: not in its bill of materials: $found"; exit 1; }
    # A library of Debian has a package and a version.
    libraries=$(grep -c '"type" : "library"' "$bom")
    versions=$(grep -c '"purl" : "pkg:deb/debian/' "$bom")
    if [ "$libraries" -lt 4 ] || [ "$libraries" -ne "$versions" ]; then
        echo "$bom: $libraries libraries, $versions versions"
        exit 1
    fi
done

# The check can fail: claimctl prints tables by a library that the scheduler has not.
[ -n "$(missing "$work/claimd-scheduler/usr/share/doc/claimd-scheduler/sbom.cdx.json" "$work/claimctl/usr/bin/claimctl")" ] ||
    { echo "a library that is not listed was not noticed"; exit 1; }

# dpkg-shlibdeps reads libredlock0's symbols as those of an installed library: a program depends on the oldest version that has
# what it calls.
dpkg-deb -e "$source"/build/packages/libredlock0_*.deb "$work/libredlock0/DEBIAN"
for file in "$work"/libredlock0/DEBIAN/*; do
    case ${file##*/} in
        control | md5sums | shlibs | symbols | triggers) ;;
        *) echo "libredlock0: ${file##*/} is not wanted among its control files"; exit 1 ;;
    esac
done
libdir=$(dirname "$(find "$work/libredlock0" -name libredlock.so.0)")
mkdir -p "$work/program/debian"
printf 'Source: program\n\nPackage: program\nArchitecture: any\n' >"$work/program/debian/control"
cd "$work/program"
printf '#include <redlock_status.h>\nint main(void) { return redlock_version()[0]; }\n' >program.c
cc -I "$source/redlock" -o program program.c "$libdir/libredlock.so.0" -Wl,--allow-shlib-undefined
since=$(sed -n 's/^ redlock_version@[^ ]* //p' "$work/libredlock0/DEBIAN/symbols")
dpkg-shlibdeps -O "-S$work/libredlock0" "-l$libdir" program >depends 2>shlibdeps.log || { cat shlibdeps.log; exit 1; }
grep -q "libredlock0 (>= $since)" depends || { echo "not libredlock0 (>= $since):"; cat depends; exit 1; }
echo "ok"
