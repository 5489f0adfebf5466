#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_redlock_header.sh SOURCE_DIR CC CXX: other people's compilers take the public headers without a warning.
set -eu
root=$1
strict="-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I $root/redlock"

# check COMPILER LANGUAGE STANDARD
check() {
    # shellcheck disable=SC2086  # a list of words
    "$1" -x "$2" -std="$3" $strict "$root/tests/redlock/header.c"
    # shellcheck disable=SC2086
    echo '#include <redlock_async.h>' | "$1" -x "$2" -std="$3" $strict -
}

check "$2" c c11
check "$2" c c17
command -v "$3" >/dev/null || { echo "no C++ compiler"; exit 77; }
check "$3" c++ c++17
check "$3" c++ c++20
