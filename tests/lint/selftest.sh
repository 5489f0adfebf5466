#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# selftest.sh NAME: the lint passes a clean tree and finds each violation planted in it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/base" "$tree/store" "$tree/worker" "$tree/docs" "$tree/tests/unit" "$tree/build/dev"
cp "$here/../../.clang-format" "$here/../../.clang-tidy" "$tree/"

# On a tree of one file it takes no minutes.
[ "$name" != tidy ] || ! command -v clang-tidy >/dev/null || export CLAIMD_LINT_ALL=1

# What clean() adds for the events: every way in which a name is written.
clean_events() {
    cat >"$tree/worker/good.c" <<'EOF'
/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

void good(int n)
{
    static const char *const events[] = {"node_up", "node_down"};
    log_info(n > 0 ? "won" : "lost", LOG_I64("not_an_event", n));
    log_at(n > 0 ? LOG_INFO : LOG_WARN, "wrapped", LOG_TEXT("neither", "nor"));
    log_info(events[n], LOG_TEXT("node", "here"));
    const char *event = n > 0 ? "good" : "bad";
    log_info(event, LOG_TEXT("node", "here"));
}
EOF
    cat >"$tree/docs/operations.md" <<'EOF'
| `TERM` `not_here` | another table |
## Log lines
| event | by | |
|---|---|---|
| `won` `lost` | worker | with its `key` |
| `node_up` `node_down` (debug) `wrapped` | all | |
| `good` `bad` | all | |
## Next
| `nor_here` | |
EOF
}

# What clean() adds for the rules: each way of naming a test after one.
clean_rules() {
    mkdir -p "$tree/tests/platforms"
    printf '%s\n' '- **A1** one' '- **A2** two' '- **A3** three' >"$tree/docs/lock.md"
    printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' 'START_TEST(A1_one)' >"$tree/tests/unit/test_redlock_x.c"
    printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' 'START_TEST(lock_A2_two)' >"$tree/tests/unit/test_x.c"
    printf '%s\n' '#!/bin/sh' '# SPDX-License-Identifier: Apache-2.0' '# proves lock.A3' >"$tree/tests/platforms/x.sh"
}

clean() {
    find "$tree" -name '*.c' -exec rm {} +
    rm -f "$tree/dev"
    cat >"$tree/base/good.c" <<'EOF'
/* SPDX-License-Identifier: Apache-2.0
 *
 * Good. */
#include <stddef.h>

/* Unlike strcpy(), it never sleep()s. */
size_t good(void);

size_t good(void)
{
    return sizeof "system(1)";
}
EOF
    printf '[{"directory": "%s", "file": "base/good.c", "command": "cc -c base/good.c"},
             {"directory": "%s", "file": "base/bad.c", "command": "cc -c base/bad.c"}]' \
        "$tree" "$tree" >"$tree/build/dev/compile_commands.json"
    [ "$name" != events ] || clean_events
    if [ "$name" = recipes ]; then
        echo 'add_test(test_good true)' >"$tree/build/dev/CTestTestfile.cmake"
        echo "Check: ./dev test -R '^test_good\$'." >"$tree/docs/howto.md"
    fi
    [ "$name" != rules ] || clean_rules
}

run() {
    CLAIMD_BUILD_DIR=build/dev "$here/lint.sh" "$name" "$tree" >"$tree/output" 2>&1
}

# plant FILE WHAT…: the lines become FILE; the lint must fail and name it
plant() {
    file=$1
    shift
    clean
    printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' "$@" >"$tree/$file"
    if run; then
        echo "$name did not see: $*"
        exit 1
    fi
    grep -q "${file##*/}" "$tree/output" || { echo "$name failed without naming $file:"; cat "$tree/output"; exit 1; }
}

