#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh DIRECTORY: builds DIRECTORY/redsync-contender. What it fetches and makes for it lies there as well. 77 = no Go,
# or the modules can't be had.
set -eu
out=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
skip() {
    echo "SKIPPED: the contest with redsync: $1" >&2
    exit 77
}
command -v go >/dev/null || skip "Go isn't installed"
export GOCACHE="$out/cache" GOPATH="$out/path" GOTOOLCHAIN=local GOFLAGS=-modcacherw
go -C "$here" mod download >"$out/log" 2>&1 || skip "$(tail -n 1 "$out/log")"
go build -C "$here" -buildvcs=false -o "$out/redsync-contender" .
