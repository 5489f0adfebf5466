#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_compose_v2.sh SOURCE_DIR: the same files with docker compose 2, which Debian 13 has: it runs in a container and talks to
# this machine's engine. Up until healthy, a job, three workers, down.
set -eu
source=$(cd "$1" && pwd)
project=claimdcw
cd "$source"
# shellcheck source=tests/compose/world.sh
. "$source/tests/compose/world.sh"
socket=/var/run/docker.sock
[ -S "$socket" ] || { echo "SKIPPED: no $socket: docker compose 2 was NOT tried"; exit 77; }
deploy/images/base trixie || { echo "SKIPPED: debian:trixie-slim can't be had here: docker compose 2 was NOT tried"; exit 77; }

step "images and secrets"
docker-compose build >"$tmp/log" 2>&1 || { tail -n 40 "$tmp/log"; fail build; }
# shellcheck disable=SC2046  # words
deploy/images/server $(docker-compose config | sed -n 's/^ *image: *//p' | sort -u)
deploy/compose/make-secrets "$tmp/secrets"
cp -r docker-compose.yml deploy "$tmp"
docker build -q -t claimdc-v2 - >"$tmp/log" 2>&1 <<'END' || { cat "$tmp/log"; fail "docker build"; }
FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends docker-compose docker-cli && rm -rf /var/lib/apt/lists/*
END

# v2 ARGUMENT…: docker compose 2, in the folder that both sides of the engine know by the same name
v2() {
    docker run --rm --name "${project}_v2" -w "$tmp" -v "$tmp:$tmp" -v "$socket:$socket" -e COMPOSE_PROJECT_NAME -e CLAIMD_IMAGE \
        -e CLAIMD_WORKER_IMAGE -e CLAIMD_POSTGRES_PORT=0 -e "CLAIMD_SECRETS=$tmp/secrets" claimdc-v2 docker-compose "$@"
}

step "docker compose 2 accepts the files"
docker run --rm --name "${project}_v2" -v "$source:/source:ro" claimdc-v2 sh -c \
    'docker-compose version && /source/tests/compose/test_compose_config.sh /source'

step "up, a job, three workers, down"
v2 up -d --wait --no-build >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail up; }
id=$(v2 run --rm -T claimctl enqueue noop 2>"$tmp/log") || { cat "$tmp/log"; fail enqueue; }
v2 up -d --wait --no-build --no-recreate --scale worker=3 >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "three workers"; }
v2 run --rm -T claimctl jobs show "$id" >"$tmp/job" 2>"$tmp/log" || { cat "$tmp/log"; fail show; }
grep -q 'state *completed' "$tmp/job" || { cat "$tmp/job"; fail "the job is not done"; }
v2 down --volumes >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail down; }
left=$(docker ps -aq --filter "label=com.docker.compose.project=$project"
    docker volume ls -q --filter "label=com.docker.compose.project=$project")
[ -z "$left" ] || fail "left behind: $left"
