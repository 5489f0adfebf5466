# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Read by scripts that run `claimctl dev`: a folder $tmp, which is gone when the script ends, as is the cluster, whose pid is
# $cluster and whose log $tmp/dev.log. `$tmp/job` is the job that was looked at last.
tmp=$(mktemp -d)
cluster=
stop_cluster() {
    [ -z "$cluster" ] || kill "$cluster" 2>/dev/null || true
    [ -z "$cluster" ] || wait "$cluster" || true
    rm -rf "$tmp"
}
trap stop_cluster EXIT
chmod 755 "$tmp"

# until_true SECONDS COMMAND…
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

# Its end must be a good one.
end_cluster() {
    kill "$cluster"
    wait "$cluster" || { cat "$tmp/dev.log"; exit 1; }
    cluster=
}
