#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guide_handlers.sh SOURCE_DIR BIN_DIR: checks that the example of docs/guide/handlers.md, unchanged, compiles
# without a warning against the SDK alone, and that its jobs end as the page describes.
set -eu
source_dir=$1
bin_dir=$2
# shellcheck source=tests/e2e/dev_cluster.sh
. "$(dirname "$0")/dev_cluster.sh"
mkdir "$tmp/order"

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source_dir/docs/guide/handlers.md" >"$tmp/order/order.c"
cc -Wall -Wextra -Werror -shared -fPIC -I "$source_dir/sdk" -o "$tmp/order/order.so" "$tmp/order/order.c"

"$bin_dir/claimctl" dev --dir "$tmp/dev" --plugins "$tmp/order" --workers 1 >"$tmp/dev.log" 2>&1 &
cluster=$!

until_true 120 grep -q 'In another terminal' "$tmp/dev.log"
eval "$(sed -n '/^  eval /p' "$tmp/dev.log")"

# shows ID TEXT: true if `jobs show` prints the text
shows() {
    "$bin_dir/claimctl" jobs show "$1" >"$tmp/job" && grep -q -e "$2" "$tmp/job"
}
# ends ARGS STATE TEXT: checks that a job with these args reaches the state, and that TEXT is shown for it
ends() {
    id=$("$bin_dir/claimctl" enqueue ship --args "$1")
    until_true 120 shows "$id" "$2"
    until_true 1 shows "$id" "$3"
}
ends '{"order": 11}' completed shipped
ends '{"order": 13}' completed '"shipped": 2'
until_true 1 shows "$id" 'the printer jams'
"$bin_dir/claimctl" jobs show "$id" --log 1 | grep -q 'step 4 done in attempt 1'
ends '{"order": 19}' cancelled 'order 19 is void'
ends '{"order": 15}' snoozed 'order 15 is not packed yet'
ends '{}' discarded 'args need an order'

end_cluster
