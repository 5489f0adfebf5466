# SPDX-License-Identifier: Apache-2.0
# Debian 13: gcc 14, hiredis 1.2, Redis 8, Valkey 8.1. Built by tests/platforms/test_redlock_trixie.sh.
FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config binutils procps \
    libuv1-dev libhiredis-dev libssl-dev check openssl redis-server redis-tools valkey-server && rm -rf /var/lib/apt/lists/*
