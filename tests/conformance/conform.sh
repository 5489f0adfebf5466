#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# conform.sh SDK: the candidate of the conformance kit as a shell script that runs once for each job. It takes the steps
# of args.do, which docs/guide/other-languages.md describes.
set -eu
# shellcheck source=sdk/shell/claimd.sh
. "$1"
is_stopped=
trap 'is_stopped=1' TERM
tab=$(printf '\t')

# The text of "do", where it is the first member of the args on stdin.
steps() {
    sed -n "s/^{\"do\": \"\(\([^\"\\\\]\|\\\\.\)*\)\".*/\1/
        t found
        b
        :found
        s/\\\\\\\\/\x01/g
        s/\\\\\"/\"/g
        s/\\\\n/\n/g
        s/\\\\t/$tab/g
        s/\x01/\\\\/g
        p"
}

# after_word TEXT: what follows its first word
after_word() {
    case $1 in *' '*) printf '%s' "${1#* }" ;; esac
}

# delayed retry|snooze SECONDS|- [WHY]
delayed() {
    delay=${2%% *}
    [ "$delay" != - ] || delay=
    "claimd_$1" "$delay" "$(after_word "$2")"
}

about() {
    claimd_result "$(printf '{"job": %s, "key": "%s", "kind": "%s", "queue": "%s", ' "$CLAIMD_JOB" "$CLAIMD_KEY" \
        "$CLAIMD_KIND" "$CLAIMD_QUEUE"
        printf '"attempt": %s, "max_attempts": %s, "crashes": %s}' "$CLAIMD_ATTEMPT" "$CLAIMD_MAX_ATTEMPTS" \
            "$CLAIMD_CRASHES")"
}

# step VERB REST
step() {
    case $1 in
        log) claimd_log "$(printf %b "$2")" ;;
        print) printf '%b\n' "$2" ;;
        progress) claimd_progress "${2%% *}" "$(after_word "$2")" ;;
        checkpoint) claimd_checkpoint "$2" ;;
        raw)
            case $2 in
                *@N@*) printf '%s\n' "${2%@N@*}1${2#*@N@}" >&4 ;;
                *) printf '%b\n' "$2" >&4 ;;
            esac
            ;;
        kill) kill "-$2" $$ ;;
        exit) exit "$2" ;;
        leave) setsid sleep "$2" & ;;
        wait) sleep "$2" ;;
        await_stop) until [ -n "$is_stopped" ]; do sleep 0.02; done ;;
        ignore_stop) while :; do sleep 0.02; done ;;
        done) [ -z "$2" ] || claimd_result "$2" ;;
        done_args) claimd_result "$args" ;;
        done_checkpoint) claimd_result "${CLAIMD_CHECKPOINT:-null}" ;;
        done_about) about ;;
        retry | snooze) delayed "$1" "$2" ;;
        fail | cancel) "claimd_$1" "$2" ;;
        *) claimd_fail "no such step: $1" ;;
    esac
    case $1 in done*) exit 0 ;; esac
}

take() {
    verb=${1%% *}
    rest=$(after_word "$1")
    times=1
    case $verb in
        [0-9]*:) [ "${verb%:}" = "$CLAIMD_ATTEMPT" ] || times=0 ;;
        [0-9]*\*) times=${verb%?} ;;
        *) rest=$1 ;;
    esac
    verb=${rest%% *}
    rest=$(after_word "$rest")
    while [ "$times" -gt 0 ]; do
        times=$((times - 1))
        step "$verb" "$rest"
    done
}

args=$(cat)
all=$(printf '%s\n' "$args" | steps)
[ -n "$all" ] || all=done_args
while IFS= read -r line; do
    [ -z "$line" ] || take "$line"
done <<EOT
$all
EOT
exit 0
