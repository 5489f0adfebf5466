#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_trixie.sh SOURCE_DIR: builds everything in a Debian 13 container (gcc 14, warnings are errors) and runs the unit and
# integration tests there against PostgreSQL 17: with Valkey 8.1 alone, and the ways of a job once more with Redis 7, Redis 8 and
# Valkey 8.1 mixed. The lock library's own tests: test_redlock_trixie.sh. Exit 77, loudly, without a Docker engine.
set -eu
source=$(cd "$1" && pwd)
skip() {
    echo "SKIPPED: $*: gcc 14, PostgreSQL 17 and Valkey 8.1 were NOT tested"
    exit 77
}
docker version >/dev/null 2>&1 || skip "no Docker engine answers"
"$source/deploy/images/base" bookworm trixie || skip "debian:trixie-slim can't be had here"
docker build -q -t claimd-test-trixie -f "$source/tests/platforms/trixie.Dockerfile" "$source/tests/platforms" >/dev/null

name=claimdp-trixie
docker rm -f -v "$name" >/dev/null 2>&1 || true # of a run that was killed
trap 'docker rm -f -v "$name" >/dev/null 2>&1 || true' EXIT HUP INT TERM
# One test looks at the descriptors of a process that may not be looked at.
docker run --rm --init --name "$name" --cpu-shares 512 --cap-add SYS_PTRACE -v "$source:/source:ro" claimd-test-trixie sh -euc '
    umask 022
    mkdir /tmp/source
    tar -C /source --exclude=./build --exclude=./.git -c . | tar -C /tmp/source -x --no-same-owner
    cmake -G Ninja -S /tmp/source -B /tmp/build -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
        -DCMAKE_C_FLAGS="-O1 -g" >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
    cmake --build /tmp/build >/tmp/log 2>&1 || { grep -B 2 -A 12 -e "error:" -e "FAILED" /tmp/log | head -n 80; exit 1; }
    gcc --version | head -n 1
    for module in hiredis libuv libmicrohttpd jansson; do echo "$module $(pkg-config --modversion $module)"; done
    for server in redis7-server redis-server valkey-server; do $server --version; done
    ls /usr/lib/postgresql
    cd /tmp/build
    export CLAIMD_REQUIRE_SERVICES=1
    failed=0
    run() {
        echo "=== $1"
        servers=$1
        shift
        CLAIMD_TEST_REDIS=$servers ctest --parallel 2 --repeat until-pass:2 --output-on-failure "$@" || failed=1
    }
    run valkey-server -L "unit|integration" -LE redlock
    run redis7-server,redis-server,valkey-server -R "^test_(hints_pop|hints_push|job_way|crash_points)$"
    exit $failed'
