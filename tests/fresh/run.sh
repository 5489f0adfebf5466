#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh COMMAND WAY…: runs one of the README's commands (test, demo) in an empty debian:bookworm-slim, from a fresh clone of what is
# committed, in each of the ways: `root`; `user`, who may use sudo; `busy`, beside four busy loops. Exit 0: all passed.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
command=$1
shift
case $command in test | demo) ;; *) echo "fresh: unknown command '$command'; allowed: test, demo" >&2 && exit 2 ;; esac
for way in "$@"; do
    case $way in root | user | busy) ;; *) echo "fresh: unknown way '$way'; allowed: root, user, busy" >&2 && exit 2 ;; esac
done
docker version >/dev/null 2>&1 || { echo "fresh: no Docker engine answers" >&2 && exit 3; }
"$root/deploy/images/base" bookworm

# Fixed names: what a killed run left is removed by the next.
work=$root/build/fresh
container=claimd-fresh-$command
clear() {
    docker rm -f -v "$container" >/dev/null 2>&1 || true
    rm -rf "$work"
}
clear
trap clear EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$work"
git clone -q "$root" "$work/claimd"

# inside WAY: what the container's shell is told
inside() {
    echo 'set -e; cp -r /clone/. /claimd; cd /claimd;'
    case $1 in
        root) echo "exec ./dev $command" ;;
        busy)
            echo 'for loop in 1 2 3 4; do (while :; do :; done) & done;'
            echo "./dev $command" ;;
        user)
            echo 'apt-get -qq update; apt-get -qq install -y --no-install-recommends sudo >/dev/null 2>&1;'
            echo 'useradd -m somebody; echo "somebody ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/somebody;'
            echo "chown -R somebody /claimd; exec su somebody -c 'cd /claimd && ./dev $command'" ;;
    esac
}

failed=0
for way in "$@"; do
    log=$root/build/fresh-$command-$way.log
    began=$(date +%s)
    code=0
    # On volumes: a layered file system may take half a minute to copy a database.
    docker run --rm --name "$container" --shm-size=1g -v /claimd -v /tmp -v "$work/claimd:/clone:ro" debian:bookworm-slim sh -c "$(inside "$way")" >"$log" 2>&1 || code=$?
    echo "fresh: $command as $way: exit $code after $(($(date +%s) - began)) s: $log"
    [ "$code" -eq 0 ] || { failed=1 && tail -n 30 "$log"; }
done
[ "$failed" -eq 0 ] || { echo "fresh: FAILED" && exit 1; }
echo "fresh: OK"
