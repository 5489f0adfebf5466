# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# claimd for shell scripts that run once for each job (docs/guide/other-languages.md):
#
#   . /usr/share/claimd/shell/claimd.sh
#   claimd_progress 40 scaling
#   claimd_result '{"width": 64}'
#
# Texts may have any characters; arguments called JSON are passed on unchanged. claimd_retry, claimd_snooze,
# claimd_fail and claimd_cancel end the script.

# Prints a JSON string. Bytes that are not UTF-8 are left out; control characters become spaces.
claimd_string() {
    case $1 in
        *[!' '-~]* | *[\\\"]*)
            printf '"%s"' "$(printf '%s' "$1" | iconv -c -f UTF-8 -t UTF-16LE | iconv -f UTF-16LE -t UTF-8 |
                tr '\000-\037' ' ' | sed 's/[\\"]/\\&/g')"
            ;;
        *) printf '"%s"' "$1" ;;
    esac
}

claimd_say() {
    printf '%s\n' "$1" >&4
}

# claimd_log TEXT
claimd_log() {
    claimd_say "{\"log\": $(claimd_string "$1")}"
}

# claimd_progress PERCENT [TEXT]
claimd_progress() {
    claimd_say "{\"progress\": $1, \"text\": $(claimd_string "${2-}")}"
}

# claimd_checkpoint JSON: for the next attempt, which gets it in $CLAIMD_CHECKPOINT
claimd_checkpoint() {
    claimd_say "{\"checkpoint\": $1}"
}

# claimd_result JSON
claimd_result() {
    claimd_say "{\"result\": $1}"
}

# claimd_retry [SECONDS] [WHY]: failed; whole seconds, or empty for its kind's backoff
claimd_retry() {
    claimd_end retry "${1-}" "${2-}"
}

# claimd_snooze SECONDS [WHY]: not now, uncharged
claimd_snooze() {
    claimd_end snooze "$1" "${2-}"
}

# claimd_fail [WHY]: failed for good
claimd_fail() {
    claimd_end fail '' "${1-}"
}

# claimd_cancel [WHY]: no longer wanted
claimd_cancel() {
    claimd_end cancel '' "${1-}"
}

claimd_end() {
    claimd_delay=null
    [ -z "$2" ] || claimd_delay=$(($2 * 1000))
    claimd_say "{\"end\": \"$1\", \"delay_ms\": $claimd_delay, \"error\": $(claimd_string "$3")}"
    exit 0
}
