#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_sdk_install.sh BUILD_DIR: installs claimd to a fresh prefix and builds examples/plugin there as its README
# describes, without access to the source tree; the installed claimd-runner must then serve it.
set -eu
umask 022
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
pc=$(find "$work/prefix" -name claimd.pc)
example=$(dirname "$(find "$work/prefix" -path '*/examples/plugin/greet.c')")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
cp -r "$example" "$work/greet"
cd "$work/greet"

command=$(sed -n 's/^cc /cc -Werror -Wpedantic /p' README.md)
echo "$command"
eval "$command"

plugins=$(pkg-config --variable=plugindir claimd)
install -m 0755 greet.so "$plugins"
list=$("$work/prefix/bin/claimd-runner" --list --plugins "$plugins")
echo "$list"
for kind in greet noop sleep checksum; do
    case $list in
        *"{\"name\":\"$kind\""*) ;;
        *) echo "kind $kind is not served"; exit 1 ;;
    esac
done
case $list in
    *'"refused":[]'*) ;;
    *) echo "a plugin was refused"; exit 1 ;;
esac

# The installed programs look for plugins in their own prefix. There is no PostgreSQL here; doctor continues
# without it.
unset CLAIMD_CONFIG CLAIMD_WORKER_PLUGIN_DIR
doctor=$(CLAIMD_POSTGRES_CONNINFO="host=$work" "$work/prefix/bin/claimctl" doctor 2>&1) || true
case $doctor in
    *"ok     plugins       $plugins: "*) ;;
    *"ok     plugins       $(realpath "$plugins"): "*) ;;
    *) echo "$doctor"; exit 1 ;;
esac

# Builds it with CMake, as the README offers, and compiles the headers alone in C and in C++.
cmake -G Ninja -S . -B build >cmake.log || { cat cmake.log; exit 1; }
cmake --build build >cmake.log || { cat cmake.log; exit 1; }
[ -s build/greet.so ] || { echo "CMake built no greet.so"; exit 1; }
header='#define _POSIX_C_SOURCE 200809L
#include <claimd/plugin.h>
#include <claimd/test.h>'
# shellcheck disable=SC2046  # flags are words
echo "$header" | cc -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags claimd) -fsyntax-only -x c -
if command -v c++ >/dev/null; then
    # shellcheck disable=SC2046
    echo "$header" | c++ -std=c++20 -Wall -Wextra -Werror $(pkg-config --cflags claimd) -fsyntax-only -x c++ -
fi

# The kit for other languages finds all that it needs where it is installed. Without all cases it must not pass.
kit=$work/prefix/share/claimd/conformance
said=$("$kit/run.py" "$kit/candidates/shell.json" --handler-test "$work/prefix/bin/claimd-handler-test" --only end.) && exit 1
case $said in
    *" 0 cases, "*) echo "$said"; exit 1 ;;
    *" cases, 0 failures") ;;
    *) echo "$said"; exit 1 ;;
esac
echo "ok"
