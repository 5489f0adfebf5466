#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guide_python.sh SOURCE_DIR BIN_DIR: docs/guide/python.md as it is written there, but for two paths: the first program is
# served by a worker, its job ends as the page says, and the other blocks run (the last one with Debian's python3-psycopg).
set -eu
source_dir=$1
bin_dir=$2
tmp=$(mktemp -d)
cluster=
stop() {
    [ -z "$cluster" ] || kill "$cluster" 2>/dev/null || true
    [ -z "$cluster" ] || wait "$cluster" || true
    rm -rf "$tmp"
}
trap stop EXIT
chmod 755 "$tmp"
umask 022
mkdir "$tmp/handlers" "$tmp/sdk"
cp "$source_dir/sdk/python/claimd.py" "$tmp/sdk"

awk -v dir="$tmp" '
    /^```$/ && file != "" { close(file); file = ""; next }
    /^```(python|json)$/ { n++; file = sprintf("%s/%d.%s", dir, n, substr($0, 4)); next }
    file != "" { print >file }' "$source_dir/docs/guide/python.md"
mv "$tmp/1.python" "$tmp/thumbnail.py"
sed -e "s,/srv,$tmp," -e "s,/usr/share/claimd/python,$tmp/sdk," "$tmp/2.json" >"$tmp/handlers/thumbnails.json"

"$bin_dir/claimctl" dev --dir "$tmp/dev" --handlers "$tmp/handlers" --workers 1 >"$tmp/dev.log" 2>&1 &
cluster=$!

# until SECONDS COMMAND…
until_true() {
    end=$(($(date +%s) + $1))
    shift
    while ! "$@"; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "never became true: $*"
            cat "$tmp/dev.log" "$tmp/job"
            exit 1
        fi
        sleep 0.1
    done
}
until_true 120 grep -q 'In another terminal' "$tmp/dev.log"
eval "$(sed -n '/^  eval /p' "$tmp/dev.log")"

# shows ID TEXT: does `jobs show` have it?
shows() {
    "$bin_dir/claimctl" jobs show "$1" >"$tmp/job" && grep -q -e "$2" "$tmp/job"
}
id=$("$bin_dir/claimctl" enqueue thumbnail --args '{"path": "cat"}')
until_true 120 shows "$id" completed
until_true 1 shows "$id" cat.jpg
id=$("$bin_dir/claimctl" enqueue thumbnail --args '{"path": ""}')
until_true 120 shows "$id" discarded
until_true 1 shows "$id" 'args need a path'

PYTHONPATH=$tmp/sdk python3 "$tmp/3.python"
if /usr/bin/python3 -c 'import psycopg' 2>/dev/null; then
    PYTHONPATH=$tmp/sdk /usr/bin/python3 "$tmp/4.python"
    has_dog() {
        "$bin_dir/claimctl" jobs list --state completed --columns id,result | grep -q dog.jpg
    }
    until_true 120 has_dog
elif [ -n "${CLAIMD_REQUIRE_SERVICES:-}" ]; then
    echo '/usr/bin/python3 has no module psycopg (package python3-psycopg)'
    exit 1
fi

kill "$cluster"
wait "$cluster" || { cat "$tmp/dev.log"; exit 1; }
cluster=
