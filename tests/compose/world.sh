# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# What the tests with containers share; to be sourced. Needs $source and $project (none may begin as another); makes $tmp, and at the end
# of the test nothing is left of the projects that are called $project….

if ! command -v docker-compose >/dev/null || ! docker version >/dev/null 2>&1; then
    echo "SKIPPED: no Docker engine answers, or no docker-compose: compose files, images and many machines were NOT tested"
    exit 77
fi
for name in $(env | sed -n 's/^\(\(CLAIMD\|COMPOSE\)_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done
export CLAIMD_IMAGE=claimdc CLAIMD_WORKER_IMAGE=claimdc-worker COMPOSE_PROJECT_NAME="$project"

# Label filters don't know patterns, so by their names.
remove_all() {
    docker ps -aq --filter "name=^/?${project}[0-9a-z]*[_-]" | xargs -r docker rm -fv >/dev/null
    docker volume ls -q --filter "name=^${project}[0-9a-z]*[_-]" | xargs -r docker volume rm >/dev/null
    # An engine may keep a network whose containers it has miscounted.
    docker network ls -q --filter "name=^${project}[0-9a-z]*[_-]" | xargs -r -n 1 docker network rm >/dev/null 2>&1 || true
}

finish() {
    code=$?
    trap - EXIT
    if [ "$code" -ne 0 ]; then
        docker ps -a --filter "name=^/?${project}[0-9a-z]*[_-]" --format '{{.Names}} {{.Status}}'
        for container in $(docker ps -a --filter "name=^/?${project}[0-9a-z]*[_-]" --format '{{.Names}}'); do
            echo "== $container"
            docker logs "$container" 2>&1 | grep -v event=job_ | tail -n 15
        done
    fi
    remove_all
    rm -rf "$tmp"
    exit "$code"
}
tmp=$(mktemp -d)
remove_all
trap finish EXIT
trap 'exit 1' HUP INT TERM

step() {
    echo "=== $(date +%T) $*"
}

fail() {
    echo "FAILED: $*"
    exit 1
}

# until_true SECONDS COMMAND…
until_true() {
    end=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$end" ] || fail "never became true: $*"
        sleep 0.1
    done
}

# The tests look into Redis, which nobody else may: one user more, who may scan.
cp "$source/deploy/redis/claimd.acl" "$tmp/acl"
echo 'user test on nopass ~* -@all +scan' >>"$tmp/acl"
export TEMPLATE="$tmp/acl"

# locks_left CONTAINER: the lock keys of that node
locks_left() {
    docker exec "$1" redis-cli --user test --pass '' --no-auth-warning --scan --pattern 'claimd:job:[0-9]*'
}
