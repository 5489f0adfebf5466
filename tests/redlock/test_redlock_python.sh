#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_redlock_python.sh SOURCE_DIR BUILD_DIR NAME: installs the Python package, and runs tests/redlock/python/test_NAME.py with it
# and this build's library and command. Exit 77, loudly, without python3.
set -eu
source=$(cd "$1" && pwd)
build=$2
name=$3
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3) || { echo "SKIPPED: no python3: the Python package is NOT tested"; exit 77; }
sanitizer=
if grep -q '^CMAKE_C_FLAGS:.*-fsanitize=thread' "$build/CMakeCache.txt"; then
    echo "SKIPPED: python3 can't load a library with the thread sanitizer in it"
    exit 77
elif grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$build/CMakeCache.txt"; then
    sanitizer=$(cc -print-file-name=libasan.so)
    export ASAN_OPTIONS=detect_leaks=0 # python3 has some of its own
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --component redlock_python --prefix "$tmp" >"$tmp/log" || { cat "$tmp/log"; exit 1; }
PYTHONPATH=$(dirname "$(dirname "$(find "$tmp" -name py.typed)")")
PATH=$build/bin:$PATH
export PATH PYTHONPATH LD_LIBRARY_PATH="$build/lib" PYTHONDONTWRITEBYTECODE=1 REDLOCK_SOURCE="$source" \
    REDLOCK_HEADERS="$source/redlock"
env ${sanitizer:+LD_PRELOAD="$sanitizer"} "$python" -X dev -X faulthandler "$source/tests/redlock/python/test_$name.py"
