/* SPDX-License-Identifier: Apache-2.0
 *
 * This library beside clients of other libraries, for the same key (lock.L8): test_redlock_interop
 * [REDSYNC'S PROGRAM]. Exit code 77 = something that it needs is missing. */
#include "base/buf.h"
#include "contest.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define SKIPPED 77
#define PYTHON "/usr/bin/python3" /* Debian's, which finds python3-redis */

static char ours[SERVER_PATH_MAX];
static char redsync[SERVER_PATH_MAX];
static const char *third; /* path of the third contender */
static struct contest c;

START_TEST(T7_clients_of_other_libraries_and_ours_exclude_each_other)
{
    struct contest_result result;
    size_t next = 0;
    contest_start(&c, contest_seconds(8, 600));
    contest_add(&c, ours, "ours");
    contest_add(&c, CONTENDER_PY, "python");
    contest_add(&c, CONTENDER_PY, "page"); /* docs/lock-protocol.md, level 1 */
    contest_add(&c, third, third == ours ? "ours-too" : "redsync");
    contest_pause(&c, 3 * US_PER_S); /* ours does not trust young masters (lock.N1) */
    while (!contest_is_over(&c)) {
        contest_pause(&c, 800 * US_PER_MS + rand_below(&c.rand, 800 * US_PER_MS));
        if (!contest_is_over(&c)) {
            contest_kill(&c, next++ % c.count);
        }
    }
    contest_end(&c, &result);
}
END_TEST

static bool has_python_redis(void)
{
    static const char *const argv[] = {PYTHON, "-c", "import redis", NULL};
    autobuf struct buf out = BUF_INIT(65536);
    int code = -1;
    return program_run(argv, NULL, 30 * US_PER_S, &out, &code, NULL) == STATUS_OK && code == 0;
}

int main(int argc, char **argv)
{
    const char *bin = getenv("CLAIMD_BIN_DIR"); /* NOLINT(concurrency-mt-unsafe) */
    (void)snprintf(ours, sizeof ours, "%s/redlock-contender", bin != NULL ? bin : "bin");
    third = ours;
    if (!has_python_redis()) {
        (void)fprintf(stderr, "SKIPPED: " PYTHON " has no module redis (package python3-redis)\n");
        return SKIPPED;
    }
    if (argc > 1) { /* the path of redsync's program */
        (void)snprintf(redsync, sizeof redsync, "%s", argv[1]);
        if (access(redsync, X_OK) != 0) {
            (void)fprintf(stderr, "SKIPPED: there is no %s\n", redsync);
            return SKIPPED;
        }
        third = redsync;
    }
    Suite *s = suite_create("redlock_interop");
    TCase *t = tcase_create("redlock_interop");
    tcase_set_timeout(t, 900);
    tcase_add_test(t, T7_clients_of_other_libraries_and_ours_exclude_each_other);
    suite_add_tcase(s, t);
    return suite_run(s);
}
