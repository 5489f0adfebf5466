#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# once.sh SDK HOW -- ARG: a command for one job, as its args say; for tests.
set -eu
# shellcheck source=sdk/shell/claimd.sh
. "$1"
case $2 in
    args)
        read -r all || true
        claimd_progress 40 half
        claimd_log "stdin $all"
        claimd_result "{\"arg\": $(claimd_string "$4"), \"key\": \"$CLAIMD_KEY\", \"attempt\": $CLAIMD_ATTEMPT}"
        ;;
    signal) kill -KILL $$ ;;
    garbage) echo 'no json' >&4 ;;
    leaves)
        setsid sleep 987654 &
        ;;
    *) exit "$2" ;;
esac
