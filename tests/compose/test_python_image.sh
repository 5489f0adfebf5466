#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_python_image.sh SOURCE_DIR: examples/handler-image-python as its README.md says: the block is run as it stands there, by
# docker-compose, and the job has been done by the Python handler of that image.
set -eu
source=$(cd "$1" && pwd)
project=claimdcp
cd "$source"
# shellcheck source=tests/compose/world.sh
. "$source/tests/compose/world.sh"
export CLAIMD_SECRETS="$tmp/secrets" CLAIMD_WORKER_SLOTS=4 CLAIMD_POSTGRES_PORT=0 # any: yours may be up, too
export CLAIMD_PYTHON_IMAGE=claimdc-python
example=examples/handler-image-python

step "the block of its README"
# shellcheck disable=SC2016  # these are a block's marks
sed -n '/^```sh$/,/^```$/{/^```/!p}' "$example/README.md" >"$tmp/block"
[ "$(wc -l <"$tmp/block")" -ge 5 ] || fail "no block: $(cat "$tmp/block")"
timeout 800 sh -eux "$tmp/block" >"$tmp/said" 2>&1 || { cat "$tmp/said"; fail "the block"; }

step "the job was done by Python"
docker-compose exec -T postgres psql -U postgres -XAtq claimd -c "SELECT state, result FROM claimd.jobs WHERE kind = 'shout'" \
    >"$tmp/jobs" 2>"$tmp/stderr" || { cat "$tmp/stderr"; fail "psql"; }
[ "$(cat "$tmp/jobs")" = 'completed|{"said": "HELLO"}' ] || { cat "$tmp/said"; fail "jobs: $(cat "$tmp/jobs")"; }

step "the image is tried without a cluster"
docker run --rm "$CLAIMD_PYTHON_IMAGE" claimd-handler-test /usr/local/lib/claimd/handlers/shout.json \
    --job '{"kind": "shout", "args": {"say": "hello"}}' >"$tmp/said" 2>&1 || { cat "$tmp/said"; fail "claimd-handler-test"; }
grep -q '"result":{"said": "HELLO"}' "$tmp/said" || fail "$(cat "$tmp/said")"

step "its handler file is right for the worker's user, and a file of a stranger is not"
docker run --rm "$CLAIMD_PYTHON_IMAGE" claimctl handlers check /usr/local/lib/claimd/handlers >"$tmp/said" 2>&1 ||
    fail "$(cat "$tmp/said")"
grep -q 'shout.json: ok, serves shout$' "$tmp/said" || fail "$(cat "$tmp/said")"
