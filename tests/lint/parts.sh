#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# parts.sh OBJECT… -- LIBRARY…: which parts of the worker use each other's symbols in a circle. Each
# library is a part, and the objects together are the root. Prints a line with a symbol for each use
# that closes a circle; exit 1 if there is one. parts.sh selftest CC: proves that it can find one.
set -eu

uses() {
    unit=root
    for file in "$@"; do
        [ "$file" != -- ] || continue
        case $file in *.a) unit=$(basename "$file" .a) ;; esac
        nm -P "$file" | sed "s/^/$unit /"
    done
}

circles() {
    uses "$@" | awk '
        NF < 3 { next } # the name of an object in a library
        { units[$1] = 1 }
        $3 ~ /^[TDBRV]$/ { home[$2] = $1 }
        $3 == "U" { needs[$1, $2] = 1 }
        END {
            for (pair in needs) {
                split(pair, of, SUBSEP)
                there = of[2] in home ? home[of[2]] : of[1]
                if (there != of[1]) { by[of[1], there] = of[2]; reaches[of[1], there] = 1 }
            }
            for (k in units) for (i in units) for (j in units)
                if ((i, k) in reaches && (k, j) in reaches) reaches[i, j] = 1
            for (i in units) for (j in units)
                if ((i, j) in by && (j, i) in reaches)
                    print i " uses " by[i, j] "() of " j ", which uses " i " in turn"
        }' | sort
}

selftest() {
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    cd "$dir"
    echo 'int jobs(void); int slots(void) { return 1; }' >slots.c
    echo 'int slots(void); int jobs(void) { return slots(); }' >jobs.c
    echo 'int jobs(void); int main(void) { return jobs(); }' >root.c
    for f in slots jobs root; do "$1" -c $f.c -o $f.o; done
    ar rc slots.a slots.o
    ar rc jobs.a jobs.o
    [ -z "$(circles root.o -- slots.a jobs.a)" ] || { echo "a line of parts is no circle"; exit 1; }
    echo 'int jobs(void); int slots(void) { return jobs(); }' >slots.c
    "$1" -c slots.c -o slots.o
    ar rc slots.a slots.o
    [ "$(circles root.o -- slots.a jobs.a | wc -l)" = 2 ] || { echo "a circle was not found"; exit 1; }
}

if [ "$1" = selftest ]; then
    selftest "$2"
    exit
fi
found=$(circles "$@")
[ -z "$found" ] || { echo "$found"; exit 1; }
