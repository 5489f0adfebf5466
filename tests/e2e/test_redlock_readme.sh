#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_redlock_readme.sh SOURCE_DIR BUILD_DIR: checks redlock/README.md unchanged: every piece of C compiles
# without a warning, every symbol of redlock.h is named or shown, and no link is broken. The first programs, the
# pieces and the line of the crontab work as described with an installed redlock and private masters, whose user
# has only the rights that the page gives it. The examples can be built by hand and run as their README describes.
set -eu
source_dir=$1
build_dir=$2
readme=$source_dir/redlock/README.md
tmp=$(mktemp -d)
pids=
stop() {
    # shellcheck disable=SC2086  # words
    [ -z "$pids" ] || { kill $pids; wait $pids || true; } 2>/dev/null
    rm -rf "$tmp"
}
trap stop EXIT

fail() {
    echo "$*"
    exit 1
}

# Writes block-1.c, block-2.c … in the order of the page; blocks that are not complete files become the body of
# snippet().
awk -v dir="$tmp" '
    /^```c$/ { n++; file = dir "/block-" n ".c"; inside = 1; first = 1; next }
    /^```$/ && inside { if (is_body) print "}" >file; inside = 0; close(file); next }
    inside && first {
        is_body = $0 !~ /^(#include|static )/
        if ($0 !~ /^#include/) print "#include <redlock_status.h>\n#include <stdio.h>\nvoid work(void);" >file
        if (is_body) {
            print "extern struct redlock_client *client; void snippet(void);" >file
            print "void start_thread_that_later_calls(void (*call)(struct redlock_owner *), struct redlock_owner *);" >file
            print "void snippet(void)\n{" >file
        } else if ($0 !~ /^#include/) {
            print "enum redlock_result start_mail(struct redlock_client *client);" >file
        }
        first = 0
    }
    inside { print >file }' "$readme"
[ -e "$tmp/block-10.c" ] || fail "$readme: where are its programs?"
awk '/^```cpp$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme" >"$tmp/nightly.cpp"
for standard in c11 gnu17; do
    for file in "$tmp"/block-*.c; do
        cc "-std=$standard" -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes -Werror \
            -I "$source_dir/redlock" -fsyntax-only "$file" || fail "$readme: $(basename "$file") does not compile"
    done
done

# Names of the header without its comments and its include guard.
sed 's,//.*,,' "$source_dir/redlock/redlock.h" | awk '{
        line = $0
        while (line != "") {
            if (inside) { at = index(line, "*/"); if (!at) break; line = substr(line, at + 2); inside = 0 }
            at = index(line, "/*")
            if (!at) { printf "%s", line; break }
            printf "%s ", substr(line, 1, at - 1); line = substr(line, at + 2); inside = 1
        }
        print ""
    }' | grep -oE '\b(redlock|REDLOCK)_[A-Za-z0-9_]+' | sort -u |
    grep -vx REDLOCK_H >"$tmp/names"
[ "$(wc -l <"$tmp/names")" -gt 60 ] || fail "too few names found in redlock.h"
while read -r name; do
    case $name in
        REDLOCK_VOTE_*) short=_${name#REDLOCK_VOTE_} ;;
        REDLOCK_EVENT_*) short=_${name#REDLOCK_EVENT_} ;;
        *) short=${name#REDLOCK_} ;; # a result
    esac
    grep -qwF -e "$name" "$readme" "$source_dir"/examples/locks/*.[ch] || grep -qF "\`$short\`" "$readme" ||
        fail "$name of redlock.h is neither in README.md nor in an example"
done <"$tmp/names"
sed -n '/^enum redlock_result {/,/^};/s/^ *REDLOCK_\([A-Z_]*\).*/\1/p' "$source_dir/redlock/redlock.h" >"$tmp/results"
[ "$(wc -l <"$tmp/results")" -ge 8 ] || fail "too few results found in redlock.h"
while read -r name; do
    grep -q "^| \`$name\` |" "$readme" || fail "the result $name is not in README.md's table"
done <"$tmp/results"

# Links to files and to headings of the page.
for page in redlock/README.md docs/locks-compared.md examples/locks/README.md; do
    dir=$(dirname "$source_dir/$page")
    grep -oE '\]\([^)#]*(#[^)]*)?\)' "$source_dir/$page" | sed 's/^](//; s/)$//' | sort -u >"$tmp/links"
    while read -r link; do
        case $link in
            http*) ;;
            '#'*)
                sed -n 's/^##* //p' "$source_dir/$page" | tr 'A-Z ' 'a-z-' | tr -d ",." | grep -qx -e "${link#\#}" ||
                    fail "$page: no heading for $link" ;;
            *) [ -e "$dir/${link%%#*}" ] || fail "$page: $link is not there" ;;
        esac
    done <"$tmp/links"
