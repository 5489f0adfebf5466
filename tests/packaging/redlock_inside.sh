#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# redlock_inside.sh: run as root by test_redlock_packages.sh in a container of its own; /packages has the packages, and /README.md is
# that of the lock library. What is run is what stands there.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
readme=/README.md

step() {
    echo "--- $*"
}

die() {
    echo "FAILED: $*" >&2
    exit 1
}

quietly() {
    "$@" >/tmp/log 2>&1 || { cat /tmp/log; die "$*"; }
}

# until_true SECONDS COMMAND…
until_true() {
    deadline=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        sleep 0.1
    done
}

# block HEADING [LANGUAGE]: prints the first block of code in that language below that heading
block() {
    awk -v heading="$1" -v fence="\`\`\`${2:-}" '
        $0 == heading { below = 1; next }
        below && inside && /^```$/ { exit }
        inside { print; next }
        below && $0 == fence { inside = 1 }' "$readme" >/tmp/block
    [ -s /tmp/block ] || die "$readme: no block '${2:-}' below '$1'"
    cat /tmp/block
}

step "install, by the command of the page: nothing else is needed for it"
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/90test
block '## Install' sh | grep '^apt-get install ' >/tmp/install.sh || die "$readme: how are the packages installed?"
quietly apt-get -q update
cd /packages
quietly sh -e /tmp/install.sh
cd /tmp
ldconfig -p | grep -q libredlock.so.0 || die "ldconfig was not triggered"
redlock help >/dev/null || die "the command does not run"

step "three masters at the addresses of the page"
quietly apt-get -q install --no-install-recommends redis-server iproute2 cron faketime
block '### C' c >nightly.c
nodes=$(sed -n 's/^REDLOCK_NODES=//p' "$readme")
for address in $(echo "$nodes" | tr ',' ' '); do
    grep -qF "$address" nightly.c || die "$readme: $address is in one example only"
    ip address add "$address/32" dev lo
    quietly redis-server --bind "$address" --protected-mode no --save '' --daemonize yes --dir /tmp
    until_true 60 redis-cli -h "$address" ping >/dev/null 2>&1 || die "no Redis at $address"
done

step "the C example: it has the lock as soon as masters that were just started may vote"
block '### C' sh >compile.sh
quietly sh -e compile.sh
has_lock() {
    ./nightly >nightly.out 2>&1 && [ "$(cat nightly.out)" = 'no other client runs this now' ]
}
until_true 180 has_lock || die "it never had the lock: $(cat nightly.out)"

step "the Python example"
block '### Python' python >nightly.py
python_has_lock() {
    python3 nightly.py >python.out 2>&1
}
until_true 60 python_has_lock || die "nightly.py failed: $(cat python.out)"
grep -q '^no other client runs this now; fence [0-9]' python.out || die "nightly.py said: $(cat python.out)"

step "the crontab: at three o'clock cron runs the backup under the lock"
block '### Shell and crontab' >table
line=$(sed -n 's/^0 3 \* \* \*  *//p' table)
backup=$(echo "$line" | sed -n 's/.* -- //p')
[ -n "$backup" ] || die "$readme: where is the crontab's line?"
printf '#!/bin/sh\necho backed up >>/tmp/backups\n' >"$backup"
chmod 755 "$backup"
quietly crontab table
faketime '2030-01-01 02:59:50' cron -f &
until_true 180 test -s backups || die "no backup: $(redlock nodes --nodes "$nodes" 2>&1)"

step "the same line on a host whose clock is behind: exit code 75, no second backup"
code=0
REDLOCK_NODES=$nodes sh -c "$line" >behind.out 2>&1 || code=$?
[ "$code" -eq 75 ] || die "exit code $code: $(cat behind.out)"
[ "$(wc -l <backups)" -eq 1 ] || die "backups: $(cat backups)"

step "removed: nothing is left, and the loader knows the library no more"
quietly apt-get -q purge libredlock0 libredlock-dev python3-redlock redlock-tools
left=$(find /usr /etc -xdev -name '*redlock*')
[ -z "$left" ] || die "left behind: $left"
if ldconfig -p | grep redlock; then die "ldconfig was not triggered"; fi
echo ok
