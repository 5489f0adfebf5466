# SPDX-License-Identifier: Apache-2.0
# Two images; docs/many-hosts.md says how they are run, examples/handler-image how a handler of yours gets in.
#     docker build --target claimd -t claimd:0.2.0 .                  claimd-scheduler, claimd-web and claimctl
#     docker build --target claimd-worker -t claimd-worker:0.2.0 .    these, claimd-worker and its handlers
# There is no git in a build: --build-arg VERSION=$(cmake/build-version) --build-arg REVISION=$(git rev-parse HEAD) say what it is.
ARG BASE=debian:bookworm-slim

FROM $BASE AS build
LABEL org.opencontainers.image.title="claimd-build"
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config \
    libhiredis-dev libjansson-dev libmicrohttpd-dev libpq-dev libsmartcols-dev libssl-dev libuv1-dev uthash-dev
WORKDIR /source
COPY . .
ARG VERSION=
RUN cmake --preset release -DBUILD_TESTING=OFF -DCLAIMD_BUILD="$VERSION" && cmake --build build/release && DESTDIR=/out cmake --install build/release --strip

FROM $BASE AS claimd
# curl is for the health checks, and for whoever looks at /metrics from inside.
RUN groupadd --gid 10001 claimd && useradd --uid 10001 --gid 10001 --home-dir /var/lib/claimd --shell /usr/sbin/nologin claimd \
    && install -d -o claimd -g claimd -m 0700 /var/lib/claimd \
    && apt-get update && apt-get install -y --no-install-recommends ca-certificates curl libhiredis0.14 libjansson4 \
    libmicrohttpd12 libpq5 libsmartcols1 libssl3 libuv1 && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/usr/local/bin/claimd-scheduler /out/usr/local/bin/claimd-web /out/usr/local/bin/claimctl \
    /usr/local/bin/
USER 10001:10001
EXPOSE 8420 8421
CMD ["claimd-scheduler"]
ARG VERSION=0.2.0
ARG REVISION=
LABEL org.opencontainers.image.title="claimd" \
    org.opencontainers.image.description="claimd-scheduler, claimd-web and claimctl of claimd, a job system for many machines" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.licenses="Apache-2.0"

FROM claimd AS claimd-worker
COPY --from=build /out/usr/local/bin/claimd-worker /out/usr/local/bin/claimd-runner /out/usr/local/bin/claimd-handler-test \
    /usr/local/bin/
COPY --from=build /out/usr/local/share/claimd/python /usr/local/share/claimd/python
COPY --from=build /out/usr/local/share/claimd/shell /usr/local/share/claimd/shell
COPY --from=build /out/usr/local/lib/claimd /usr/local/lib/claimd
COPY --from=build /out/usr/local/include/claimd /usr/local/include/claimd
EXPOSE 8422
CMD ["claimd-worker"]
LABEL org.opencontainers.image.title="claimd-worker" \
    org.opencontainers.image.description="claimd-worker, its runner and the handlers that come with it"