clean
run || {
    code=$?
    cat "$tree/output"
    exit $code
}
case $name in
    includes)
        plant base/bad.c '#include "store/pg.h"'
        plant worker/bad.c '#include <hiredis/hiredis.h>'
        plant worker/bad.c '#include <libpq-fe.h>'
        plant store/bad.c '#include <check.h>'
        plant base/bad.c '#include "err.h"'
        mkdir -p "$tree/redlock/rules"
        plant redlock/rules/bad.c '#include "redlock/core/core.h"'
        ;;
    sizes)
        plant base/bad.c 'void f(void)' '{' "$(yes '    ;' | head -n 71)" '}'
        plant base/bad.c "$(yes 'int x;' | head -n 601)"
        ;;
    banned)
        for call in 'strcpy(a, b)' 'sprintf(a, "%d", 1)' 'atoi(a)' 'system("x")' 'popen("x", "r")'; do
            plant base/bad.c 'void f(void)' '{' "    (void)$call;" '}'
        done
        plant base/bad.c 'int f(void)' '{' '    st = st == STATUS_OK ? g() : st;' '}'
        plant tests/unit/bad.c 'void f(void)' '{' '    sleep(1);' '}'
        plant base/bad.c 'void f(uv_timer_t *t)' '{' '    (void)uv_timer_start(t, f, 0, 0);' '}'
        ;;
    limits)
        plant tests/unit/bad.c 'void f(void)' '{' '    ck_assert(WAIT_UNTIL(is_there(),' '                         2 * US_PER_S));' '}'
        plant tests/unit/bad.c 'void f(void)' '{' '    ck_assert_int_lt(clock_boot_us() - start_us, 300 * US_PER_MS);' '}'
        ;;
    text)
        plant base/bad.c '/* TODO: later */'
        plant base/bad.c 'const char *p = "/home/me/x";'
        clean
        echo 'int x;' >"$tree/base/bad.c"
        if run; then echo "text did not see a missing SPDX line" && exit 1; fi
        clean
        printf '%0121d\n' 0 >"$tree/docs/bad.md"
        if run; then echo "text did not see a long line of a document" && exit 1; fi
        rm "$tree/docs/bad.md"
        ;;
    comments)
        plant base/bad.c 'int x;'
        sentence='/* SPDX-License-Identifier: Apache-2.0'
        for bad in 'int x; /* of two\n        lines */' '/* The end is alone.\n */' 'void f(\n    int x); /* long */' \
            '/*\n * - one\n * two */'; do
            clean
            printf '%s\n *\n * Bad. */\n%b\n' "$sentence" "$bad" >"$tree/base/bad.c"
            if run || ! grep -q 'bad.c:[4-6]: ' "$tree/output"; then echo "comments did not see: $bad" && exit 1; fi
        done
        ;;
    english)
        for bad in 'int x; /* whoever has it */' '/* It is\n * done anew. */\nint x;'; do
            clean
            printf '/* SPDX-License-Identifier: Apache-2.0\n *\n * Bad. */\n%b\n' "$bad" >"$tree/base/bad.c"
            if run || ! grep -q 'bad.c:[4-6]: ' "$tree/output"; then echo "english did not see: $bad" && exit 1; fi
        done
        clean
        echo 'This is seen to.' >"$tree/docs/bad.md"
        if run || ! grep -q 'bad.md:1: ' "$tree/output"; then echo "english did not see a document" && exit 1; fi
        rm "$tree/docs/bad.md"
        ;;
    paths)
        clean
        # shellcheck disable=SC2016  # planted
        echo 'See `base/good.c` and `base/gone.c`.' >"$tree/docs/bad.md"
        if run || ! grep -q 'bad.md:1: .*base/gone.c' "$tree/output"; then
            echo "paths did not see a file that is not there" && exit 1
        fi
        ;;
    unused)
        plant base/bad.c 'int bad(void)' '{' '    return 1;' '}'
        ;;
    recipes)
        for pattern in '^test_good$|^test_gone$' '^test_(good|gone)$'; do
            clean
            printf '%s\n' "Check: ./dev test -R" "'$pattern'." >"$tree/docs/howto.md"
            if run || ! grep -q 'no test ^test_gone' "$tree/output" || grep -q test_good "$tree/output"; then
                echo "recipes did not see the test that is not there in $pattern" && exit 1
            fi
        done
        ;;
    events)
        plant worker/bad.c 'void f(void)' '{' '    log_info("untold", LOG_I64("n", 1));' '}'
        plant worker/bad.c 'void f(int n)' '{' '    log_at(n ? LOG_INFO : LOG_WARN,' '           "untold", LOG_I64("n", 1));' '}'
        plant worker/bad.c 'static const char *const events[] = {"won", "untold"};'
        plant worker/bad.c 'const struct service s = {.failed = "untold", .start = 0};'
        clean
        # shellcheck disable=SC2016  # planted
        sed -i 's/`lost`/`lost` `never_written`/' "$tree/docs/operations.md"
        if run || ! grep -q 'operations.md:5: .*never_written' "$tree/output"; then
            echo "events did not see a name that nobody writes" && exit 1
        fi
        ;;
    rules)
        plant docs/lock.md '- **A1** one' '- **A4** nobody proves it'
        clean
        echo 'START_TEST(A1_of_no_lock_test)' >"$tree/tests/unit/test_redlock_x.c"
        mv "$tree/tests/unit/test_redlock_x.c" "$tree/tests/unit/test_other.c"
        if run; then echo "rules took another module's A1 for the lock's" && exit 1; fi
        ;;
    format)
        plant base/bad.c 'int  x ;'
        ;;
    shell)
        clean
        # shellcheck disable=SC2016  # planted
        printf '#!/bin/sh\nrm $1\n' >"$tree/dev"
        if run; then echo "shell did not see an unquoted variable" && exit 1; fi
        ;;
    tidy)
        plant base/bad.c 'int bad(int x);' 'int bad(int x)' '{' '    return x == x;' '}'
        ;;
esac
