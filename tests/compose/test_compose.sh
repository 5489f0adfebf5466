#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_compose.sh SOURCE_DIR: docker-compose.yml as the README shows it, and what may happen to it while it works: every job is
# completed once, no lock is left, and `./dev down` leaves nothing.
set -eu
source=$(cd "$1" && pwd)
project=claimdca
cd "$source"
# shellcheck source=tests/compose/world.sh
. "$source/tests/compose/world.sh"
export CLAIMD_SECRETS="$tmp/secrets" CLAIMD_WORKER_SLOTS=4 CLAIMD_POSTGRES_PORT=0 # any: yours may be up, too

ctl() {
    docker-compose run --rm -T claimctl "$@" 2>"$tmp/stderr" || { cat "$tmp/stderr"; return 1; }
}

sql() {
    docker-compose exec -T postgres psql -U postgres -XAtq claimd -c "$1" 2>"$tmp/stderr"
}

nth_worker() {
    docker-compose ps -q worker | sed -n "$1p"
}

step "up, and down again, so that images are built"
./dev up >"$tmp/up" 2>&1 || { cat "$tmp/up"; fail "./dev up"; }
./dev down --volumes >/dev/null 2>&1
size=$(docker image inspect --format '{{.Size}}' "$CLAIMD_WORKER_IMAGE")
echo "image of the worker: $((size / 1000000)) MB"
[ "$size" -le 120000000 ] || fail "larger than 120 MB"

