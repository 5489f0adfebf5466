#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Images carry this release's version: the tags in the compose files and in what is written about them, and the labels.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/deploy/lib.sh"
cd "$root"
version=$(sed -n 's/^set(CLAIMD_RELEASE \(.*\))$/\1/p' cmake/Version.cmake)
[ -n "$version" ] || fail "cmake/Version.cmake has no release"

grep -q "^ARG VERSION=$version\$" Dockerfile || fail "Dockerfile: ARG VERSION is not $version"
for label in title description version revision licenses; do
    grep -q "org.opencontainers.image.$label=" Dockerfile || fail "Dockerfile: no label $label"
done
files="Dockerfile docker-compose.yml deploy/compose/*.yml deploy/compose/.env.example deploy/compose/make-secrets docs/many-hosts.md
    examples/handler-image/Dockerfile examples/handler-image-python/Dockerfile examples/handler-image-python/compose.yml"
# shellcheck disable=SC2086  # several
other=$(grep -noE '\bclaimd(-worker)?:[0-9][0-9.]*' $files | grep -vE "claimd(-worker)?:$version\$" || true)
[ -z "$other" ] || fail "another version than $version: $other"
# shellcheck disable=SC2086
untagged=$(grep -nE '(IMAGE:-|-t |WORKER=)claimd(-worker)?([} ]|$)' $files || true)
[ -z "$untagged" ] || fail "without a version: $untagged"
