#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# worlds.sh BIN COUNT FIRST [OPTION…]: runs COUNT drawn worlds from number FIRST on, one after the other, with
# these options of claimd-chaos. Prints the last line of each; for one that fails, its whole output. Exit 1: one
# failed.
set -eu
bin=$1
count=$2
world=$3
shift 3

out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=
last=$((world + count))
while [ "$world" -lt "$last" ]; do
    if "$bin/claimd-chaos" --world "$world" "$@" >"$out" 2>&1; then
        echo "world $world: $(tail -n 1 "$out")"
    else
        cat "$out"
        failed="$failed $world"
    fi
    world=$((world + 1))
done
if [ -n "$failed" ]; then
    echo "chaos: FAILED worlds$failed"
    exit 1
fi
echo "chaos: OK $count drawn worlds"
