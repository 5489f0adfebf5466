#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER: builds the programs of the release before, whose commit stands in release_before, into FOLDER/build. Again is quick.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$1
commit=$(cat "$here/release_before")
if [ "$(cat "$folder/commit" 2>/dev/null)" != "$commit" ]; then
    rm -rf "$folder"
    mkdir -p "$folder/source"
    git -c safe.directory='*' -C "$root" archive "$commit" | tar -x -C "$folder/source"
    echo "$commit" >"$folder/commit"
fi
make() {
    cmake -G Ninja -S "$folder/source" -B "$folder/build" -DCMAKE_BUILD_TYPE=Debug || return 1
    cmake --build "$folder/build" --target claimd-scheduler claimd-worker claimd-runner claimctl plugin_noop plugin_sleep \
        plugin_misbehave plugin_meddle
}

if ! make >"$folder/log" 2>&1; then
    tail -n 40 "$folder/log"
    exit 1
fi
