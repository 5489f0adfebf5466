# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by scripts that run `claimctl dev`. Makes a folder $tmp, and at the end of the script removes it and
# stops the cluster, whose pid is $cluster and whose log is $tmp/dev.log. `$tmp/job` has the last job that was
# shown.
tmp=$(mktemp -d)
cluster=
stop_cluster() {
    [ -z "$cluster" ] || kill "$cluster" 2>/dev/null || true
    [ -z "$cluster" ] || wait "$cluster" || true
    rm -rf "$tmp"
}
trap stop_cluster EXIT
chmod 755 "$tmp"

# until_true SECONDS COMMAND…: repeats the command until it succeeds
until_true() {
    end=$(($(date +%s) + $1))
    shift
    while ! "$@"; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "never became true: $*"
            cat "$tmp/dev.log" "$tmp/job" 2>/dev/null
            exit 1
        fi
        sleep 0.1
    done
}

# Ends the cluster, whose exit code must be 0.
end_cluster() {
    kill "$cluster"
    wait "$cluster" || { cat "$tmp/dev.log"; exit 1; }
    cluster=
}
