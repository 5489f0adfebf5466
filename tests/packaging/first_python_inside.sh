#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# first_python_inside.sh: run as root by test_first_python.sh in a container of its own; /packages has the packages, /python.md
# the guide. From the first command to the result of the job it may take a minute.
set -eu
umask 022
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
most_s=60

die() {
    echo "FAILED: $*"
    cat /tmp/dev.log /tmp/job 2>/dev/null || true
    exit 1
}

# until_true SECONDS COMMAND…
until_true() {
    deadline=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$deadline" ] || die "never became true: $*"
        sleep 0.1
    done
}

# What the guide names, by its own list: ours are files here.
names=$(sed -n 's/^Packages: //p' /python.md | tr -d '`.,')
[ -n "$names" ] || die "the guide names no packages"
files=
for name in $names; do
    for file in /packages/"$name"_*.deb; do
        [ -e "$file" ] && name=$file
    done
    files="$files $name"
done
# shellcheck disable=SC2086  # words
{ apt-get -q update && apt-get -q -y --no-install-recommends install /packages/claimd-common_*.deb $files; } >/tmp/apt.log 2>&1 ||
    { tail -n 30 /tmp/apt.log; die "apt-get install $files"; }

# command N: the N-th block for a shell, as it is for whoever has the packages
command() {
    awk -v wanted="$1" '/^```$/ { inside = 0 } inside { print } /^```sh$/ && ++n == wanted { inside = 1 }' /python.md |
        sed 's,\./dev claimctl,claimctl,g'
}
is_counted() {
    claimctl jobs show "$(cat /tmp/id)" >/tmp/job 2>&1 && grep -q '"counted": 3' /tmp/job
}

cd /srv
began=$(date +%s)
eval "$(command 1)"
eval "exec $(command 2)" >/tmp/dev.log 2>&1 &
cluster=$!
until_true 120 grep -qs 'In another terminal' /tmp/dev.log
eval "$(command 3)" >/tmp/id
until_true 120 is_counted
took=$(($(date +%s) - began))
kill "$cluster"
wait "$cluster" || die "the cluster ended badly"
[ "$took" -le "$most_s" ] || die "it took $took s, at most $most_s"
echo "ok: the first job had its result after $took s"
