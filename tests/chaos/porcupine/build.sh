#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh PROGRAM WORK: builds the second opinion; its downloads and intermediate files are in WORK. Then checks
# that it accepts what is possible and rejects what is not. Exit 77: there is no Go, or its module cannot be
# downloaded.
set -eu
program=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
skip() {
    echo "SKIPPED: Porcupine's second opinion: $1" >&2
    exit 77
}
command -v go >/dev/null || skip "Go isn't installed"
export GOCACHE="$work/cache" GOPATH="$work/path" GOTOOLCHAIN=local GOFLAGS=-modcacherw
go -C "$here" mod download >"$work/log" 2>&1 || skip "$(tail -n 1 "$work/log")"
go -C "$here" build -buildvcs=false -o "$program" . || skip "this Go can't build it"

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
mkdir "$run/history"
line() {
    printf '{"t":%s,"p":"%s","op":"%s","ph":"%s","job":1,"f":%s}\n' "$@" >>"$run/history/w.jsonl"
}
line 1 w.1 claim inv 0
line 2 w.1 claim ok 7
line 3 s.1 reap inv 7
line 4 s.1 reap ok 0
line 5 w.2 claim inv 0
line 6 w.2 claim ok 8
line 7 w.1 complete inv 7
line 8 w.1 complete stale 7
line 9 w.2 complete inv 8
line 10 w.2 complete ok 8
"$program" "$run" || { echo "a possible history was refused"; exit 1; }
sed -i 's/complete","ph":"stale/complete","ph":"ok/' "$run/history/w.jsonl"
if "$program" "$run" >"$work/verdict"; then
    echo "a late completion that was accepted passed for possible"
    exit 1
fi
grep -q '^porcupine: FAILED: 1 of 1 jobs$' "$work/verdict"
