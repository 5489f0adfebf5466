#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deploy/redis/make-acl.sh: what it writes is an ACL file, and bad input is one line and exit code 2.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/deploy/lib.sh"
make_acl=$root/deploy/redis/make-acl.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

printf 'one&two\\three /four\r\n' >"$dir/worker"
printf 'plain' >"$dir/scheduler"
printf 'plain\nsecond\n' >"$dir/two_lines"
: >"$dir/empty"

out=$("$make_acl" claimd_worker="$dir/worker" claimd_scheduler="$dir/scheduler")
hash=$(printf '%s' 'one&two\three /four' | sha256sum | cut -d ' ' -f 1)
printf '%s\n' "$out" | grep -q "^user claimd_worker on #$hash " || fail "not the password's hash: $out"
[ "$(printf '%s\n' "$out" | grep -c '^user ')" -eq 3 ] || fail "expected default and two users: $out"
[ "$(printf '%s\n' "$out" | grep -vc '^user ')" -eq 0 ] || fail "not lines of users alone: $out"
! printf '%s\n' "$out" | grep -q '@\(PASSWORD\)@\|one&two\|plain' || fail "a place or a password is left: $out"

out=$("$make_acl" claimd_worker="$dir/worker" claimd_worker="$dir/scheduler")
hash2=$(printf plain | sha256sum | cut -d ' ' -f 1)
printf '%s\n' "$out" | grep -q "^user claimd_worker on #$hash #$hash2 resetkeys " || fail "not both hashes: $out"

# refused EXPECTED ARGUMENT…
refused() {
    expected=$1
    shift
    code=0
    said=$("$make_acl" "$@" 2>&1 >"$dir/out") || code=$?
    [ "$code" -eq 2 ] || fail "$*: exit $code, wanted 2"
    [ ! -s "$dir/out" ] || fail "$*: printed half a file"
    printf '%s\n' "$said" | tail -n 1 | grep -q "$expected" || fail "$*: said '$said', wanted '$expected'"
}

refused 'usage: '
refused "'claimd_worker': expected USER=PASSWORD_FILE" claimd_worker
refused "'nobody': no such user" nobody="$dir/worker"
refused "claimd_worker: cannot read the password in '$dir/missing'" claimd_worker="$dir/missing"
refused "claimd_worker: '$dir/empty' holds no password" claimd_worker="$dir/empty"
refused "claimd_worker: '$dir/two_lines' has more than one line" claimd_scheduler="$dir/scheduler" claimd_worker="$dir/two_lines"
