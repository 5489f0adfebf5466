#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_packages.sh SOURCE_DIR: `./dev package` makes packages that lintian accepts, and each library that a program or plugin in
# them names (DT_NEEDED) is in its package's bill of materials.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/dev" package >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cat "$work/log"
count=0

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

for deb in "$source"/build/packages/claimd-scheduler_*.deb "$source"/build/packages/claimd-worker_*.deb \
    "$source"/build/packages/claimctl_*.deb; do
    name=${deb##*/}
    name=${name%%_*}
    dpkg-deb -x "$deb" "$work/$name"
    bom=$work/$name/usr/share/doc/$name/sbom.cdx.json
    programs=$(find "$work/$name" -type f \( -path '*/bin/*' -o -name '*.so' \))
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
    count=$((count + 1))
done
[ "$count" -eq 3 ] || { echo "$count packages with programs, not 3"; exit 1; }

# The check can fail: claimctl prints tables by a library that the scheduler has not.
[ -n "$(missing "$work/claimd-scheduler/usr/share/doc/claimd-scheduler/sbom.cdx.json" "$work/claimctl/usr/bin/claimctl")" ] ||
    { echo "a library that is not listed was not noticed"; exit 1; }
echo "ok"
