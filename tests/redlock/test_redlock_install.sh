#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_redlock_install.sh SOURCE_DIR: configures, builds and installs redlock/ as the project of its own that it is, and
# uses what was installed as its users do: pkg-config with the shared and the static library, CMake's find_package(), and
# redlock.hpp with every C++ compiler that is there.
set -eu
umask 022
source=$1
work=$(mktemp -d)
prefix=$work/prefix
finish() {
    for i in 1 2 3; do
        redis-cli -s "$work/$i.sock" shutdown nosave >/dev/null 2>&1 || true
    done
    rm -rf "$work"
}
trap finish EXIT

quietly() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

quietly cmake -G Ninja -S "$source/redlock" -B "$work/build" -DBUILD_TESTING=OFF
quietly cmake --build "$work/build"
quietly cmake --install "$work/build" --prefix "$prefix"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name redlock.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir redlock)

objdump -p "$libdir/libredlock.so" | grep -q 'SONAME  *libredlock.so.0$' || { echo "no soname"; exit 1; }

cat >"$work/hello.c" <<'EOF'
#include <redlock.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct redlock_options options = {.nodes = argc > 1 ? argv[1] : NULL, .trust_fresh = true};
    struct redlock_report report = {0};
    struct redlock_client *client = NULL;
    if (redlock_open(&options, &client, &report) != REDLOCK_OK)
        return fprintf(stderr, "%s\n", report.message), 1;
    int runs = 0;
    REDLOCK_WITH(lock, redlock_lock_for(client, "hello", 10000, &lock))
        printf("under the lock, run %d\n", ++runs);
    redlock_close(client);
    return runs == 1 ? 0 : 1;
}
EOF
for i in 1 2 3; do
    quietly redis-server --port 0 --unixsocket "$work/$i.sock" --save '' --daemonize yes --dir "$work"
done
for i in 1 2 3; do
    tries=0
    until redis-cli -s "$work/$i.sock" ping >/dev/null 2>&1; do # it listens once its parent is gone
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "redis-server $i does not answer after 30 s"; exit 1; }
        sleep 0.05
    done
done
nodes=unix:$work/1.sock,unix:$work/2.sock,unix:$work/3.sock

cd "$work"
# shellcheck disable=SC2046 # flags are words
{
    cc -std=gnu11 -Wall -Wextra -Werror -o hello hello.c $(pkg-config --cflags --libs redlock)
    LD_LIBRARY_PATH=$libdir ./hello "$nodes"
    cc -std=gnu11 -o hello_static hello.c $(pkg-config --cflags redlock) "$libdir/libredlock.a" \
        $(pkg-config --static --libs-only-l redlock | sed 's/-lredlock//')
    ./hello_static "$nodes"
    if ldd hello_static | grep redlock; then exit 1; fi

    for header in redlock redlock_status redlock_async; do
        echo "#include <$header.h>" >only.c
        cc -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags redlock) -fsyntax-only only.c
    done
    for compiler in g++ clang++; do
        command -v $compiler >/dev/null || continue
        $compiler -std=c++17 -Wall -Wextra -Wpedantic -Werror -o scopes "$source/tests/redlock/scopes.cpp" \
            $(pkg-config --cflags --libs redlock)
        LD_LIBRARY_PATH=$libdir ./scopes "$nodes"
    done
}

cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(hello LANGUAGES C)
find_package(redlock 0.2 REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE redlock::redlock)
EOF
quietly cmake -G Ninja -S . -B cmake -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build cmake
./cmake/hello "$nodes"

for page in man1/redlock.1.gz man3/redlock.3.gz man7/redlock.7.gz; do
    [ -s "$prefix/share/man/$page" ] || { echo "no $page"; exit 1; }
done
echo "ok"