done
if grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$build_dir/CMakeCache.txt"; then
    echo "compiled only: programs without this build's sanitizer can't use its library"
    exit 0
fi

# Three masters; programs log in as the user that the page creates.
acl=$(awk '/ACL SETUSER/ { inside = 1 } /```/ { inside = 0 } inside { printf "%s ", $0 }' "$readme" | sed 's/PASSWORD/secret/')
nodes=
for i in 1 2 3; do
    redis-server --port 0 --unixsocket "$tmp/$i.sock" --save '' --appendonly no --dir "$tmp" >"$tmp/$i.log" 2>&1 &
    pids="$pids $!"
    nodes="$nodes,unix:$tmp/$i.sock"
done
for i in 1 2 3; do
    tries=0
    until redis-cli -s "$tmp/$i.sock" ping >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "$(cat "$tmp/$i.log")"
        sleep 0.05
    done
    # shellcheck disable=SC2086  # words
    [ "$(redis-cli -s "$tmp/$i.sock" $acl)" = OK ] || fail "$readme: redis-cli refuses: $acl"
done
REDLOCK_NODES=${nodes#,}
REDLOCK_USER=locks
REDLOCK_PASSWORD=secret
export REDLOCK_NODES REDLOCK_USER REDLOCK_PASSWORD

cmake --install "$build_dir/redlock" --prefix "$tmp/prefix" >"$tmp/install.log" 2>&1 || fail "$(cat "$tmp/install.log")"
PATH=$tmp/prefix/bin:$PATH
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/prefix" -name redlock.pc)")
LD_LIBRARY_PATH=$(pkg-config --variable=libdir "$PKG_CONFIG_PATH/redlock.pc")
export PKG_CONFIG_PATH LD_LIBRARY_PATH

# The first programs, with these nodes instead of the page's, and with a key that the user may access.
compile=$(sed -n 's/^cc -o nightly /&-Wall -Wextra -Werror /p' "$readme")
sed -e "s|= \"10.0.0.1,.*\"|= \"$REDLOCK_NODES\", .user = \"locks\", .password = \"secret\", .trust_fresh = true|" \
    -e 's/nightly-backup/lock:nightly/' "$tmp/block-1.c" >"$tmp/nightly.c"
sed -i -e "s|\"10.0.0.1,.*\"|\"$REDLOCK_NODES\", options|" -e 's/nightly-backup/lock:nightly/' \
    -e 's/^{$/&\n    redlock_options options{};\n    options.user = "locks";\n    options.password = "secret";/' \
    -e 's/^    redlock::client/    options.trust_fresh = true;\n&/' "$tmp/nightly.cpp"
run_nightly() {
    "$tmp/nightly" >"$tmp/nightly.out" 2>&1 || true
    [ "$(cat "$tmp/nightly.out")" = 'no other client runs this now' ] ||
        fail "$readme: the first program in $1 does not do what it says: $(cat "$tmp/nightly.out")"
    rm "$tmp/nightly"
}
(cd "$tmp" && eval "$compile") || fail "$readme: its compile line fails"
run_nightly C
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    (cd "$tmp" && eval "$(echo "$compile" | sed "s/^cc /$compiler -std=c++17 -Wpedantic /; s/\.c /.cpp /")") ||
        fail "$readme: its C++ program does not compile with $compiler"
    run_nightly C++
done

