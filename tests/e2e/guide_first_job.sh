#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guide_first_job.sh SOURCE_DIR BIN_DIR: runs docs/guide/first-job.md block by block, as a reader pastes it:
# blocks of sh in one shell that keeps its state; blocks of sql in the psql that the line before names; c and
# python into the file that the line before names. A block of text shows the output of the block before it: each
# of its lines must be in that output. Nothing else is set: neither PATH nor the connection. Three things differ
# from a reader's machine: the clone's ./dev neither installs nor builds; its cluster has a folder of its own; and
# packages are not installed, but must be among those that the real ./dev installs for tests.
set -eu
source_dir=$1
bin_dir=$2
page=$source_dir/docs/guide/first-job.md
tmp=$(mktemp -d)
cluster= # the first terminal
end_cluster() {
    kill "$(cat "$tmp/dev.pid" 2>/dev/null || echo "$cluster")" && wait "$cluster"
}
stop() {
    [ -z "$cluster" ] || end_cluster 2>/dev/null || true
    rm -rf "$tmp"
}
trap stop EXIT
chmod 755 "$tmp"
fail() {
    echo "first-job.md: $*"
    exit 1
}

if ! /usr/bin/python3 -c 'import psycopg' 2>/dev/null; then
    echo 'SKIPPED: /usr/bin/python3 has no module psycopg (package python3-psycopg)'
    [ -n "${CLAIMD_REQUIRE_SERVICES:-}" ] || exit 77
    exit 1
fi

# A reader's shell has no variables of claimd and PostgreSQL.
for name in $(env | sed -n 's/^\(\(CLAIMD_\|PG\)[A-Z0-9_]*\|DATABASE\)=.*/\1/p'); do
    unset "$name"
done
PSQLRC=/dev/null
PAGER=
TMPDIR=$tmp
export PSQLRC PAGER TMPDIR

mkdir "$tmp/clone" "$tmp/blocks"
cat >"$tmp/clone/dev" <<END
#!/bin/sh
[ "\$1 \$2" = 'claimctl dev' ] || exit 2
shift
[ "\$2" = --env ] || echo \$\$ >"$tmp/dev.pid"
exec "$bin_dir/claimctl" "\$@" --dir "$tmp/dev"
END
chmod 755 "$tmp/clone/dev"

# Writes each block to NNN.KIND, the line before it to NNN.before, and its expected output to NNN.out. A block of
# text that does not directly follow a block is for other machines.
awk -v dir="$tmp/blocks" '
    /^```$/ && file != "" { close(file); file = ""; ended = NR; next }
    /^```(sh|sql|c|python)$/ {
        name = sprintf("%s/%03d", dir, ++n)
        print before >(name ".before"); close(name ".before")
        file = name "." substr($0, 4); printf "" >file; next
    }
    /^```text$/ { file = ended == NR - 1 ? name ".out" : "/dev/null"; printf "" >file; next }
    file != "" { print >file; next }
    NF > 0 { before = $0 }' "$page"

# in_first_terminal BLOCK: runs the block in the background, until the cluster is ended
in_first_terminal() {
    (cd "$tmp/clone" && exec sh -eu "$1") >"$tmp/dev.log" 2>&1 </dev/null &
    cluster=$!
    tries=1200
    until grep -q 'In another terminal' "$tmp/dev.log"; do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ] || ! kill -0 "$cluster"; then
            cat "$tmp/dev.log"
            fail "no cluster"
        fi
        sleep 0.1
    done
}

# packages BLOCK: checks that ./dev installs these packages before tests
packages() {
    installed=" $(sed -n "/^packages='/,/'\$/p; /^test_packages='/p" "$source_dir/dev" | tr "='\n" '   ') "
    while read -r program command yes packages; do
        [ "$program $command $yes" = 'apt-get install -y' ] || fail "more than packages: $program $command $yes"
        for package in $packages; do
            case $installed in *" $package "*) ;; *) fail "./dev does not install $package" ;; esac
        done
    done <"$1"
}

# The second terminal: a script made of the blocks, which writes the output of each to a file.
second=$tmp/second.sh
{
    echo 'set -u'
    # shellcheck disable=SC2016  # for that shell
    echo 'failed() { echo "block $1 failed:"; cat "$1.said"; exit 1; }'
    printf 'cd "%s"\n' "$tmp/clone"
} >"$second"
for block in "$tmp"/blocks/*; do
    case $block in *.out | *.before | *.said) continue ;; esac
    before=$(cat "${block%.*}.before")
    said=${block%.*}.said
    # shellcheck disable=SC2016  # backticks of Markdown
    code=$(printf '%s' "$before" | sed -n 's/.*`\([^`]*\)`:$/\1/p') # what the line before says at its end
    case $block in
        *.sh)
            if grep -q '^apt-get ' "$block"; then
                packages "$block"
            elif grep -q '^\./dev claimctl dev' "$block"; then
                in_first_terminal "$block"
            else # in braces, in the shell itself: what it sets stays
                printf '{\n%s\n} >"%s" 2>&1 </dev/null || failed "%s"\n' "$(cat "$block")" "$said" "${block%.*}" >>"$second"
            fi
            ;;
        *.sql)
            case $code in 'psql '*) ;; *) fail "which psql? $before" ;; esac
            printf '%s <"%s" >"%s" 2>&1 || failed "%s"\n' "$code" "$block" "$said" "${block%.*}" >>"$second"
            ;;
        *)
            case $code in *.c | *.py) ;; *) fail "which file? $before" ;; esac
            printf 'cp "%s" "%s"\n' "$block" "$code" >>"$second"
            ;;
    esac
done
[ -n "$cluster" ] || fail "starts no cluster"
sh "$second" || fail "the second terminal failed"

count=0
for said in "$tmp"/blocks/*.said; do
    count=$((count + 1))
    wanted=${said%.*}.out
    [ -e "$wanted" ] || : >"$wanted"
    while IFS= read -r line; do
        grep -qF -e "$line" "$said" || fail "block ${said%.*} does not print: $line; but: $(cat "$said")"
    done <"$wanted"
    grep -q '^ERROR' "$wanted" || ! grep '^ERROR' "$said" || fail "refused: $(cat "${said%.*}.sql")"
done
[ "$count" -ge 10 ] || fail "has only $count blocks"

end_cluster || { cat "$tmp/dev.log"; fail "the cluster ended badly"; }
cluster=
