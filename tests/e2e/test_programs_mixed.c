/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers of all kinds in one worker: a plugin, a program that serves, and commands that run once,
 * with and without an SDK. Their jobs are in one queue, while runners and programs are being
 * killed. The handlers are the candidates of the conformance kit: the args of a job determine what
 * it does. */
#include "base/rand.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define COPIES 8 /* of each job and kind */
#define KILLS 60
#define RUNNERS_MAX 16
#define LIMITS "{\"max_attempts\": 1000, \"max_crashes\": 1000, \"backoff\": \"fixed:0s\"}"

static struct fleet fleet;
static struct rand rand_of_test;
static char mark[32]; /* an argument of everything that handlers start, unique to this test */

static const char *const kinds[] = {"mixed_plugin", "mixed_python", "mixed_once", "mixed_shell"};

/* Any of the results is correct: an attempt may be killed before its checkpoint. */
static const struct {
    const char *steps;
    const char *state;
    const char *results;
    bool leaves; /* leaves a process behind */
} works[] = {
    {"done 7", "completed", "[7]", false},
    {"progress 10\\nlog half\\nwait 0.05\\ndone [1, 2]", "completed", "[[1, 2]]", false},
    {"log before\\nwait 0.05\\nfail bad order", "discarded", "[null]", false},
    {"wait 0.05\\ncancel void", "cancelled", "[null]", false},
    {"1: retry 0 once more\\nwait 0.05\\ndone 8", "completed", "[8]", false},
    {"1: checkpoint {\\\"at\\\": 3}\\n1: kill KILL\\ndone_checkpoint", "completed",
     "[{\"at\": 3}, null]", false},
    {"1: kill SEGV\\nprogress 100\\ndone 9", "completed", "[9]", false},
    {"wait 0.05\\ndone 10", "completed", "[10]", true},
    {"1: kill ABRT\\ndone 11", "completed", "[11]", true},
};

#define JOBS ((int64_t)(ARRAY_COUNT(kinds) * ARRAY_COUNT(works) * COPIES))

static int64_t count(const char *what)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.jobs WHERE %s", what);
}

static void enqueue(const char *kind, size_t work)
{
    char leave[64] = "";
    if (works[work].leaves) {
        (void)snprintf(leave, sizeof leave, "leave %s\\n", mark);
    }
    sql_run(fleet.sql,
            "SELECT claimd.enqueue('%s', '{\"do\": \"%s%s\"}', metadata => '{\"state\": \"%s\","
            " \"results\": %s}') FROM generate_series(1, %d)",
            kind, leave, works[work].steps, works[work].state, works[work].results, COPIES);
}

/* ---- kills ---- */

static pid_t one_of(const pid_t *pids, size_t n)
{
    return pids[rand_below(&rand_of_test, (int64_t)n)];
}

/* Returns a runner, or a program of one; 0 = there is none now. */
static pid_t victim(void)
{
    pid_t runners[RUNNERS_MAX];
    pid_t programs[RUNNERS_MAX];
    size_t n = program_children(fleet.workers[0], runners, RUNNERS_MAX);
    if (n == 0) {
        return 0;
    }
    pid_t runner = one_of(runners, n);
    n = program_children(runner, programs, RUNNERS_MAX);
    bool is_runner = n == 0 || rand_below(&rand_of_test, 3) == 0;
    return is_runner ? runner : one_of(programs, n);
}

static void kill_one(void)
{
    static const int signals[] = {SIGKILL, SIGKILL, SIGSEGV, SIGABRT};
    pid_t pid = 0;
    ck_assert(WAIT_UNTIL((pid = victim()) > 0, SOON_US));
    (void)kill(pid, signals[rand_below(&rand_of_test, ARRAY_COUNT(signals))]); /* it may be gone */
}

/* ---- processes left behind ---- */

static bool has_mark(const char *path)
{
    char text[4096];
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    return n > 0 && memmem(text, (size_t)n, mark, strlen(mark)) != NULL;
}

