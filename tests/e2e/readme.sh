#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# readme.sh SOURCE_DIR BIN_DIR: runs the examples of the README unchanged: the handler compiles without a warning
# against the SDK alone, a private cluster loads it, and the result of a job is shown.
set -eu
source_dir=$1
bin_dir=$2
# shellcheck source=tests/e2e/dev_cluster.sh
. "$(dirname "$0")/dev_cluster.sh"
mkdir "$tmp/greet"

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source_dir/README.md" >"$tmp/greet/greet.c"
cc -Wall -Wextra -Wpedantic -Werror -shared -fPIC -I "$source_dir/sdk" -o "$tmp/greet/greet.so" "$tmp/greet/greet.c"

"$bin_dir/claimctl" dev --dir "$tmp/dev" --plugins "$tmp/greet" --workers 1 >"$tmp/dev.log" 2>&1 &
cluster=$!

until_true 120 grep -q 'In another terminal' "$tmp/dev.log"
eval "$(sed -n '/^  eval /p' "$tmp/dev.log")"

id=$("$bin_dir/claimctl" enqueue greet --args '{"name": "Ada"}')
is_done() {
    "$bin_dir/claimctl" jobs show "$id" >"$tmp/job" && grep -q completed "$tmp/job"
}
until_true 120 is_done
grep -q greeted_by_fence "$tmp/job" || { cat "$tmp/job"; exit 1; }

end_cluster
