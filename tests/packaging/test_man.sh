#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_man.sh BIN_DIR PAGE_DIR: the manual pages can be read, and name every option, command and configuration key that there is.
set -eu
bin=$1
pages=$2
failed=0
for tool in scdoc mandoc; do
    command -v $tool >/dev/null && continue
    echo "SKIPPED: $tool is not installed (./dev setup): manual pages NOT checked"
    [ -n "${CLAIMD_LINT_ALL:-}" ] || exit 77
    exit 1
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() {
    echo "$*"
    failed=1
}

# text PAGE: as a reader sees it, in one line
text() {
    mandoc -T utf8 -O width=1000 "$1" | sed "s/.$(printf '\b')//g" | tr -s ' \n' ' '
}

# names PAGE NAME: the page has the word
names() {
    case " $(cat "$work/$1") " in
        *[!a-z-]"$2"[!a-z_-]*) ;;
        *) say "$1 lacks $2" ;;
    esac
}

for page in claimctl.1 claimd.json.5 claimd-scheduler.8 claimd-web.8 claimd-worker.8 claimd-runner.8; do
    [ -s "$pages/$page" ] || { say "$page is missing"; continue; }
    found=$(mandoc -T lint -W warning "$pages/$page" 2>&1 | grep -v 'paragraph macro: PP') || true # scdoc's habit
    [ -z "$found" ] || say "$found"
    text "$pages/$page" >"$work/$page"
done

for program in claimd-scheduler claimd-web claimd-worker claimd-runner; do
    for option in $("$bin/$program" --help | grep -o -e '--[a-z][a-z-]*' | sort -u) --help; do
        names $program.8 "$option"
    done
done

"$bin/claimctl" help --json | sed -n 's/^ *"\(noun\|verb\|name\)": "\(.*\)",*$/\1 \2/p' >"$work/words"
noun=
commands=0
while read -r what word; do
    case $what in
        noun) noun=$word && names claimctl.1 "claimctl $noun" && commands=$((commands + 1)) ;;
        verb) names claimctl.1 "claimctl $noun $word" ;;
        name) names claimctl.1 "--$word" ;;
    esac
done <"$work/words"
[ "$commands" -gt 10 ] || say "only $commands commands were found in claimctl help --json"

keys=0
for key in $("$bin/claimctl" config doc --json | sed -n 's/.*"key": "\([a-z_.]*\)".*/\1/p'); do
    names claimd.json.5 "$key"
    keys=$((keys + 1))
done
[ "$keys" -gt 30 ] || say "only $keys keys were found in claimctl config doc --json"
exit $failed
