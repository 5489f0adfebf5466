#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint.sh NAME [ROOT]: one lint over the tree at ROOT. Prints "file:line: what" for each offence;
# exit 1 if there was one, 77 (skipped) if its tool is missing and CLAIMD_LINT_ALL is not set.
# selftest.sh proves that each of them can fail.
# shellcheck disable=SC2016  # the awk programs have variables of their own
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=$1
cd "${2:-$here/../..}"

# files PATTERN…: tracked or not, but nothing from build trees
files() {
    for pattern in "$@"; do
        find . \( -name build -o -name .git \) -prune -o -type f -name "$pattern" -print
    done | sed 's,^\./,,' | sort
}

need() {
    command -v "$1" >/dev/null && return
    echo "$1 is not installed (./dev setup)"
    [ -n "${CLAIMD_LINT_ALL:-}" ] || exit 77
    exit 1
}

# over AWK_PROGRAM FILE…: awk, which must print nothing
over() {
    program=$1
    shift
    [ $# -gt 0 ] || return 0
    found=$(awk "$program" "$@")
    [ -z "$found" ] || { echo "$found"; exit 1; }
}

c_files=$(files '*.[ch]')
scripts=$(files "*.sh" "*.postinst" "daemon.p*.in"; for f in dev .ci/run deploy/images/base examples/locks/run; do [ ! -e $f ] || echo $f; done)
sources="$c_files $scripts $(files '*.sql' '*.awk' '*.cmake' CMakeLists.txt)"

# Comments and string contents out, so that the banned words may be spoken of.
code_only='
    function code(s) {
        gsub(/"([^"\\]|\\.)*"/, "\"\"", s); gsub(/\/\*[^*]*\*\//, "", s); sub(/\/\/.*/, "", s)
        sub(/\/\*.*/, "", s); if (s ~ /^ \*/) s = ""
        return s
    }'

