/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd/test.h, by which authors of plugins test them without servers. It is tested on the plugin
 * of the conformance kit, which takes the steps that its args name. */
#include "claimd/test.h"

#include "support/suite.h"

#include <check.h>

static struct claimd_test_run run;

static void free_run(void)
{
    claimd_test_free(&run);
}

/* Runs steps that are separated by "\\n". */
static void run_steps(const char *steps, struct claimd_test_job job)
{
    char args[512];
    (void)snprintf(args, sizeof args, "{\"do\": \"%s\"}", steps);
    job.kind = "conform";
    job.args = args;
    run = claimd_test(CONFORM_PLUGIN, &job);
}

#define RUN(steps, ...) run_steps(steps, (struct claimd_test_job){__VA_ARGS__})

START_TEST(prog_T1_a_test_sees_result_progress_log_and_checkpoint)
{
    RUN("log hello\\nprogress 40 half of it\\ncheckpoint {\\\"at\\\": 3}\\ndone {\\\"a\\\": 1}",
        .attempt = 1);
    ck_assert_str_eq(run.outcome, "done");
    ck_assert_str_eq(run.result, "{\"a\": 1}");
    ck_assert_str_eq(run.log, "hello\n");
    ck_assert_int_eq(run.progress, 40);
    ck_assert_str_eq(run.text, "half of it");
    ck_assert_str_eq(run.checkpoint, "{\"at\": 3}");
    ck_assert_str_eq(run.error, "");
    ck_assert_int_eq(run.delay_ms, -1);
}
END_TEST

START_TEST(prog_T1_what_is_not_said_is_empty)
{
    RUN("done", .max_attempts = 2);
    ck_assert_str_eq(run.outcome, "done");
    ck_assert_str_eq(run.result, "");
    ck_assert_str_eq(run.log, "");
    ck_assert_str_eq(run.checkpoint, "");
    ck_assert_int_eq(run.progress, -1);
}
END_TEST

static const struct {
    const char *steps;
    const char *outcome;
    const char *error;
    long delay_ms;
} ends[] = {{"retry 30 printer jams", "retry", "printer jams", 30000},
            {"retry - printer jams", "retry", "printer jams", -1},
            {"snooze 5 not yet", "snooze", "not yet", 5000},
            {"fail no such order", "fail", "no such order", -1},
            {"cancel not wanted", "cancel", "not wanted", -1},
            {"kill SEGV", "crashed", "signal 11", -1}};

START_TEST(prog_T1_a_test_sees_how_the_attempt_ended_and_why)
{
    RUN(ends[_i].steps, .attempt = 2);
    ck_assert_str_eq(run.outcome, ends[_i].outcome);
    ck_assert_msg(strstr(run.error, ends[_i].error) != NULL, "%s", run.error);
    ck_assert_int_eq(run.delay_ms, ends[_i].delay_ms);
}
END_TEST

START_TEST(prog_T1_a_checkpoint_goes_to_the_next_attempt)
{
    RUN("checkpoint [1, 2]\\nretry 0 again", .attempt = 1);
    struct claimd_test_run first = run;
    RUN("done_checkpoint", .attempt = 2, .checkpoint = first.checkpoint);
    ck_assert_str_eq(run.outcome, "done");
    ck_assert_str_eq(run.result, "[1, 2]");
    claimd_test_free(&first);
}
END_TEST

START_TEST(prog_T1_a_handler_is_told_to_stop_and_killed_after_its_grace)
{
    RUN("progress 1\\nawait_stop\\nretry 0 told", .stop = "timeout");
    ck_assert_str_eq(run.outcome, "retry");
    ck_assert_str_eq(run.error, "told");
    claimd_test_free(&run);
    RUN("ignore_stop", .stop = "cancel", .stop_after_ms = 1, .grace_ms = 50);
    ck_assert_str_eq(run.outcome, "killed");
}
END_TEST

START_TEST(prog_T1_a_plugin_that_is_not_there_is_said)
{
    struct claimd_test_job job = {.kind = "conform"};
    run = claimd_test("/nowhere/conform.so", &job);
    ck_assert_str_eq(run.outcome, "not_run");
    ck_assert_str_ne(run.error, "");
}
END_TEST

START_TEST(prog_T1_args_that_are_no_JSON_are_said)
{
    struct claimd_test_job job = {.kind = "conform", .args = "{"};
    run = claimd_test(CONFORM_PLUGIN, &job);
    ck_assert_str_eq(run.outcome, "not_run");
    ck_assert_str_ne(run.error, "");
}
END_TEST

START_TEST(prog_T1_a_long_log_is_read_whole)
{
    RUN("50* log 0123456789012345678901234567890123456789012345678901234567890123456789\\n"
        "done_args",
        .attempt = 1);
    ck_assert_str_eq(run.outcome, "done");
    ck_assert_uint_eq(strlen(run.log), 50 * 71);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sdk_test");
    TCase *c = tcase_create("test.h");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, NULL, free_run);
    tcase_add_test(c, prog_T1_a_test_sees_result_progress_log_and_checkpoint);
    tcase_add_test(c, prog_T1_what_is_not_said_is_empty);
    tcase_add_loop_test(c, prog_T1_a_test_sees_how_the_attempt_ended_and_why, 0,
                        (int)(sizeof ends / sizeof *ends));
    tcase_add_test(c, prog_T1_a_checkpoint_goes_to_the_next_attempt);
    tcase_add_test(c, prog_T1_a_handler_is_told_to_stop_and_killed_after_its_grace);
    tcase_add_test(c, prog_T1_a_plugin_that_is_not_there_is_said);
    tcase_add_test(c, prog_T1_args_that_are_no_JSON_are_said);
    tcase_add_test(c, prog_T1_a_long_log_is_read_whole);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
