# SPDX-License-Identifier: Apache-2.0
# Debian 13: gcc 14, hiredis 1.2, libmicrohttpd 1.0, PostgreSQL 17, Redis 8, Valkey 8.1, and the Redis 7 of Debian 12 as
# redis7-server with its own libraries. For tests/platforms/*.sh.
FROM debian:bookworm-slim AS seven
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && mkdir /redis7 && \
    cp -L /usr/bin/redis-server /redis7/ && \
    ldd /redis7/redis-server | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | grep -v -e 'lib[cm]\.so' | xargs -I lib cp -L lib /redis7/

FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config binutils procps \
    libuv1-dev libhiredis-dev libssl-dev check openssl redis-server redis-tools valkey-server \
    libpq-dev libjansson-dev libmicrohttpd-dev libsmartcols-dev uthash-dev postgresql && rm -rf /var/lib/apt/lists/*
COPY --from=seven /redis7 /opt/redis7
RUN printf '#!/bin/sh\nLD_LIBRARY_PATH=/opt/redis7 exec /opt/redis7/redis-server "$@"\n' >/usr/local/bin/redis7-server && \
    chmod 755 /usr/local/bin/redis7-server && redis7-server --version
