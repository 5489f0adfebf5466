#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeded.sh BIN yes|no: programs of the preset `bugs` have seeded bugs; all others contain no trace of them.
set -eu
bin=$1
wanted=$2
for program in claimd-worker claimd-scheduler claimd-runner claimctl redlock; do
    [ -e "$bin/$program" ] || { echo "there is no $bin/$program"; exit 1; }
    found=no
    if grep -q CLAIMD_BUG "$bin/$program"; then
        found=yes
    fi
    case $wanted$found$program in
        yesnoclaimctl | yesnoredlock) ;; # link nothing that has one
        yesyes* | nono*) ;;
        *) echo "$program: seeded bugs wanted: $wanted, found: $found"; exit 1 ;;
    esac
done
