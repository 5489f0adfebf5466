#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_many_hosts.sh SOURCE_DIR: the walk of docs/many-hosts.md, eight machines as eight compose projects on one engine. Each
# "machine" is a folder with its own copy of deploy, its own .env and no secret but its own; they reach each other by the
# address and port that each publishes. Then what is wrong in a machine's settings is said by it, in one line.
set -eu
source=$(cd "$1" && pwd)
project=claimdch
cd "$source"
# shellcheck source=tests/compose/world.sh
. "$source/tests/compose/world.sh"
unset COMPOSE_PROJECT_NAME

# This machine's address on a network of its own: every container reaches it, and nothing outside of this machine does.
docker network create "${project}_wire" >/dev/null
address=$(docker network inspect "${project}_wire" --format '{{(index .IPAM.Config 0).Gateway}}')
nodes=
for n in 1 2 3 4 5; do
    nodes=$nodes${nodes:+,}$address:1637$n
done

# machine NAME ROLE SECRET…: what steps 1 and 2 of the page do for it
machine() {
    name=$1
    role=$2
    shift 2
    mkdir -p "$tmp/$name"
    tar -c -C "$source" --exclude=deploy/secrets deploy | tar -x -C "$tmp/$name"
    mkdir -p "$tmp/$name/deploy/secrets"
    for secret; do
        tar -c --numeric-owner -C "$tmp/secrets" "$secret" | tar -x -p --numeric-owner -C "$tmp/$name/deploy/secrets"
    done
    chmod 0700 "$tmp/$name/deploy/secrets"
    sed -e "s/^COMPOSE_FILE=.*/COMPOSE_FILE=$role.yml/" -e "s/^CLAIMD_BIND=.*/CLAIMD_BIND=$address/" \
        -e "s/^CLAIMD_HOST=.*/CLAIMD_HOST=$name/" \
        -e "s/^COMPOSE_PROJECT_NAME=.*/COMPOSE_PROJECT_NAME=$project$name/" \
        -e "s/^CLAIMD_POSTGRES=.*/CLAIMD_POSTGRES=host=$address,$address port=15437,15438/" -e "s/^CLAIMD_LOCK_NODES=.*/CLAIMD_LOCK_NODES=$nodes/" \
        "$source/deploy/compose/.env.example" >"$tmp/$name/deploy/compose/.env"
    { # one engine: a port for each
        echo CLAIMD_POSTGRES_PORT=15437
        echo "CLAIMD_LOCK_PORT=1637${name#lock}"
    } >>"$tmp/$name/deploy/compose/.env"
}

# on NAME ARGUMENT…: docker-compose there
on() {
    (cd "$tmp/$1/deploy/compose" && shift && docker-compose "$@")
}

step "images, secrets, eight machines"
docker-compose -p "$project" -f docker-compose.yml build >"$tmp/log" 2>&1 || { tail -n 40 "$tmp/log"; fail build; }
images=$(docker-compose -p "$project" -f docker-compose.yml config | sed -n 's/^ *image: *//p' | sort -u)
# shellcheck disable=SC2086  # words
deploy/images/server $images
deploy/compose/make-secrets "$tmp/secrets"
machine db database postgres_superuser postgres_scheduler postgres_worker postgres_producer postgres_admin postgres_web postgres_replication
for n in 1 2 3 4 5; do
    machine "lock$n" lock redis_users
done
machine sched scheduler postgres_scheduler postgres_admin redis_scheduler redis_ctl
machine worker worker postgres_worker redis_worker

step "started in any order: the worker first, the database last"
for name in worker sched lock1 lock2 lock3 lock4 lock5 db; do
    on "$name" up -d >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "$name: up"; }
done
ctl() { on sched run --rm -T claimctl "$@" 2>"$tmp/stderr"; }
# says TEXT COMMAND…: claimctl's output is read to its end, or its container would be left behind
says() {
    text=$1
    shift
    ctl "$@" >"$tmp/out" || true
    grep -q "$text" "$tmp/out"
}
until_true 60 ctl enqueue noop >"$tmp/id"
done_by_now() { says 'state *completed' jobs show "$(cat "$tmp/id")"; }
until_true 60 done_by_now
ctl doctor || fail "doctor"
restarts=$(docker inspect --format '{{.RestartCount}}' "$(on worker ps -q worker)")
echo "the worker was restarted $restarts times until there was a database"