step "a secret's folder is for its owner, its files for the containers"
[ "$(stat -c %a "$CLAIMD_SECRETS")" = 700 ] || fail "$(stat -c %a "$CLAIMD_SECRETS")"
for file in "$CLAIMD_SECRETS"/*; do
    [ "$(stat -c '%a %g' "$file")" = '440 10001' ] || fail "$file: $(stat -c '%a %g' "$file")"
done

step "from built images to the first job done"
began=$(date +%s.%N)
docker-compose up -d --scale worker=3 >"$tmp/up" 2>&1 || { cat "$tmp/up"; fail "up"; }
sql "SELECT claimd.enqueue('noop')" >/dev/null
is_done() { [ "$(sql 'SELECT count(*) FROM claimd.job_history')" = 1 ]; }
until_true 60 is_done
echo "first job done after $(sql "SELECT round(extract(epoch FROM finalized_at)::numeric - $began, 1) FROM claimd.job_history") s"
./dev up --scale worker=3 >"$tmp/up" 2>&1 || { cat "$tmp/up"; fail "./dev up: not healthy"; }

step "an application outside makes jobs with the line that up says, and may do no more"
sed -n '/^  PGPASSWORD=/,/^$/p' "$tmp/up" >"$tmp/line"
sh -eu "$tmp/line" >"$tmp/said" 2>&1 || { cat "$tmp/up" "$tmp/said"; fail "enqueue from outside"; }
is_done_too() { [ "$(sql 'SELECT count(*) FROM claimd.job_history')" = 2 ]; }
until_true 60 is_done_too
sed 's/"SELECT .*"$/"TABLE claimd.job"/' "$tmp/line" >"$tmp/more"
! sh -eu "$tmp/more" >"$tmp/said" 2>&1 || fail "a producer reads jobs: $(cat "$tmp/said")"
grep -q 'permission denied for table job' "$tmp/said" || fail "$(cat "$tmp/said")"

step "every volume has a name, so that none is left behind"
docker-compose ps -q | xargs docker inspect --format '{{range .Mounts}}{{.Type}} {{.Name}} {{end}}' | tr ' ' '\n' |
    grep -A 1 -x volume | grep -v -x -e volume -e -- >"$tmp/volumes"
[ "$(sort -u "$tmp/volumes" | tr '\n' ' ')" = "${project}_postgres ${project}_workers " ] || fail "$(cat "$tmp/volumes")"

step "images say what they are"
for image in "$CLAIMD_IMAGE" "$CLAIMD_WORKER_IMAGE"; do
    labels=$(docker image inspect --format '{{json .Config.Labels}}' "$image")
    echo "$labels" | grep -q '"org.opencontainers.image.version":"[0-9]' || fail "$image: $labels"
done

step "daemons have the names of their containers"
hosts=$(sql "SELECT string_agg(host, ' ' ORDER BY host) FROM claimd.worker WHERE NOT dead AND NOT stopped")
[ "$hosts" = "${project}_worker_1 ${project}_worker_2 ${project}_worker_3" ] || fail "workers: $hosts"
hosts=$(sql "SELECT string_agg(host, ' ' ORDER BY host) FROM claimd.scheduler")
[ "$hosts" = "${project}_scheduler_1 ${project}_scheduler_2" ] || fail "schedulers: $hosts"
folders=$(docker-compose exec -T --index=1 worker ls /var/lib/claimd | tr '\n' ' ')
[ "$folders" = "${project}_worker_1 ${project}_worker_2 ${project}_worker_3 " ] || fail "state folders: $folders"

step "SIGHUP reads the mounted configuration"
for i in 1 2 3; do # by docker-compose kill, Docker would not start it again when it dies
    docker-compose exec -T --index=$i worker sh -c 'kill -HUP 1'
done
for i in 1 2; do
    docker-compose exec -T --index=$i scheduler sh -c 'kill -HUP 1'
done
reloaded() { [ "$(docker-compose logs worker scheduler 2>/dev/null | grep -c event=reloaded)" -eq 5 ]; }
until_true 20 reloaded

step "claimctl: a job by hand, the doctor"
id=$(ctl enqueue noop)
ctl jobs show "$id" >"$tmp/job"
ctl doctor >"$tmp/doctor" || { cat "$tmp/doctor"; fail "doctor"; }

step "checksums of the image's files and naps on three workers"
docker-compose exec -T --index=1 worker sh -c 'cat /var/lib/dpkg/info/*.md5sums' >"$tmp/sums"
awk '{ sum = $1; sub(/^[^ ]+ +/, "")
       printf "{\"kind\": \"checksum\", \"args\": {\"path\": \"/%s\", \"md5\": \"%s\"}}\n", $0, sum }
     NR % 40 == 0 { printf "{\"kind\": \"sleep\", \"args\": {\"ms\": %d}}\n", 1000 + NR % 2000 }' "$tmp/sums" >"$tmp/jobs"
jobs=$(($(wc -l <"$tmp/jobs") + 3)) # and the three above
ctl enqueue --file - <"$tmp/jobs" >/dev/null

step "a worker's process is killed: Docker starts it again"
victim=$(nth_worker 1)
# shellcheck disable=SC2016  # for the shell in the container
docker exec "$victim" sh -c 'for p in /proc/[0-9]*; do
    [ "$(cat "$p/comm" 2>/dev/null)" != claimd-worker ] || kill -9 "${p#/proc/}"; done' || true # the exec ends with its container
restarted() { [ "$(docker inspect --format '{{.RestartCount}} {{.State.Status}}' "$victim")" = '1 running' ]; }
until_true 30 restarted
[ -n "$(locks_left "${project}_lock1_1")" ] || fail "no lock is seen while jobs run: the test is blind"

step "a worker's container is killed, two lock nodes stop, PostgreSQL is restarted"
docker kill "$(nth_worker 2)" >/dev/null
docker-compose stop lock2 lock4 >/dev/null 2>&1
docker-compose restart postgres >/dev/null 2>&1

step "five workers, and what was stopped is back"
docker-compose up -d --no-recreate --scale worker=5 >"$tmp/up" 2>&1 || { cat "$tmp/up"; fail "up"; }
[ "$(docker-compose ps -q worker | wc -l)" -eq 5 ] || fail "workers: $(docker-compose ps worker)"
all_done() { [ "$(sql "SELECT count(*) FROM claimd.job")" = 0 ]; }
until_true 180 all_done

step "each job ended once, with the right result"
states=$(sql "SELECT state, count(*), count(DISTINCT id) FROM claimd.job_history GROUP BY 1")
[ "$states" = "completed|$jobs|$jobs" ] || fail "wanted completed|$jobs|$jobs, got $states"
docker-compose exec -T --index=1 worker sh -c 'cd / && md5sum -c 2>/dev/null || true' <"$tmp/sums" >"$tmp/truth"
matches=$(sql "SELECT count(*) FROM claimd.job_history WHERE kind = 'checksum' AND result->>'verdict' = 'match'")
[ "$(grep -c ': OK$' "$tmp/truth")" = "$matches" ] || fail "md5sum: $(grep -c ': OK$' "$tmp/truth") match, jobs say $matches"
sql "SELECT kind || ': ' || count(*) || ', of them run again ' || count(*) FILTER (WHERE attempt > 1)
     FROM claimd.job_history GROUP BY kind"
released() { # late ones are gone with their lease
    for node in lock1 lock2 lock3 lock4 lock5; do
        [ -z "$(locks_left "${project}_${node}_1")" ] || return 1
    done
}
until_true 20 released

step "an image with a handler"
docker build -t claimdc-handlers --build-arg "WORKER=$CLAIMD_WORKER_IMAGE" examples/handler-image >"$tmp/up" 2>&1 ||
    { cat "$tmp/up"; fail "docker build"; }
CLAIMD_WORKER_IMAGE=claimdc-handlers docker-compose up -d --no-build worker >"$tmp/up" 2>&1 || { cat "$tmp/up"; fail "up"; }
id=$(ctl enqueue shout --args '{"say": "hello"}')
shouted() { [ "$(sql "SELECT result FROM claimd.job_history WHERE id = $id")" = '{"SAY": "HELLO"}' ]; }
until_true 30 shouted

step "a folder of handlers: of a stranger, then of somebody trusted"
mkdir "$tmp/handlers"
container=$(docker create --name "${project}_handlers" claimdc-handlers)
docker cp -q "$container:/usr/local/lib/claimd/plugins/shout.so" "$tmp/handlers/loud.so"
docker rm "$container" >/dev/null
chmod 0755 "$tmp/handlers" "$tmp/handlers/loud.so"
[ "$(id -u)" -ne 0 ] || chown -R 4711 "$tmp/handlers"
owner=$(stat -c %u "$tmp/handlers")
with_folder() { # OWNERS
    CLAIMD_PLUGINS=$tmp/handlers CLAIMD_WORKER_PLUGIN_OWNERS=$1 docker-compose -f docker-compose.yml \
        -f deploy/compose/plugins.yml up -d --scale worker=1 worker >"$tmp/up" 2>&1 || { cat "$tmp/up"; fail "up"; }
}
with_folder ''
refused() { docker logs "$(nth_worker 1)" 2>&1 | grep "event=plugin_refused file=/plugins .*owned by user $owner"; }
until_true 30 refused
with_folder "$owner"
id=$(ctl enqueue shout --args '{"say": "here"}')
again() { [ "$(sql "SELECT result FROM claimd.job_history WHERE id = $id")" = '{"SAY": "HERE"}' ]; }
until_true 30 again

step "down"
./dev down >/dev/null 2>&1
[ -n "$(docker volume ls -q --filter "name=^${project}_postgres")" ] || fail "down took the database"
./dev down --volumes >/dev/null 2>&1
left=$(docker ps -aq --filter "label=com.docker.compose.project=$project"
    docker volume ls -q --filter "label=com.docker.compose.project=$project"
    docker network ls -q --filter "label=com.docker.compose.project=$project")
[ -z "$left" ] || fail "left behind: $left"
