#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guide_python.sh SOURCE_DIR BIN_DIR: docs/guide/python.md as it is written there, but for two paths: the first program
# is served by a worker, its job ends as the page says, and the other blocks run (the last one with Debian's
# python3-psycopg and python3-psycopg2).
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
results() {
    "$bin_dir/claimctl" jobs list --state completed --columns id,result | grep -qF "$1"
}
# by MODULE: the block that makes a job, and one with options of many types, by psycopg or psycopg2
by() {
    if ! /usr/bin/python3 -c "import $1" 2>/dev/null; then
        echo "SKIPPED: /usr/bin/python3 has no module $1 (package python3-$1)"
        [ -z "${CLAIMD_REQUIRE_SERVICES:-}" ] || exit 1
        return 0
    fi
    sed -e "s/psycopg/$1/g" -e "s/dog/$1/" "$tmp/4.python" >"$tmp/by_$1.py"
    cat >"$tmp/options.py" <<EOF
import datetime, os, $1, claimd
with $1.connect(os.environ["DATABASE"]) as conn:
    claimd.enqueue(conn, "thumbnail", {"path": "options $1"}, tags=["a b", "c"], metadata={"m": [1]}, priority=3,
                   timeout=datetime.timedelta(seconds=90), unique_key="$1")
EOF
    PYTHONPATH=$tmp/sdk${PYTHONPATH:+:$PYTHONPATH} /usr/bin/python3 "$tmp/by_$1.py"
    PYTHONPATH=$tmp/sdk${PYTHONPATH:+:$PYTHONPATH} /usr/bin/python3 "$tmp/options.py"
    until_true 120 results "\"$1.jpg"
    until_true 120 results "options $1.jpg"
}
by psycopg
by psycopg2

kill "$cluster"
wait "$cluster" || { cat "$tmp/dev.log"; exit 1; }
cluster=
