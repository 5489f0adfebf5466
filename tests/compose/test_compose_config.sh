#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_compose_config.sh SOURCE_DIR: docker-compose accepts every file, with the settings of .env.example; without those that
# it needs, one line says which. Exit 77, loudly, without docker-compose. Needs no engine.
set -eu
source=$1
command -v docker-compose >/dev/null || {
    echo "SKIPPED: docker-compose is missing: no compose file was looked at"
    exit 77
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -r "$source/docker-compose.yml" "$source/deploy" "$tmp"
cp "$tmp/deploy/compose/.env.example" "$tmp/deploy/compose/.env"
for name in $(env | sed -n 's/^\(\(CLAIMD\|COMPOSE\)_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

# refused WHAT COMMAND…: fails, and says WHAT
refused() {
    what=$1
    shift
    if "$@" >"$tmp/out" 2>&1 || ! grep -q "$what" "$tmp/out"; then
        echo "wanted a refusal with '$what', got:"
        cat "$tmp/out"
        exit 1
    fi
}

docker-compose -f "$tmp/docker-compose.yml" config -q
CLAIMD_PLUGINS=/srv docker-compose -f "$tmp/docker-compose.yml" -f "$tmp/deploy/compose/plugins.yml" config -q
cp -r "$source/examples" "$tmp"
docker-compose -f "$tmp/docker-compose.yml" -f "$tmp/examples/handler-image-python/compose.yml" config >"$tmp/python"
grep -q "context: $tmp/examples/handler-image-python" "$tmp/python"
grep -q 'target: handlers' "$tmp/python"
refused CLAIMD_PLUGINS docker-compose -f "$tmp/docker-compose.yml" -f "$tmp/deploy/compose/plugins.yml" config -q
docker-compose -f "$tmp/docker-compose.yml" -f "$tmp/deploy/compose/monitoring.yml" config >"$tmp/monitored"
for folder in deploy/prometheus deploy/grafana/provisioning deploy/grafana/claimd.json; do # feat.B29
    if ! grep -q "$tmp/$folder:/etc/" "$tmp/monitored" || [ ! -e "$tmp/$folder" ]; then
        echo "monitoring.yml does not mount $folder"
        exit 1
    fi
done

for role in database lock scheduler worker web; do
    (cd "$tmp/deploy/compose" && COMPOSE_FILE=$role.yml docker-compose config -q)
done
(cd "$tmp/deploy/compose" && CLAIMD_PRIMARY=host=10.0.0.1 COMPOSE_FILE=standby.yml docker-compose config -q)
rm "$tmp/deploy/compose/.env"
refused CLAIMD_BIND docker-compose -f "$tmp/deploy/compose/database.yml" config -q
refused CLAIMD_BIND docker-compose -f "$tmp/deploy/compose/lock.yml" config -q
refused 'CLAIMD_\(PRIMARY\|BIND\)' docker-compose -f "$tmp/deploy/compose/standby.yml" config -q
refused 'CLAIMD_\(LOCK_NODES\|POSTGRES\)' docker-compose -f "$tmp/deploy/compose/scheduler.yml" config -q
refused 'CLAIMD_\(LOCK_NODES\|POSTGRES\)' docker-compose -f "$tmp/deploy/compose/worker.yml" config -q
refused 'CLAIMD_\(LOCK_NODES\|POSTGRES\)' docker-compose -f "$tmp/deploy/compose/web.yml" config -q

# What holds for every container that stays.
for file in docker-compose.yml deploy/compose/database.yml deploy/compose/lock.yml deploy/compose/scheduler.yml \
    deploy/compose/worker.yml deploy/compose/web.yml deploy/compose/standby.yml deploy/compose/monitoring.yml; do
    CLAIMD_BIND=127.0.0.1 CLAIMD_LOCK_NODES=a:1 CLAIMD_POSTGRES=host=a CLAIMD_PRIMARY=host=a docker-compose -f "$tmp/$file" config >"$tmp/config"
    for rule in 'restart: unless-stopped' 'read_only: true' 'no-new-privileges:true' 'max-size: 10m' 'mem_limit: '; do
        grep -q "$rule" "$tmp/config" || {
            echo "$file: no '$rule'"
            exit 1
        }
    done
done