step "a lock node is lost, another machine takes its address"
on lock3 down >/dev/null 2>&1
id=$(ctl enqueue noop)
echo "$id" >"$tmp/id"
until_true 30 done_by_now
on lock3 up -d >/dev/null 2>&1
until_true 30 says 'lock nodes *5 of 5' doctor

step "one more worker is a folder more"
machine worker2 worker postgres_worker redis_worker
on worker2 up -d >/dev/null 2>&1
until_true 30 says '2 live' doctor

step "a standby takes over from a database that is lost"
machine db2 standby postgres_replication
{
    echo "CLAIMD_PRIMARY=host=$address port=15437"
    echo CLAIMD_POSTGRES_PORT=15438
} >>"$tmp/db2/deploy/compose/.env"
on db2 up -d >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "db2: up"; }
ask() { on "$1" exec -T postgres psql -X -U postgres -tAc "$2" claimd 2>&1; }
asked() { [ "$(ask "$1" "$2")" = t ]; }
until_true 60 asked db "SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = 'walreceiver'"
ctl enqueue noop >"$tmp/id"
until_true 30 done_by_now
lsn=$(ask db 'SELECT pg_current_wal_lsn()')
until_true 30 asked db "SELECT replay_lsn >= '$lsn' FROM pg_stat_replication"
on db kill postgres >/dev/null 2>&1
asked db2 "SELECT pg_promote()" || fail "db2 does not become the primary"
until_true 60 done_by_now
until_true 60 ctl enqueue noop >"$tmp/id"
until_true 60 done_by_now
until_true 60 ctl doctor >"$tmp/out"

# codes_of CONTAINER: with what it has ended so far
codes_of() {
    docker events --since "$(docker inspect --format '{{.Created}}' "$1")" --until "$(date +%s)" \
        --filter "container=$1" --filter event=die --format '{{.Actor.Attributes.exitCode}}' | sort | uniq -c
}

# refused MACHINE CODE TEXT: its worker says what is wrong in one line, and ends with that code; Docker tries again, ever later
refused() {
    on "$1" up -d >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "$1: up"; }
    container=$(on "$1" ps -q worker)
    said() { docker logs "$container" 2>&1 | grep -q "$1"; }
    until_true 40 said "$3"
    ended() { [ -n "$(codes_of "$container")" ]; }
    until_true 30 ended
    docker logs "$container" 2>&1 | grep "$3" | head -n 1
    sleep 10 # what is counted; 0.1 s, 0.2 s, 0.4 s … lie between the starts
    codes=$(codes_of "$container")
    echo "ends so far, and the code: $codes"
    [ "$(echo "$codes" | awk '{ print $2 }')" = "$2" ] || fail "$1: wanted exit code $2 alone"
    [ "$(echo "$codes" | awk '{ print $1 }')" -le 8 ] || fail "$1: a storm of restarts"
}

step "a wrong password"
machine wrong worker postgres_worker redis_worker
echo wrong >"$tmp/wrong/deploy/secrets/postgres_worker.new"
chgrp 10001 "$tmp/wrong/deploy/secrets/postgres_worker.new"
chmod 0440 "$tmp/wrong/deploy/secrets/postgres_worker.new"
mv "$tmp/wrong/deploy/secrets/postgres_worker.new" "$tmp/wrong/deploy/secrets/postgres_worker"
refused wrong 3 'password authentication failed'
on wrong down -v >/dev/null 2>&1

step "a secret that the containers may not read"
chmod 0400 "$tmp/wrong/deploy/secrets/postgres_worker"
refused wrong 2 'postgres_worker'
on wrong down -v >/dev/null 2>&1

step "a secret that is not there"
rm "$tmp/wrong/deploy/secrets/postgres_worker"
if on wrong up -d >"$tmp/log" 2>&1; then
    cat "$tmp/log"
    fail "started without a secret"
fi
grep -q "deploy/secrets/postgres_worker" "$tmp/log" || { cat "$tmp/log"; fail "which secret?"; }
