#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_first_python.sh SOURCE_DIR: the three commands with which docs/guide/python.md begins, in an empty Debian 12 container
# with the packages of build/packages (first_python_inside.sh). Exit 77, loudly, without a Docker engine.
set -eu
source=$1
container=claimdp-first-python
untried="the first Python job was NOT tried in an empty container"
# shellcheck source=tests/packaging/container.sh
. "$(dirname "$0")/container.sh"

# On volumes: a layered file system may take half a minute to copy a database.
docker run --rm --name "$container" --init --shm-size=1g -v /srv -v /tmp -v "$source/build/packages:/packages:ro" \
    -v "$source/docs/guide/python.md:/python.md:ro" -v "$source/tests/packaging/first_python_inside.sh:/inside.sh:ro" \
    debian:bookworm-slim sh /inside.sh
