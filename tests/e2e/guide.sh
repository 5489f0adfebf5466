#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guide.sh SOURCE_DIR BIN_DIR PAGE: runs the examples of a page of docs/guide, unchanged and in their order, on a
# private cluster whose database is `app`, with the variables that `claimctl dev --env` prints: blocks of sh, sql,
# c and python (Debian's python3-psycopg). A block of text shows the output of the block before it: each of its
# lines must be somewhere in that output. What the page exports before it starts the cluster is set here, too.
set -eu
source_dir=$1
bin_dir=$2
page=$source_dir/docs/guide/$3
# shellcheck source=tests/e2e/dev_cluster.sh
. "$(dirname "$0")/dev_cluster.sh"
mkdir "$tmp/blocks"

awk -v dir="$tmp/blocks" '
    /^```$/ && file != "" { close(file); file = ""; next }
    /^```(sh|sql|c|python)$/ { n++; file = sprintf("%s/%03d.%s", dir, n, substr($0, 4)); printf "" >file; next }
    /^```text$/ { file = sprintf("%s/%03d.out", dir, n); printf "" >file; next }
    file != "" { print >file }' "$page"

if grep -q '^```python$' "$page" && ! /usr/bin/python3 -c 'import psycopg' 2>/dev/null; then
    echo 'SKIPPED: /usr/bin/python3 has no module psycopg (package python3-psycopg)'
    [ -n "${CLAIMD_REQUIRE_SERVICES:-}" ] || exit 77
    exit 1
fi

eval "$(sed -n 's/^\$ \(export CLAIMD_.*\)/\1/p' "$page")"
"$bin_dir/claimctl" dev --dir "$tmp/dev" --database app --workers 1 >"$tmp/dev.log" 2>&1 &
cluster=$!
tries=1200
until grep -q 'In another terminal' "$tmp/dev.log"; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ] || ! kill -0 "$cluster"; then
        cat "$tmp/dev.log"
        exit 1
    fi
    sleep 0.1
done
eval "$(sed -n '/^  eval /p' "$tmp/dev.log")"
cd "$tmp"

failed() {
    echo "$3, block of line $(grep -nxF -m 1 "$(head -n 1 "$1")" "$page" | cut -d: -f1): $2"
    cat "$1" "$tmp/output"
    exit 1
}
run_c() {
    # shellcheck disable=SC2046 # options
    cc -Wall -Wextra -Wpedantic -Werror -o "$tmp/program" "$1" $(pkg-config --cflags --libs libpq) &&
        "$tmp/program"
}
count=0
for block in "$tmp"/blocks/*; do
    case $block in *.out) continue ;; esac
    count=$((count + 1))
    case $block in
        *.sh) sh -eu "$block" >"$tmp/output" 2>&1 </dev/null || failed "$block" "exit $?" "$3" ;;
        *.c) run_c "$block" >"$tmp/output" 2>&1 || failed "$block" "exit $?" "$3" ;;
        *.python) /usr/bin/python3 "$block" >"$tmp/output" 2>&1 </dev/null || failed "$block" "exit $?" "$3" ;;
        *) psql -XqAt -v ON_ERROR_STOP=1 -d "$DATABASE" -f "$block" >"$tmp/output" 2>&1 || failed "$block" refused "$3" ;;
    esac
    wanted=${block%.*}.out
    [ -e "$wanted" ] || continue
    while IFS= read -r line; do
        grep -qF -e "$line" "$tmp/output" || failed "$block" "does not print: $line" "$3"
    done <"$wanted"
done
[ "$count" -gt 0 ] || { echo "$3 has no examples"; exit 1; }

end_cluster
