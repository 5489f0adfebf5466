#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guide_python.sh SOURCE_DIR BIN_DIR: runs docs/guide/python.md unchanged. Its commands make a project, whose job
# ends as the page describes; its program, put in place of the project's, is served by a worker; its handler file
# equals the generated one; and the other blocks run (the last one with Debian's python3-psycopg and
# python3-psycopg2).
set -eu
source_dir=$1
bin_dir=$2
# shellcheck source=tests/e2e/dev_cluster.sh
. "$(dirname "$0")/dev_cluster.sh"
umask 022
mkdir "$tmp/blocks" "$tmp/bin" "$tmp/sdk"
cp "$source_dir/sdk/python/claimd.py" "$tmp/sdk"
cd "$tmp"
PATH=$bin_dir:$PATH
export PATH

awk -v dir="$tmp/blocks" '
    /^```$/ && file != "" { close(file); file = ""; next }
    /^```(sh|python|json)$/ { type = substr($0, 4); file = sprintf("%s/%d.%s", dir, ++n[type], type); next }
    file != "" { print >file }' "$source_dir/docs/guide/python.md"

# command N: prints the N-th line for a shell
command() {
    sed 's,\./dev claimctl,claimctl,' "$tmp/blocks/$1.sh"
}
eval "$(command 1)"
sed "s,/srv,$tmp," "$tmp/blocks/1.json" | diff - thumbnail/handlers/thumbnail.json
eval "exec $(command 2) --dir $tmp/dev --workers 1" >"$tmp/dev.log" 2>&1 &
cluster=$!

until_true 120 grep -q 'In another terminal' "$tmp/dev.log"

# shows ID TEXT: true if `jobs show` prints the text
shows() {
    claimctl jobs show "$1" >"$tmp/job" && grep -q -e "$2" "$tmp/job"
}
eval "$(command 3 | sed "s,dev --env,& --dir $tmp/dev,")" >"$tmp/id"
until_true 120 shows "$(cat "$tmp/id")" 'counted": 3'

cp "$tmp/blocks/1.python" thumbnail/handler.py
kill -HUP "$(pgrep -P "$cluster" claimd-worker)"
# A process of the old program may still get the job first.
is_new_one() {
    id=$(eval "$(command 4)")
    until_true 120 shows "$id" 'completed\|discarded'
    shows "$id" cat.jpg
}
until_true 120 is_new_one
id=$(claimctl enqueue thumbnail --args '{"path": ""}')
until_true 120 shows "$id" discarded
until_true 1 shows "$id" 'args need a path'

PYTHONPATH=$tmp/sdk python3 "$tmp/blocks/2.python"
results() {
    claimctl jobs list --state completed --columns id,result | grep -qF "$1"
}
# by MODULE: runs the block that makes a job, and one with options of many types, by psycopg or psycopg2
by() {
    if ! /usr/bin/python3 -c "import $1" 2>/dev/null; then
        echo "SKIPPED: /usr/bin/python3 has no module $1 (package python3-$1)"
        [ -z "${CLAIMD_REQUIRE_SERVICES:-}" ] || exit 1
        return 0
    fi
    sed -e "s/psycopg/$1/g" -e "s/dog/$1/" "$tmp/blocks/3.python" >"$tmp/by_$1.py"
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

end_cluster
