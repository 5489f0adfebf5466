#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# inside.sh: run as root by test_installed.sh in a container of its own; /packages has the packages.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

step() {
    echo "--- $*"
}

die() {
    echo "FAILED: $*"
    systemctl --no-pager --full status 'claimd-*' 2>&1 | tail -n 40 || true
    journalctl --no-pager -n 60 -u 'claimd-*' || true
    exit 1
}

apt_get() {
    apt-get -q -y --no-install-recommends "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; die "apt-get $*"; }
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

property() {
    systemctl show --value -p "$2" "$1"
}

is() { # UNIT PROPERTY VALUE
    [ "$(property "$1" "$2")" = "$3" ]
}

traces() {
    find / -xdev \( -path /proc -o -path /sys -o -path /packages -o -path /tmp -o -path /var/log/journal \) -prune -o \
        -name '*claim*' -print | sort
}

ctl() {
    runuser -u claimd -- claimctl "$@" --config /etc/claimd/claimd.json
}

is_completed() {
    ctl jobs show "$1" | grep -q completed
}

run_job() {
    id=$(ctl enqueue noop)
    until_true 20 is_completed "$id" || die "job $id is not done: $(ctl jobs show "$id")"
}

traces >/tmp/before

step "install: a user, nothing is started or enabled"
apt_get install /packages/claim*.deb /packages/python3-claimd_*.deb
(cd / && python3 -c 'import claimd; claimd.Retry(30, "why")') || die "Python finds no module claimd"
id -u claimd >/dev/null || die "no user claimd"

step "the conformance kit proves the SDKs in the packages"
for candidate in python shell; do
    /usr/share/claimd/conformance/run.py /usr/share/claimd/conformance/candidates/$candidate.json >/tmp/out ||
        { cat /tmp/out; die "$candidate fails the kit"; }
done
for unit in claimd-scheduler claimd-worker; do
    is $unit ActiveState inactive || die "$unit was started"
    systemctl is-enabled -q $unit && die "$unit was enabled"
done
[ "$(stat -c '%U %a' /etc/claimd/credentials)" = 'root 700' ] || die "/etc/claimd/credentials can be read"

step "started without a configuration: exit code 2, one line, no restart"
for unit in claimd-scheduler claimd-worker; do
    systemctl start $unit 2>/dev/null && die "$unit started without lock nodes"
    is $unit ExecMainStatus 2 || die "$unit: exit code $(property $unit ExecMainStatus)"
    is $unit ActiveState failed || die "$unit is tried again"
    journalctl -q -o cat -u $unit | grep lock.nodes || die "$unit does not say what is missing"
done

step "set up: database, role, five Redis with a password"
as_postgres() {
    runuser -u postgres -- "$@" >/tmp/out 2>&1 || { cat /tmp/out; die "$*"; }
}
until_true 30 runuser -u postgres -- psql -qc 'SELECT 1' >/dev/null 2>&1 || die "no PostgreSQL"
as_postgres createdb claimd
as_postgres claimctl db migrate
as_postgres createuser claimd
as_postgres psql -qd claimd -c 'GRANT claimd_scheduler, claimd_worker, claimd_producer, claimd_reader TO claimd'
for port in 7001 7002 7003 7004 7005; do
    printf 'port %s\nrequirepass a-secret\nsave ""\nmaxmemory-policy noeviction\n' $port >/tmp/redis-$port.conf
    systemd-run -q --unit redis-$port redis-server /tmp/redis-$port.conf
    until_true 20 redis-cli -p $port ping >/dev/null 2>&1 || die "no Redis on port $port"
done
(umask 077 && echo a-secret >/etc/claimd/credentials/redis_password)
cat >/etc/claimd/claimd.json <<'END'
{
    "postgres": {"conninfo": "dbname=claimd host=/run/postgresql"},
    "lock": {
        "nodes": ["127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003", "127.0.0.1:7004", "127.0.0.1:7005"],
        "fresh_nodes": "trust"
    }
}
END

step "enable and start: back when both are ready; a job is done"
systemctl enable -q --now claimd-scheduler claimd-worker || die "not started"
run_job
journalctl -q -o cat -u claimd-worker | grep -q a-secret && die "the password is in the log"

step "reload, restart, kill: jobs go on"
for unit in claimd-scheduler claimd-worker; do
    before=$(property $unit MainPID)
    systemctl reload $unit
    run_job
    is $unit MainPID "$before" || die "$unit did not survive a reload"
    systemctl restart $unit || die "$unit was not restarted"
    run_job
    systemctl kill -s KILL --kill-who=main $unit
    until_true 20 is $unit NRestarts 1 || die "$unit was not restarted"
    until_true 20 is $unit ActiveState active || die "$unit did not come back"
done
run_job

step "metrics and readiness on the loopback"
for port in 8421 8422; do
    bash -c "exec 3<>/dev/tcp/127.0.0.1/$port && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && cat <&3" >/tmp/out || die "nobody on port $port"
    head -n 1 /tmp/out | grep -q ' 200 ' || { cat /tmp/out; die "port $port: not ready"; }
done

step "a worker that works outlives its watchdog; one that stands still is restarted by it"
mkdir -p /run/systemd/system/claimd-worker.service.d
printf '[Service]\nWatchdogSec=2\nRestartSec=0\n' >/run/systemd/system/claimd-worker.service.d/short.conf
systemctl daemon-reload
systemctl restart claimd-worker
is_old() { # three times the limit
    [ "$(ps -o etimes= -p "$(property claimd-worker MainPID)")" -gt 6 ]
}
until_true 20 is_old || die "the watchdog bites a worker that works"
is claimd-worker NRestarts 0 || die "the watchdog bites a worker that works"
systemctl kill -s STOP --kill-who=main claimd-worker
until_true 30 is claimd-worker NRestarts 1 || die "the watchdog did not bark"
journalctl -q -o cat -u claimd-worker | grep -q -i 'watchdog timeout' || die "restarted, but not by the watchdog"
rm -r /run/systemd/system/claimd-worker.service.d
systemctl daemon-reload
until_true 20 is claimd-worker ActiveState active || die "the worker did not come back"
run_job

step "PostgreSQL away at the start: exit code 3, tried again in 5 s, until it is back"
systemctl stop claimd-worker postgresql
systemctl start --no-block claimd-worker
until_true 30 is claimd-worker ExecMainStatus 3 || die "exit code $(property claimd-worker ExecMainStatus) without PostgreSQL"
is claimd-worker SubState auto-restart || die "the worker is not tried again"
systemctl start postgresql
until_true 60 is claimd-worker ActiveState active || die "the worker did not come back with PostgreSQL"
[ "$(property claimd-worker NRestarts)" -lt 10 ] || die "a storm of restarts: $(property claimd-worker NRestarts)"
run_job

step "a second worker on this host, as an instance"
sed 's/"lock": {/"worker": {"http_listen": ""},\n    "lock": {/' /etc/claimd/claimd.json >/etc/claimd/worker-two.json
systemctl start claimd-worker@two || die "no second worker"
[ "$(stat -c '%U %a' /var/lib/claimd/worker-two)" = 'claimd 700' ] || die "the state of the second worker is not its own"

step "upgrade: what ran is restarted, the changed configuration stays"
before=$(property claimd-worker MainPID)
apt_get install --reinstall /packages/claim*.deb
is claimd-worker MainPID "$before" && die "an upgrade left the old worker"
for unit in claimd-scheduler claimd-worker claimd-worker@two; do
    until_true 20 is $unit ActiveState active || die "$unit did not come back after the upgrade"
done
grep -q 7005 /etc/claimd/claimd.json || die "the configuration was overwritten"
run_job

step "remove: drained and gone; purge: only what an administrator wrote is left"
apt_get remove claimd-scheduler claimd-worker claimctl
pgrep -l claimd && die "still running"
[ -e /etc/claimd/claimd.json ] || die "remove took the configuration"
apt_get purge claimd-scheduler claimd-worker claimctl claimd-common claimd-dev python3-claimd
traces >/tmp/after
left=$(comm -13 /tmp/before /tmp/after | tr '\n' ' ')
[ "$left" = "/etc/claimd " ] || die "left behind: $left"
[ "$(find /etc/claimd -type f | sort | tr '\n' ' ')" = "/etc/claimd/credentials/redis_password /etc/claimd/worker-two.json " ] ||
    die "in /etc/claimd: $(find /etc/claimd)"
echo ok
