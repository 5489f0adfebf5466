#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_installed.sh SOURCE_DIR: installs build/packages in a Debian 12 container in which systemd is process 1, and lives
# with them as an administrator does (inside.sh). Exit 77, loudly, without a Docker engine.
set -eu
source=$1
here=$source/tests/packaging
container=claimdp-installed
untried="the packages were NOT installed anywhere"
# shellcheck source=tests/packaging/container.sh
. "$(dirname "$0")/container.sh"
docker build -q -t claimdp-systemd -f "$here/systemd.Dockerfile" "$here" >/dev/null

# systemd needs a cgroup to write to and the right to mount; credentials reach services by a shared mount.
docker run -d --name "$container" --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw --tmpfs /run --tmpfs /run/lock \
    --tmpfs /tmp --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined -e container=docker \
    -v "$source/build/packages:/packages:ro" -v "$here/inside.sh:/inside.sh:ro" claimdp-systemd \
    sh -c 'mount --make-rshared / && exec /lib/systemd/systemd' >/dev/null || skip "a container with systemd can't be started"
docker exec "$container" sh -c 'for i in $(seq 100); do [ -S /run/systemd/private ] && break; sleep 0.1; done
    timeout 60 systemctl is-system-running --wait' >/dev/null || skip "systemd does not come up in a container here"
docker exec "$container" sh /inside.sh
