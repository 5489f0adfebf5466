#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ./dev up, over a Docker that is a script: what it says when a container fails, and when a secret is lost.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/deploy/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"
cat >"$dir/bin/docker" <<END
#!/bin/sh
case "\$*" in
    "compose version"*) exit 1 ;;
    "volume ls"*) cat "$dir/volume" ;;
    "inspect --format"*) cat "$dir/state" ;;
    logs*) cat "$dir/log" ;;
    images*title=claimd-build) printf 'newest\nolder\noldest\n' ;;
    images*title=claimd) echo replaced ;;
    rmi*) echo "\$2" >>"$dir/removed" ;;
esac
END
cat >"$dir/bin/docker-compose" <<END
#!/bin/sh
case \$1 in
    config) echo "image: claimd" ;;
    up) echo "\$*" >"$dir/asked"; exit "\$(cat "$dir/up_code")" ;;
    ps) cat "$dir/there" ;;
    port) echo 127.0.0.1:15432 ;;
esac
END
chmod 0755 "$dir/bin/docker" "$dir/bin/docker-compose"
: >"$dir/volume"
echo 1 >"$dir/up_code"
echo 0123456789ab >"$dir/there"
for name in $(env | sed -n 's/^\(\(CLAIMD\|COMPOSE\)_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

# up EXPECTED_CODE: says what is in $dir/said
up() {
    code=0
    PATH="$dir/bin:$PATH" CLAIMD_SECRETS="$dir/secrets" "$root/dev" up >"$dir/said" 2>&1 || code=$?
    [ "$code" -eq "$1" ] || fail "exit $code, wanted $1: $(cat "$dir/said")"
}

says() {
    grep -qF -- "$1" "$dir/said" || fail "'$1' is not in: $(cat "$dir/said")"
}

# The reason is not in the last line.
echo "/p_postgres_1 0 restarting 1 unhealthy" >"$dir/state"
cat >"$dir/log" <<'END'
LOG:  starting PostgreSQL 15
FATAL:  could not write lock file "postmaster.pid": No space left on device
LOG:  database system is shut down
END
up 3
says "dev: p_postgres_1: restarting 1 unhealthy, its log:"
says '    FATAL:  could not write lock file "postmaster.pid": No space left on device'
says "dev: not everything was started"
! grep -q "shut down" "$dir/said" || fail "lines that say nothing: $(cat "$dir/said")"

echo "/p_worker_1 0 running 0 unhealthy" >"$dir/state"
cat >"$dir/log" <<'END'
ts=1 level=info program=claimd-worker event=started
ts=2 level=warn program=claimd-worker event=node_refused node=lock1:6379 err="WRONGPASS invalid username-password pair"
ts=3 level=info program=claimd-worker event=job_finished
END
up 3
says "err=\"WRONGPASS invalid username-password pair\""

echo "exec format" >"$dir/log"
up 3
says "    exec format"

# Between two crashes of a loop it runs; what only waits for it is left out.
printf '/p_postgres_1 2 running 0 starting\n/p_lock1_1 0 running 0 starting\n' >"$dir/state"
echo "docker-entrypoint.sh: POSTGRES_PASSWORD is not set" >"$dir/log"
up 3
says "dev: p_postgres_1: running 0 starting, after 2 restarts, its log:"
says "    docker-entrypoint.sh: POSTGRES_PASSWORD is not set"
! grep -q p_lock1_1 "$dir/said" || fail "what only starts is blamed: $(cat "$dir/said")"

# A loop of crashes is told at once, not after the 90 s in which all may become healthy.
echo 0 >"$dir/up_code"
echo "/p_worker_1 3 restarting 2 " >"$dir/state"
echo 'ts=1 level=error program=claimd-worker event=start_failed err="config: lock.nodes: wrong"' >"$dir/log"
began=$(date +%s)
up 3
says "dev: p_worker_1: restarting 2, after 3 restarts, its log:"
says 'err="config: lock.nodes: wrong"'
says "dev: a container ends again and again"
[ $(($(date +%s) - began)) -lt 45 ] || fail "it waited for a crash loop to become healthy"
echo 1 >"$dir/up_code"

# What the build before left is removed, but for the first stage of the last one, with which the next begins.
echo 0 >"$dir/up_code"
echo "/p_worker_1 0 running 0 healthy" >"$dir/state"
up 0
says "PGPASSWORD=\"\$(cat \"$dir/secrets/postgres_producer\")\" psql"
says "'host=127.0.0.1 port=15432 dbname=claimd user=claimd_producer_login'"
[ "$(sort "$dir/removed" | tr '\n' ' ')" = 'older oldest replaced ' ] || fail "removed: $(cat "$dir/removed")"
echo 1 >"$dir/up_code"

# The database outlived its password.
rm -rf "$dir/secrets"
echo "p_postgres" >"$dir/volume"
up 5
says "$dir/secrets/postgres_superuser is lost, and the database in the volume p_postgres has that password"
[ ! -e "$dir/secrets/postgres_superuser" ] || fail "a new password was made"

# What was scaled stays so; $CLAIMD_WORKERS says how many there shall be.
expect_asked() {
    [ "$(cat "$dir/asked")" = "$1" ] || fail "asked for '$(cat "$dir/asked")', wanted '$1'"
}
expect_asked "up -d"
: >"$dir/volume"
printf 'a\nb\nc\n' >"$dir/there"
up 3
expect_asked "up -d --scale worker=3"
export CLAIMD_WORKERS=5
up 3
expect_asked "up -d --scale worker=5"
CLAIMD_WORKERS=many
up 2
says "CLAIMD_WORKERS is 'many'; allowed: a number"
