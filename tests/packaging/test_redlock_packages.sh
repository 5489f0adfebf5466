#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_redlock_packages.sh SOURCE_DIR: installs the lock library's packages of build/packages in an empty Debian 12 container, by the
# README's command, and runs the README's examples there as they are written (redlock_inside.sh). Exit 77, loudly, without a
# Docker engine.
set -eu
source=$1
here=$source/tests/packaging
container=claimdp-redlock
untried="the lock library's packages were NOT installed anywhere"
# shellcheck source=tests/packaging/container.sh
. "$(dirname "$0")/container.sh"

# NET_ADMIN: the README's masters have addresses of their own.
docker run --rm --name "$container" --cap-add NET_ADMIN -v "$source/build/packages:/packages:ro" \
    -v "$source/redlock/README.md:/README.md:ro" -v "$here/redlock_inside.sh:/inside.sh:ro" debian:bookworm-slim sh /inside.sh