# The pieces, one after the other.
set --
for file in "$tmp"/block-*.c; do
    grep -q 'main(' "$file" && continue
    number=${file##*-}
    set -- "$@" "$tmp/piece-${number%.c}.o"
    # shellcheck disable=SC2046  # flags are words
    cc -g -fsanitize=address,undefined "-Dsnippet=snippet_${number%.c}" -c -o "$tmp/piece-${number%.c}.o" "$file" \
        $(pkg-config --cflags redlock) || fail "$readme: $file"
done
# shellcheck disable=SC2046  # flags are words
cc -g -fsanitize=address,undefined -D_GNU_SOURCE -Wall -Wextra -Werror -o "$tmp/pieces" \
    "$source_dir/tests/e2e/redlock_readme_pieces.c" "$@" $(pkg-config --cflags --libs redlock) -pthread
# shellcheck disable=SC2046  # nodes are words
env -u REDLOCK_USER -u REDLOCK_PASSWORD "$tmp/pieces" $(echo "$REDLOCK_NODES" | tr , ' ') >"$tmp/pieces.out" 2>&1 || fail "$readme: its pieces: $(cat "$tmp/pieces.out")"
for said in 'one of eight: reports#[1-8]' 'read the map' 'change the map' 'leader: worked [1-9]' 'all: worked 1' 'each: worked 3' 'owner: worked 1' 'shutting down' 'cancel: worked 0' \
    'the queue of mail: ok, [23] of 3 nodes' 'start: worked 1' "unix:$tmp/1.sock: votes" '0 held now, 1 lost'; do
    grep -q "^$said" "$tmp/pieces.out" || fail "$readme: its pieces never say '$said': $(cat "$tmp/pieces.out")"
done

# The line of the crontab on three hosts at the same time.
line=$(sed -n 's/^0 3 \* \* \*  *//p' "$readme" | sed "s/nightly-backup/lock:nightly --trust-fresh/; s/10m/1s/; s,-- .*,-- echo backed up,")
case $line in
    'redlock exec lock:nightly '*) ;;
    *) fail "$readme: where is the crontab's line?" ;;
esac
for host in 1 2 3; do
    (
        code=0
        eval "$line" >"$tmp/host-$host.out" 2>&1 || code=$?
        echo "exit $code" >>"$tmp/host-$host.out"
    ) &
    hosts="${hosts:-} $!"
done
# shellcheck disable=SC2086  # words
wait $hosts
cat "$tmp"/host-?.out >"$tmp/hosts.out"
if [ "$(grep -c 'backed up' "$tmp/hosts.out")" != 1 ] || [ "$(grep -c 'exit 75' "$tmp/hosts.out")" != 2 ]; then
    fail "$readme: the crontab's line: $(cat "$tmp/hosts.out")"
fi

# One of these two waits for the other, and so subscribes.
hosts=
for host in 1 2; do
    redlock exec lock:nightly --trust-fresh --wait 20s --min-hold 1s -- true >"$tmp/host-$host.out" 2>&1 &
    hosts="$hosts $!"
done
for host in $hosts; do
    wait "$host" || fail "redlock exec --wait: $(cat "$tmp"/host-?.out)"
done

# An example built by hand, and the script that runs all of them.
cp -r "$source_dir/examples/locks" "$tmp/locks"
(cd "$tmp/locks" && eval "$(sed -n 's/^cc -o 07_counter /&-Wall -Wextra -Werror /p' README.md)") ||
    fail "examples/locks/README.md: its compile line fails"
mkdir "$tmp/programs"
cp "$tmp/locks/07_counter" "$tmp/programs"
"$source_dir/examples/locks/run" "$tmp/programs" >"$tmp/run.out" || fail "examples/locks/run: $(cat "$tmp/run.out")"
grep -q 'under the lock: 500 of 500' "$tmp/run.out" || fail "examples/locks/run: $(cat "$tmp/run.out")"

redlock status lock:nightly --trust-fresh >"$tmp/status.out" 2>&1 && fail "still held: $(cat "$tmp/status.out")"
for i in 1 2 3; do
    [ -z "$(redis-cli -s "$tmp/$i.sock" acl log)" ] ||
        fail "$readme: the user lacks a right: $(redis-cli -s "$tmp/$i.sock" acl log)"
done
echo ok
