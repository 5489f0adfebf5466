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
    for header in redlock.h redlock_status.h redlock_async.h; do
        # shellcheck disable=SC2086
        echo "#include <$header>" | "$1" -x "$2" -std="$3" $strict -
    done
}

check "$2" c c11
check "$2" c c17
has_cxx=
for compiler in "$3" g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    has_cxx=1
    for standard in c++17 c++20; do
        check "$compiler" c++ $standard
        # shellcheck disable=SC2086
        "$compiler" -std=$standard $strict -Wconversion "$root/tests/redlock/scopes.cpp"
    done
done
[ -n "$has_cxx" ] || { echo "no C++ compiler"; exit 77; }
