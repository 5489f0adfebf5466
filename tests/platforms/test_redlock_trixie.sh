#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_redlock_trixie.sh SOURCE_DIR: builds redlock/ in a Debian 13 container (gcc 14, hiredis 1.2) and runs its unit and
# integration tests there, proves lock.C6: all of them against Redis 7, Redis 8 and Valkey 8.1 mixed, and against each of the newer
# two alone those whose outcome the server decides. Exit 77, loudly, without a Docker engine.
set -eu
source=$(cd "$1" && pwd)
skip() {
    echo "SKIPPED: $*"
    exit 77
}
docker version >/dev/null 2>&1 || skip "no Docker engine answers: hiredis 1.2, Redis 8 and Valkey 8 were NOT tested"
"$source/deploy/images/base" bookworm trixie || skip "debian:trixie-slim can't be had here: hiredis 1.2, Redis 8 and Valkey 8 were NOT tested"

docker build -q -t claimd-test-trixie -f "$source/tests/platforms/trixie.Dockerfile" "$source/tests/platforms" >/dev/null
name=claimdp-redlock-trixie
docker rm -f -v "$name" >/dev/null 2>&1 || true # of a run that was killed
trap 'docker rm -f -v "$name" >/dev/null 2>&1 || true' EXIT HUP INT TERM
docker run --rm --init --name "$name" -v "$source:/source:ro" claimd-test-trixie sh -euc '
    mkdir /tmp/source
    tar -C /source --exclude=./build --exclude=./.git -c . | tar -C /tmp/source -x
    cmake -G Ninja -S /tmp/source/redlock -B /tmp/build -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
        -DCMAKE_C_FLAGS="-O1 -g" >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
    cmake --build /tmp/build >/tmp/log 2>&1 || { tail -n 60 /tmp/log; exit 1; }
    gcc --version | head -n 1
    echo "hiredis $(pkg-config --modversion hiredis), libuv $(pkg-config --modversion libuv)"
    redis-server --version
    valkey-server --version
    cd /tmp/build
    run() {
        echo "=== $1"
        servers=$1
        shift
        CLAIMD_TEST_REDIS=$servers ctest --parallel 2 --output-on-failure -L "unit|integration" "$@"
    }
    decided="test_redis|redlock_(acquire|votes|release|extend|heal|keep|nodes|line|fence|tls|inspect|client)$" # by the server
    run redis-server -R "$decided"
    run valkey-server -R "$decided"
    run redis7-server,redis-server,valkey-server -E "install|model"'
