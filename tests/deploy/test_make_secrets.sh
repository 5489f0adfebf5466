#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deploy/compose/make-secrets: what is there is kept, what is new is said, and the database's own password is never replaced.
# Only root may give files the group of the containers; others have Docker do it, which is a script here.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/deploy/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"
printf '#!/bin/sh\necho "$*" >"%s/asked"\n' "$dir" >"$dir/bin/docker"
chmod 0755 "$dir/bin/docker"
make() {
    PATH="$dir/bin:$PATH" "$root/deploy/compose/make-secrets" "$dir/secrets" "$@" >"$dir/said" 2>&1
}

make || fail "the first time: $(cat "$dir/said")"
[ ! -s "$dir/said" ] || fail "the first time it says: $(cat "$dir/said")"
[ "$(find "$dir/secrets" -type f | wc -l)" -eq 12 ] || fail "secrets: $(ls "$dir/secrets")"
[ -z "$(find "$dir/secrets" -type f ! -perm 0440)" ] || fail "$(ls -l "$dir/secrets")"
if [ "$(id -u)" -eq 0 ]; then
    [ -z "$(find "$dir/secrets" -type f ! -gid 10001)" ] || fail "$(ls -l "$dir/secrets")"
else
    grep -q "chgrp 10001 /secrets" "$dir/asked" || fail "Docker was not asked for the group 10001"
fi
before=$(cd "$dir/secrets" && sha256sum -- *)
make || fail "again: $(cat "$dir/said")"
[ "$before" = "$(cd "$dir/secrets" && sha256sum -- *)" ] || fail "a secret was changed"

# A Redis password is changed with both valid in between, in the file itself, which containers have mounted.
old=$(cat "$dir/secrets/redis_worker")
inode=$(stat -c %i "$dir/secrets/redis_worker" "$dir/secrets/redis_users")
make --rotate redis_worker || fail "rotate: $(cat "$dir/said")"
[ "$old" != "$(cat "$dir/secrets/redis_worker")" ] || fail "rotate: the password is the same"
[ "$old" = "$(cat "$dir/secrets/redis_worker.before")" ] || fail "rotate: the old password is lost"
[ "$inode" = "$(stat -c %i "$dir/secrets/redis_worker" "$dir/secrets/redis_users")" ] || fail "rotate: other files"
[ -z "$(find "$dir/secrets" -type f ! -perm 0440)" ] || fail "rotate: $(ls -l "$dir/secrets")"
hashes() {
    sed -n "s/^user claimd_$1 on \(#.*\) resetkeys .*/\1/p" "$dir/secrets/redis_users" | wc -w
}
[ "$(hashes worker) $(hashes scheduler) $(hashes ctl)" = "2 1 1" ] || fail "rotate: $(cat "$dir/secrets/redis_users")"
make || fail "in between: $(cat "$dir/said")"
[ "$(hashes worker)" -eq 2 ] || fail "in between: $(cat "$dir/secrets/redis_users")"
! make --rotate redis_ctl redis_worker || fail "rotated twice"
grep -q "redis_worker is being changed already" "$dir/said" || fail "not said: $(cat "$dir/said")"
[ ! -e "$dir/secrets/redis_ctl.before" ] || fail "half of a refused change was made"
make --settle || fail "settle: $(cat "$dir/said")"
[ "$(hashes worker)" -eq 1 ] || fail "settle: $(cat "$dir/secrets/redis_users")"
[ ! -e "$dir/secrets/redis_worker.before" ] || fail "settle: the old password is there still"
! make --rotate postgres_worker || fail "postgres_worker was rotated"
grep -q "'postgres_worker': allowed: redis_scheduler redis_worker redis_ctl" "$dir/said" || fail "not said: $(cat "$dir/said")"
! make --turn || fail "an unknown option"

rm "$dir/secrets/redis_worker"
make || fail "without one: $(cat "$dir/said")"
grep -q "secrets/redis_worker was not there: it has a new password" "$dir/said" || fail "not said: $(cat "$dir/said")"
[ "$(wc -l <"$dir/said")" -eq 1 ] || fail "said: $(cat "$dir/said")"

rm "$dir/secrets/postgres_superuser"
! make || fail "a lost superuser's password was replaced"
grep -q "secrets/postgres_superuser is lost" "$dir/said" || fail "not said: $(cat "$dir/said")"
[ ! -e "$dir/secrets/postgres_superuser" ] || fail "it was made all the same"