# shellcheck disable=SC2046,SC2086  # lists of files, whose names have no spaces
case $name in
    unused) # a function that no product code calls; exempt: headers that users include, and unused.txt
        product=$(files '*.[ch]' | grep -Ev '^(tests|cluster|bench|demo|examples)/' || true)
        over "$code_only"'
            FILENAME ~ /unused.txt$/ { exempt[$1] = 1; next }
            FILENAME ~ /^(redlock\/redlock[a-z_]*|sdk\/.*)\.h$/ { is_public = 1 }
            FILENAME !~ /^(redlock\/redlock[a-z_]*|sdk\/.*)\.h$/ { is_public = 0 }
            {
                text = code($0)
                if (FILENAME ~ /\.c$/ && text ~ /^[a-z][A-Za-z0-9_ *]*[ *][a-z][a-z0-9_]*\(/ && text !~ /^static |^typedef |;$/) {
                    name = text; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
                    at[name] = FILENAME ":" FNR
                }
                while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
                    word = substr(text, RSTART, RLENGTH)
                    if (is_public) exempt[word] = 1
                    else if (FILENAME ~ /\.c$/) inside[word]++
                    else headers[word]++
                    text = substr(text, RSTART + RLENGTH)
                }
            }
            END {
                for (name in at)
                    if (!(name in exempt) && name != "main" && inside[name] < 2 && headers[name] < 2)
                        print at[name] ": no product code calls " name "()"
            }' $(ls tests/lint/unused.txt 2>/dev/null || true) $product
        ;;
    includes)
        over '
            FNR == NR {
                if ($0 ~ /^#/ || NF == 0) next
                key = $1; sub(/:$/, "", key); rule[key] = " "
                for (i = 2; i <= NF; i++) rule[key] = rule[key] $i " "
                next
            }
            FNR == 1 { folder = FILENAME; sub(/\/.*/, "", folder) }
            function room(path, parts) { # of redlock/: the order in which they build on one another
                split(path, parts, "/")
                if (path !~ /^redlock\/[a-z]+\//) return path ~ /^redlock\// ? 0 : 99
                return index("rules core client cmd", parts[2])
            }
            function allows(list, word) { return index(list, " * ") || index(list, " " word " ") }
            FNR == 1 && !(folder in rule) { print FILENAME ": its folder is not in includes.txt" }
            /^#[ ]*include[ ]*"/ {
                target = $0; sub(/^[^"]*"/, "", target); sub(/".*/, "", target)
                if (target ~ /^redlock\/(core|client|cmd)\// && room(target) > room(FILENAME))
                    print FILENAME ":" FNR ": a room of redlock/ may not include from a later one: " target
                if ((folder == "tests" || folder == "examples") && target !~ /\//) next # a fixture beside it
                if (FILENAME ~ /^redlock\/redlock_[a-z]*\.h$/ && target ~ /^redlock/) next # installed side by side
                if (target !~ /\//) { print FILENAME ":" FNR ": write \"folder/" target "\""; next }
                sub(/\/.*/, "", target)
                if (target != folder && !(folder == "sdk" && target == "claimd") && !allows(rule[folder], target))
                    print FILENAME ":" FNR ": " folder "/ may not include from " target "/"
            }
            /^#[ ]*include[ ]*</ {
                target = $0; sub(/^[^<]*/, "", target); sub(/>.*/, ">", target)
                group = target; sub(/\/.*/, "/>", group)
                if (target in rule) group = target
                if (group in rule && !allows(rule[group], folder))
                    print FILENAME ":" FNR ": " folder "/ may not include " target
            }' "$here/includes.txt" $c_files
        ;;
    sizes)
        over '
            FNR == 1 && NR > 1 && lines > 600 { print file ": " lines " lines, at most 600" }
            { file = FILENAME; lines = FILENAME ~ /^sql\/migrations\// ? 0 : FNR }
            FILENAME ~ /\.[ch]$/ && /^\{$/ { start = FNR }
            FILENAME ~ /\.[ch]$/ && /^\}/ && start {
                if (FNR - start - 1 > 70)
                    print FILENAME ":" start ": a function of " FNR - start - 1 " lines, at most 70"
                start = 0
            }
            END { if (lines > 600) print file ": " lines " lines, at most 600" }' $sources
        ;;
    banned)
        over "$code_only"'
            { text = " " code($0) }
            text ~ /[^a-z0-9_>.](strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atof|system|popen|alloca|strtok)[ ]*\(/ {
                print FILENAME ":" FNR ": a banned call:" text
            }
            FILENAME !~ /^tests\// && text ~ / (st = st == STATUS_OK [?]|return st == STATUS_OK [?].*: st;)/ {
                print FILENAME ":" FNR ": an error returns early: if (st != STATUS_OK) { return st; }"
            }
            FILENAME !~ /^(tests|cluster|bench|demo)\// && FILENAME != "base/timer.h" &&
            text ~ /[^a-z0-9_>.](uv_timer_start|uv_timer_again|uv_update_time)[ ]*\(/ {
                print FILENAME ":" FNR ": a timer is armed by timer_start(), base/timer.h:" text
            }
            FILENAME ~ /^(cluster|tests)\// && FILENAME != "cluster/wait.c" &&
            text ~ /[^a-z0-9_>.](sleep|usleep|nanosleep|clock_nanosleep)[ ]*\(/ {
                print FILENAME ":" FNR ": a test waits for an event, never for time:" text
            }' $c_files
        ;;
    limits) # a test must not fail because something took less than 5 s too long
        over "$code_only"'
            FNR == 1 { statement = "" }
            { text = code($0); statement = statement " " text }
            text !~ /[;{}][ ]*$/ { next }
            { under_5_s = "([(]?([0-4] [*] )?US_PER_S|[0-9]+ [*] US_PER_MS)[)]" }
            statement ~ ("(^|[^!)A-Z_])WAIT_UNTIL[(].*,[ ]*" under_5_s) ||
            statement ~ ("ck_assert_int_l[te][(].*(clock_boot_us[(]|wait_now_us[(]|took_us|late_us|lasted_us).*,[ ]*" under_5_s) {
                print FILENAME ":" FNR ": a verdict by less than 5 s:" text
            }
            { statement = "" }' $(echo "$c_files" | tr ' ' '\n' | grep '^tests/' || true)
        ;;
    text)
        over '
            FNR == 1 { if (NR > 1 && !spdx) print file ": no SPDX line at its top"; spdx = 0; file = FILENAME }
            FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { spdx = 1 }
            FILENAME !~ /^tests\/lint\// && /(^|[^A-Za-z])(TODO|FIXME|XXX)([^A-Za-z]|$)/ {
                print FILENAME ":" FNR ": unfinished: " $0
            }
            FILENAME !~ /^tests\/lint\// && /\/(home|Users|root|work)\// {
                print FILENAME ":" FNR ": a path of one machine: " $0
            }
            END { if (NR > 0 && !spdx) print file ": no SPDX line at its top" }' $sources
        over '
            /^\|/ { next } # a table
            { text = $0; gsub(/[\200-\277]/, "", text) } # characters, not bytes
            length(text) > 120 { print FILENAME ":" FNR ": " length(text) " characters, at most 120" }' $(files '*.md')
        ;;
    comments) # where a reader looks for them, whatever clang-format makes of a long line
        over '
            /^ *\*\/$/ { print FILENAME ":" FNR ": a comment ends on the line of its last word" }
            /^[^"\/]*[;,{}] *\/\*/ && !/\*\// { print FILENAME ":" FNR ": a comment of two lines stands above its line" }
            before ~ /\($/ && /^    [^"]*\); \/\*/ { print FILENAME ":" FNR ": a comment that breaks its line stands above it" }
            before ~ /^ \*  ?- / && /^ \* [a-z0-9(]/ { print FILENAME ":" FNR ": the list above lost its indentation" }
            { before = $0 }
        ' $c_files
        # shellcheck disable=SC2086
        over '
            FNR == 2 && !/^ \*/ { print FILENAME ": has no header, and does not open with a sentence that says what it is" }
        ' $(for file in $c_files; do
            case $file in
                */test_*.c | *.h) ;;
                *) [ -e "${file%.c}.h" ] || echo "$file" ;;
            esac
        done)
        ;;
    english) # comments and documents are without the phrases of english.txt
        PHRASES="($(grep -v '^#' "$here/english.txt" | paste -sd '|' -))"
        export PHRASES
        over '
            FNR == 1 { is_text = FILENAME ~ /\.md$/; is_comment = is_code = 0 }
            is_text && /^ *```/ { is_code = !is_code }
            {
                text = is_text && !is_code ? $0 : ""
                if (!is_text) {
                    line = $0
                    gsub(/"([^"\\]|\\.)*"/, "", line)
                    if (is_comment || match(line, /\/\*/)) {
                        text = is_comment ? line : substr(line, RSTART)
                        is_comment = line !~ /\*\//
                    }
                }
                if (match(" " tolower(text) " ", "[^a-z_]" ENVIRON["PHRASES"] "[^a-z_]"))
                    print FILENAME ":" FNR ": say it plainly (tests/lint/english.txt): " substr(text, RSTART, RLENGTH)
            }
        ' $c_files $(files '*.md' | grep -v -e '^CHANGELOG' -e '^docs/decisions/')
        ;;
    paths) # a file that a document names is there
        files '*' | awk '
            FILENAME == "-" { here[$0] = 1; top = $0; sub(/\/.*/, "", top); folder[top] = 1; next }
            {
                line = $0
                while (match(line, /`[a-z]+\/[a-z0-9_\/-]+\.[a-z]+`/)) {
                    path = substr(line, RSTART + 1, RLENGTH - 2); line = substr(line, RSTART + RLENGTH)
                    top = path; sub(/\/.*/, "", top)
                    if (top in folder && !(path in here)) { print FILENAME ":" FNR ": there is no " path; bad = 1 }
                }
            }
            END { exit bad }' - $(files '*.md' | grep -v '^CHANGELOG')
        ;;
    recipes) # a test that docs/howto.md names is there: a pattern that fits nothing passes
        tests=$(ctest --test-dir "$CLAIMD_BUILD_DIR" -N | sed -n 's/^ *Test *#[0-9]*: //p')
        # ^test_(a|b)$ becomes ^test_a$|^test_b$
        apart=':a; s/\([^|]*\)(\([^|()]*\)|\([^()]*\))\([^|]*\)/\1\2\4|\1(\3)\4/; ta; s/[()]//g'
        found=$(tr '\n' ' ' <docs/howto.md | grep -o "dev test -R *'[^']*'" | sed "s/[^']*'//; s/'//; $apart" |
            tr '|' '\n' | while read -r test; do
            echo "$tests" | grep -q "$test" || echo "docs/howto.md: there is no test $test"
        done)
        [ -z "$found" ] || { echo "$found"; exit 1; }
        ;;
    events)
        daemon_files=$(files '*.c' | grep -e '^worker/' -e '^runner/' -e '^protocol/' -e '^scheduler/' -e '^web/' -e '^daemon/' -e '^base/log\.c')
        # Names in code: texts before the first field of log_…(), and what variables named event
        # and tables named events[] are made of. Names told: the first column of the table below
        # "## Log lines".
        over '
            FNR == 1 { told_here = FILENAME ~ /operations\.md$/; inside = 0; call = 0; table = 0 }
            told_here {
                if (/^## /) inside = /^## Log lines/
                n = split($0, cell, "|")
                if (inside && n > 2) take(cell[2], "`", told)
                next
            }
            # The odd ones of what `mark` parts are between a pair of them.
            function take(text, mark, names,    part, i, n) {
                n = split(text, part, mark)
                for (i = 2; i < n; i += 2)
                    if (part[i] ~ /^[a-z][a-z0-9_]*$/ && !(part[i] in names)) names[part[i]] = FILENAME ":" FNR
            }
            {
                line = $0
                if (line ~ /\*(const )?events?(\[\])? = /) table = 1
                if (table) { take(line, "\"", used); if (line ~ /;/) table = 0; next }
                if (match(line, /\.failed = "[a-z_]+"/)) take(substr(line, RSTART, RLENGTH), "\"", used) # of a service
                if (match(line, /(^|[^a-z_])log_(error|warn|info|debug|at|write|recovered)\(/)) {
                    line = substr(line, RSTART + RLENGTH); call = 1
                }
                if (!call) next
                if (match(line, /LOG_(TEXT|I64)\(/)) { line = substr(line, 1, RSTART - 1); call = 0 }
                take(line, "\"", used)
                if ($0 ~ /;$/) call = 0
            }
            END {
                for (name in used) if (!(name in told))
                    print used[name] ": the event " name " is not in docs/operations.md"
                for (name in told) if (!(name in used))
                    print told[name] ": no program writes the event " name
            }' docs/operations.md $daemon_files
        ;;
    rules)
        # Each rule of docs/lock.md has a test: START_TEST(E6_…) in a test of redlock/ or redis/,
        # START_TEST(lock_G3_…) in any other, or a script under tests/ that says "proves lock.C6".
        over '
            function seen(id) { if (id != "") proved[id] = 1 }
            FILENAME ~ /docs\/lock\.md$/ {
                if (match($0, /^- \*\*[A-Z][0-9]+\*\*/)) {
                    id = substr($0, RSTART + 4, RLENGTH - 6); rule[id] = FILENAME ":" FNR
                }
                next
            }
            match($0, /^START_TEST\(lock_[A-Z][0-9]+_/) { seen(substr($0, 17, RLENGTH - 17)) }
            FILENAME ~ /test_(redlock|redis)/ && match($0, /^START_TEST\([A-Z][0-9]+_/) { seen(substr($0, 12, RLENGTH - 12)) }
            FILENAME ~ /\.sh$/ && match($0, /proves lock\.[A-Z][0-9]+/) { seen(substr($0, RSTART + 12, RLENGTH - 12)) }
            END { for (id in rule) if (!(id in proved)) print rule[id] ": no test is named after lock." id }
            ' docs/lock.md $(files '*.c' '*.sh' | grep '^tests/' | grep -v '^tests/lint/')
        ;;
    format)
        need clang-format
        [ -z "$c_files" ] || clang-format --dry-run -Werror $c_files
        ;;
    shell)
        need shellcheck
        [ -z "$scripts" ] || shellcheck $scripts
        ;;
    tidy)
        # Minutes of work: only where all lints were asked for.
        [ -n "${CLAIMD_LINT_ALL:-}" ] || { echo "runs with ./dev lint"; exit 77; }
        need clang-tidy
        database=${CLAIMD_BUILD_DIR:-build/dev}
        files '*.c' | grep -v -e '^examples/' |
            xargs -P "$(nproc)" -n 1 clang-tidy -p "$database" --quiet --warnings-as-errors='*' \
                --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-implicit-fallthrough # gcc knows uthash's
        ;;
    *)
        echo "lint.sh: no lint '$name'" >&2
        exit 2
        ;;
esac
