#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# conform.sh SDK DO: the candidate of the conformance kit (cases.json) as a command that runs once.
set -eu
# shellcheck source=sdk/shell/claimd.sh
. "$1"
case $2 in
    log)
        claimd_log 'first ü€😀'
        claimd_log second
        ;;
    progress) claimd_progress 40 half ;;
    retry) claimd_retry 30 'the printer "jams"' ;;
    backoff) claimd_retry '' 'as usual' ;;
    snooze) claimd_snooze 60 'not packed' ;;
    fail) claimd_fail 'bad order' ;;
    cancel) claimd_cancel void ;;
    nothing) exit 0 ;;
    echo)
        claimd_result "$(cat)"
        exit 0
        ;;
    checkpoint)
        if [ -n "$CLAIMD_CHECKPOINT" ]; then
            claimd_result "$CLAIMD_CHECKPOINT"
            exit 0
        fi
        claimd_checkpoint '{"at": 3}'
        claimd_retry 0 'once more'
        ;;
    too_long)
        claimd_result "\"$(head -c 70000 /dev/zero | tr '\000' x)\""
        exit 0
        ;;
    print) echo printed ;;
    crash) kill -KILL $$ ;;
    stop)
        trap 'claimd_retry 0 "told to stop"' TERM
        claimd_progress 1
        while :; do sleep 0.05; done
        ;;
    ignore)
        trap '' TERM
        claimd_progress 1
        while :; do sleep 0.05; done
        ;;
esac
claimd_result '{"ok": true}'
