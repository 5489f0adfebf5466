#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# handler_new.sh BIN_DIR: checks that `claimctl handler new` makes a project in each language, that the project's
# own test passes, that a worker serves it, and that a refused request leaves nothing behind.
set -eu
bin_dir=$1
PATH=$bin_dir:$PATH
export PATH
unset CLAIMD_CONFIG
# shellcheck source=tests/e2e/dev_cluster.sh
. "$(dirname "$0")/dev_cluster.sh"
umask 002 # as many users have it: what is made may nevertheless not be writable by the group
mkdir -m 755 "$tmp/projects with 'quotes' & \"such\"" "$tmp/handlers"
cd "$tmp/projects with 'quotes' & \"such\""

fail() {
    echo "$*"
    exit 1
}

# ---- refusals ----
# refused CODE TEXT WORDS…: checks that these words are refused
refused() {
    wanted=$1
    text=$2
    shift 2
    code=0
    claimctl handler new "$@" >"$tmp/out" 2>&1 || code=$?
    [ "$code" = "$wanted" ] || fail "$*: exit code $code, wanted $wanted: $(cat "$tmp/out")"
    grep -q -e "$text" "$tmp/out" || fail "$*: $(cat "$tmp/out")"
}
mkdir taken
refused 5 "'taken' already exists" taken --lang c
refused 2 "kind '../x': must match ^\[a-z\]\[a-z0-9_\]\*\\$ and have at most 64 bytes" ../x --lang c
refused 2 "must match" '' --lang c
refused 2 "must match" Thumbnail --lang c
refused 2 "must match" "$(printf '%065d' 0 | tr 0 a)" --lang c
refused 2 "'ruby' is not allowed; allowed: c, python, sh" x --lang ruby
refused 2 "lang is missing; allowed: c, python, sh" x
refused 2 "NAME is missing" --lang c
# A disk that is full after 4 KiB of a file.
(trap '' XFSZ; ulimit -f 8; refused 1 'cannot write claimd.py: File too large' x --lang python)
mkdir "$tmp/{braces}"
(cd "$tmp/{braces}" && refused 2 "the path of this folder has a '{'" x --lang sh)
[ "$(ls -A)" = taken ] || fail "something was left: $(ls -A)"
[ -z "$(ls -A "$tmp/{braces}")" ] || fail "something was left: $(ls -A "$tmp/{braces}")"

# ---- projects ----
for language in c python sh; do
    claimctl handler new "my_$language" --lang "$language"
    "./my_$language/test" >"$tmp/out" 2>&1 || fail "$language: $(cat "$tmp/out")"
    [ "$(tail -n 1 "$tmp/out")" = ok ] || fail "$language: $(cat "$tmp/out")"
    [ -z "$(find "my_$language" -perm /022)" ] || fail "others may write to $(find "my_$language" -perm /022)"
    grep -q "jobs of kind \`my_$language\`" "my_$language/README.md" || fail "its README.md has not its name"
    ! grep -rIq '@[A-Z]*@' "my_$language" || fail "something was not filled in: $(grep -r '@[A-Z]*@' "my_$language")"
done
# A test that passes whatever the handler does would be useless.
sed 's/"counted": count/"counted": 2/' my_python/handler.py >"$tmp/out"
cp my_python/handler.py "$tmp/handler.py"
cp "$tmp/out" my_python/handler.py
(cd my_python && ./test) >"$tmp/out" 2>&1 && fail "its test does not see a wrong result"
cp "$tmp/handler.py" my_python/handler.py
claimctl handlers check my_python/handlers my_sh/handlers >"$tmp/out" || fail "$(cat "$tmp/out")"
claimctl handler new my_json --lang sh --json >"$tmp/out"
grep -q '"files": \["README.md", "handler.sh", "claimd.sh", "handlers/my_json.json", "test"\]' "$tmp/out" || fail "$(cat "$tmp/out")"

# ---- a worker ----
if [ "$(id -u)" = 0 ]; then # whose clusters run as another user
    mkdir -m 700 closed
    mv my_json closed
    code=0
    timeout 60 claimctl dev --dir "$tmp/dev" --handlers closed/my_json/handlers >"$tmp/out" 2>&1 || code=$?
    [ "$code" = 2 ] || fail "a folder that workers can't reach: exit code $code: $(cat "$tmp/out")"
    grep -q "handlers' can't be reached by the unprivileged user" "$tmp/out" || fail "$(cat "$tmp/out")"
fi
install -m 644 my_python/handlers/my_python.json my_sh/handlers/my_sh.json "$tmp/handlers"
claimctl dev --dir "$tmp/dev" --handlers "$tmp/handlers" --plugins my_c/plugins --workers 1 --masters 1 >"$tmp/dev.log" 2>&1 &
cluster=$!

until_true 120 grep -q 'In another terminal' "$tmp/dev.log"
eval "$(sed -n '/^  eval /p' "$tmp/dev.log")"
is_counted() {
    claimctl jobs show "$1" >"$tmp/job" && grep -q 'counted": 3' "$tmp/job"
}
for language in c python sh; do
    until_true 120 is_counted "$(claimctl enqueue "my_$language" --args '{"count": 3}' 2>/dev/null)"
done
end_cluster
