# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by the tests that run in a container. The script sets $source, the name of its $container, and $untried, which
# says what was not done without a Docker engine. Removes the container of a run that was killed, and at the end its own.
: "${source:?}" "${container:?}" "${untried:?}"
skip() {
    echo "SKIPPED: $*: $untried"
    exit 77
}
docker version >/dev/null 2>&1 || skip "no Docker engine answers"
"$source/deploy/images/base" bookworm || skip "debian:bookworm-slim can't be had here"
docker rm -f -v "$container" >/dev/null 2>&1 || true
trap 'docker rm -f -v "$container" >/dev/null 2>&1 || true' EXIT HUP INT TERM
