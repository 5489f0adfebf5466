/* SPDX-License-Identifier: Apache-2.0
 *
 * The history that real daemons record while one of them dies passes the checkers, and it contains
 * every step of a job. */
#include "base/buf.h"
#include "cluster/child.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define JOBS 120

#define OK(call)                                           \
    do {                                                   \
        struct err err = {0};                              \
        ck_assert_msg((call) == STATUS_OK, "%s", err.msg); \
    } while (0)

static struct fleet fleet;
static char run[SERVER_PATH_MAX + 8];

static void make_run(void)
{
    static const char *const parts[] = {"", "/history"};
    (void)snprintf(run, sizeof run, "%s/run", fleet.dir);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        char path[SERVER_PATH_MAX + 32];
        (void)snprintf(path, sizeof path, "%s%s", run, parts[i]);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        OK(child_user_owns(path, &err));
    }
    char path[SERVER_PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/run.json", run);
    FILE *about = fopen(path, "we");
    ck_assert_ptr_nonnull(about);
    (void)fprintf(about, "{\"time_scale\": 0.25}\n");
    ck_assert_int_eq(fclose(about), 0);
    (void)snprintf(path, sizeof path, "%s/history", run);
    ck_assert_int_eq(setenv("CLAIMD_HISTORY", path, 1), 0);
}

static void judge(struct buf *out, int expected)
{
    char program[SERVER_PATH_MAX];
    int code = -1;
    (void)snprintf(program, sizeof program, "%s/claimd-chaos-check", getenv("CLAIMD_BIN_DIR"));
    OK(program_run((const char *const[]){program, run, NULL}, NULL, SOON_US, out, &code, &err));
    ck_assert_msg(code == expected, "exit code %d\n%s", code, buf_at(out));
}

static bool is_recorded(const char *op, const char *phase)
{
    char pattern[128];
    char command[SERVER_PATH_MAX + 32];
    int code = -1;
    autobuf struct buf out = BUF_INIT((size_t)8 << 20);
    (void)snprintf(pattern, sizeof pattern, "\"op\":\"%s\",\"ph\":\"%s\"", op, phase);
    (void)snprintf(command, sizeof command, "%s/history", run);
    const char *const argv[] = {"/bin/grep", "-rlF", pattern, command, NULL};
    OK(program_run(argv, NULL, SOON_US, &out, &code, &err));
    return code == 0;
}

START_TEST(a_real_history_with_a_death_in_it_is_as_promised)
{
    static const char *const steps[][2] = {
        {"start", "inv"},    {"start", "ok"},    {"push", "inv"},   {"push", "ok"},
        {"pop", "ok"},       {"lock", "inv"},    {"lock", "ok"},    {"unlock", "inv"},
        {"claim", "inv"},    {"claim", "ok"},    {"run", "inv"},    {"run", "ok"},
        {"complete", "inv"}, {"complete", "ok"}, {"extend", "inv"}, {"extend", "ok"},
        {"dead", "ok"},      {"reap", "inv"},    {"reap", "ok"},    {"beat", "inv"},
        {"beat", "ok"},      {"stop", "ok"},     {"serves", "inv"}, {"serves", "ok"},
        {"serves", "info"},  {"spare", "ok"}};
    char args[SERVER_PATH_MAX + 64];
    char path[SERVER_PATH_MAX];
    autobuf struct buf out = BUF_INIT((size_t)8 << 20);
    fleet_start(&fleet, &(struct fleet_options){.masters = 3, .slots = 4});
    make_run();
    fleet_ledger_path(&fleet, path, sizeof path);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": 200}", path);
    fleet_start_worker(&fleet, 0, "W6=kill:20");
    fleet_start_scheduler(&fleet, 0);
    (void)fleet_enqueue(&fleet, "ledger", args, JOBS);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.workers[0]), 128 + SIGKILL);
    fleet_start_worker(&fleet, 1, NULL);
    fleet_wait_finished(&fleet, JOBS, "completed", SOON_US);
    fleet_signal(fleet.workers[1], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.workers[1]), 0);
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        ck_assert_msg(is_recorded(steps[i][0], steps[i][1]), "no %s %s", steps[i][0], steps[i][1]);
    }
    judge(&out, 0);
    fleet_stop(&fleet);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chaos_history");
    TCase *tcase = tcase_create("history");
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, a_real_history_with_a_death_in_it_is_as_promised);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
