#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deploy/compose/make-secrets: what is there is kept, what is new is said, and the database's own password is never replaced. As
# root, who may give files the group of the containers.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/deploy/lib.sh"
[ "$(id -u)" -eq 0 ] || { echo "SKIPPED: only root gives files the group 10001 without Docker"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
make() {
    "$root/deploy/compose/make-secrets" "$dir/secrets" >"$dir/said" 2>&1
}

make || fail "the first time: $(cat "$dir/said")"
[ ! -s "$dir/said" ] || fail "the first time it says: $(cat "$dir/said")"
[ "$(find "$dir/secrets" -type f | wc -l)" -eq 8 ] || fail "secrets: $(ls "$dir/secrets")"
[ -z "$(find "$dir/secrets" -type f ! \( -gid 10001 -perm 0440 \))" ] || fail "$(ls -l "$dir/secrets")"
before=$(cd "$dir/secrets" && sha256sum -- *)
make || fail "again: $(cat "$dir/said")"
[ "$before" = "$(cd "$dir/secrets" && sha256sum -- *)" ] || fail "a secret was changed"

rm "$dir/secrets/redis_worker"
make || fail "without one: $(cat "$dir/said")"
grep -q "secrets/redis_worker was not there: it has a new password" "$dir/said" || fail "not said: $(cat "$dir/said")"
[ "$(wc -l <"$dir/said")" -eq 1 ] || fail "said: $(cat "$dir/said")"

rm "$dir/secrets/postgres_superuser"
! make || fail "a lost superuser's password was replaced"
grep -q "secrets/postgres_superuser is lost" "$dir/said" || fail "not said: $(cat "$dir/said")"
[ ! -e "$dir/secrets/postgres_superuser" ] || fail "it was made all the same"