static int count_marked(void)
{
    glob_t found;
    int marked = 0;
    ck_assert_int_eq(glob("/proc/[0-9]*/cmdline", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        marked += has_mark(found.gl_pathv[i]);
    }
    globfree(&found);
    return marked;
}

START_TEST(prog_M1_jobs_of_all_handlers_end_once_as_they_should_while_their_processes_are_killed)
{
    pid_t runners[RUNNERS_MAX];
    for (size_t w = 0; w < ARRAY_COUNT(works); w++) {
        for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
            enqueue(kinds[k], w);
        }
    }
    for (int64_t i = 1; i <= KILLS; i++) {
        ck_assert(WAIT_UNTIL(count("finalized_at IS NOT NULL") >= i * JOBS / (KILLS + 1), SOON_US));
        kill_one();
    }
    ck_assert(WAIT_UNTIL(count("finalized_at IS NOT NULL") == JOBS, SOON_US));
    ck_assert_int_eq(count("true"), JOBS);
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(DISTINCT id) FROM claimd.jobs"), JOBS);
    const char *other = sql_text(
        fleet.sql, "SELECT to_jsonb(j) FROM claimd.jobs j WHERE state <> metadata->>'state' OR NOT"
                   " metadata->'results' @> jsonb_build_array(coalesce(result, 'null')) LIMIT 1");
    ck_assert_str_eq(other, "");
    ck_assert_int_eq(fleet_log_count(&fleet, "claimd-worker", 0, "level=error"), 0);

    size_t n = program_children(fleet.workers[0], runners, RUNNERS_MAX);
    ck_assert_uint_gt(n, 0);
    fleet_signal(fleet.workers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.workers[0]), 0);
    ck_assert(WAIT_UNTIL(count_marked() == 0, SOON_US));
    for (size_t i = 0; i < n; i++) {
        ck_assert(WAIT_UNTIL(kill(runners[i], 0) != 0, SOON_US));
    }
}
END_TEST

/* ---- the fleet ---- */

static const char *python(void)
{
    return access("/usr/bin/python3", X_OK) == 0 ? "\"/usr/bin/python3\""
                                                 : "\"/usr/bin/env\", \"python3\"";
}

static void add_handlers(void)
{
    char json[2048];
    const char *source = getenv("CLAIMD_SOURCE_DIR");
    fleet_add_plugin(&fleet, "CLAIMD_CONFORM_DIR", "conform.so");
    (void)snprintf(json, sizeof json,
                   "{\"command\": [%s, \"%s/tests/conformance/conform.py\", \"mixed_python\","
                   " \"%s\"], \"kinds\": {\"mixed_python\": " LIMITS "},"
                   " \"env\": {\"PYTHONPATH\": \"%s/sdk/python\"}}",
                   python(), source, mark, source);
    fleet_add_handlers(&fleet, "mixed_python", json);
    (void)snprintf(json, sizeof json,
                   "{\"command\": [%s, \"%s/tests/conformance/conform_once.py\", \"%s\"],"
                   " \"mode\": \"once\", \"kinds\": {\"mixed_once\": " LIMITS "}}",
                   python(), source, mark);
    fleet_add_handlers(&fleet, "mixed_once", json);
    (void)snprintf(json, sizeof json,
                   "{\"command\": [\"/bin/sh\", \"%s/tests/conformance/conform.sh\","
                   " \"%s/sdk/shell/claimd.sh\", \"%s\"], \"mode\": \"once\","
                   " \"kinds\": {\"mixed_shell\": " LIMITS "}}",
                   source, source, mark);
    fleet_add_handlers(&fleet, "mixed_shell", json);
}

static void setup(void)
{
    struct fleet_options options = {.masters = 1, .slots = 4, .has_handlers = true};
    const char *given = getenv("SEED");
    unsigned long long seed =
        given == NULL ? (unsigned long long)clock_boot_us() : strtoull(given, NULL, 10);
    (void)printf("SEED=%llu\n", seed);
    (void)fflush(stdout);
    rand_seed(&rand_of_test, seed);
    (void)snprintf(mark, sizeof mark, "%d.%06lld", 40000000 + (int)getpid(),
                   (long long)(clock_boot_us() % US_PER_S)); /* valid as the seconds of a sleep */
    fleet_start(&fleet, &options);
    add_handlers();
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

static Suite *suite(void)
{
    Suite *s = suite_create("programs_mixed");
    TCase *c = tcase_create("programs_mixed");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(
        c, prog_M1_jobs_of_all_handlers_end_once_as_they_should_while_their_processes_are_killed);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
