/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a slot with real runners: deaths at any moment, and each run is reported exactly
 * once. */
#include "slot_world.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_run_ends_once_with_its_result_and_the_runner_is_used_again)
{
    int job = 0;
    open_slot();
    RUN_UNTIL(is_idle());
    int pid = slot_pid(t.slot);
    (void)run("inspect", "{}", &job);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.ends, 1);
    ck_assert_int_eq(t.end, RUN_END_SAID);
    ck_assert_int_eq(t.outcome, CLAIMD_DONE);
    ck_assert_ptr_eq(t.ended_job, &job);
    ck_assert_int_eq(slot_pid(t.slot), pid);
}
END_TEST

START_TEST(A2_a_runner_that_is_killed_in_a_run_is_told_and_replaced_at_once)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)start_long_run();
    ck_assert_int_eq(kill(slot_pid(t.slot), SIGKILL), 0);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.end, RUN_END_CRASHED);
    ck_assert(strstr(t.death, "signal 9") != NULL);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.ends, 1);
    ck_assert_int_eq(t.hellos, 2);
}
END_TEST

START_TEST(a_kill_that_races_with_a_result_ends_the_run_once)
{
    open_slot();
    for (int i = 0; i < 15; i++) {
        RUN_UNTIL(is_idle());
        (void)run("inspect", "{}", &t); /* one that works, so that the next runner starts at once */
        RUN_UNTIL(is_idle());
        int before = t.ends;
        (void)run("inspect", "{}", &t);
        for (int k = 0; k < i % 5 && t.ends == before; k++) {
            (void)uv_run(&t.loop, UV_RUN_ONCE);
        }
        slot_kill(t.slot);
        RUN_UNTIL(t.ends > before);
        RUN_UNTIL(is_idle());
        ck_assert_int_eq(t.ends, before + 1);
    }
}
END_TEST

START_TEST(a_run_that_never_reached_its_handler_is_told_apart)
{
    open_slot();
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(kill(slot_pid(t.slot), SIGSTOP), 0);
    (void)run("inspect", "{}", &t);
    slot_kill(t.slot);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.end, RUN_END_NOT_STARTED);
}
END_TEST

START_TEST(runners_that_die_before_they_started_a_handler_come_back_ever_more_slowly)
{
    open_slot();
    for (int i = 0; i < 4; i++) {
        RUN_UNTIL(t.hellos == i + 1 && is_idle());
        slot_kill(t.slot);
        RUN_UNTIL(t.deaths == i + 1);
    }
    ck_assert_int_ge(t.death_us[1] - t.death_us[0], 80 * US_PER_MS);
    ck_assert_int_ge(t.death_us[3] - t.death_us[2], 320 * US_PER_MS);
    RUN_UNTIL(is_idle());
    (void)run("inspect", "{}", &t);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.end, RUN_END_SAID);
}
END_TEST

START_TEST(a_runner_that_was_asked_to_stop_is_not_used_again)
{
    open_slot();
    RUN_UNTIL(is_idle());
    int pid = slot_pid(t.slot);
    slot_ask_to_stop(t.slot, start_long_run(), STOP_SHUTDOWN);
    RUN_UNTIL(t.ends == 1);
    RUN_UNTIL(is_idle());
    ck_assert_int_ne(slot_pid(t.slot), pid);
    ck_assert_int_eq(t.deaths, 0); /* an expected end */
}
END_TEST

START_TEST(a_stop_that_nobody_asked_for_is_forgotten_before_the_next_job)
{
    open_slot();
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(kill(slot_pid(t.slot), SIGTERM), 0);
    RUN_UNTIL(atomic_load(&slot_page(t.slot)->should_stop) != 0);
    (void)run("nap", "{\"ms\": 1}", &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(atomic_load(&slot_page(t.slot)->should_stop), 0);
}
END_TEST

START_TEST(G4_a_daemon_that_a_handler_left_is_gone_when_the_next_runner_is_there)
{
    open_slot();
    RUN_UNTIL(is_idle());
    int pid = slot_pid(t.slot);
    (void)run("daemonize", "{}", &t);
    RUN_UNTIL(t.ends == 1);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.ends, 1);
    ck_assert_int_eq(t.end, RUN_END_SAID);
    ck_assert_int_ne(slot_pid(t.slot), pid);
    int left = (int)strtol(t.result, NULL, 10);
    ck_assert_int_gt(left, 1);
    ck_assert_int_eq(kill(left, 0), -1);
}
END_TEST

/* ---- handlers that forge frames of their runner ---- */

static enum run_end end_of_next_run(const char *args)
{
    open_slot();
    RUN_UNTIL(is_idle());
    int pid = slot_pid(t.slot);
    (void)run("forge", args, &t);
    RUN_UNTIL(t.ends == 1);
    RUN_UNTIL(is_idle());
    (void)run("nap", "{\"ms\": 300}", &t);
    RUN_UNTIL(t.ends == 2);
    enum run_end end = t.end;
    RUN_UNTIL(is_idle());
    ck_assert_int_ne(slot_pid(t.slot), pid);
    ck_assert_int_eq(t.ends, 2);
    return end;
}

START_TEST(G5_a_result_that_a_handler_forged_costs_the_next_run_nothing)
{
    ck_assert_int_eq(end_of_next_run("{\"what\": 0, \"ms\": 200}"), RUN_END_NOT_STARTED);
}
END_TEST

START_TEST(G5_a_second_result_of_an_earlier_run_costs_the_next_one_nothing)
{
    ck_assert_int_eq(end_of_next_run("{\"what\": 0, \"ms\": 200, \"hide\": 1}"), RUN_END_SAID);
    ck_assert_int_eq(t.outcome, CLAIMD_DONE);
    ck_assert_str_eq(t.result, "\"slept\"");
}
END_TEST

START_TEST(G5_junk_of_an_earlier_run_is_not_charged_to_the_present_one)
{
    enum run_end end = end_of_next_run("{\"what\": 2, \"ms\": 100}");
    ck_assert_int_eq(end, RUN_END_NOT_STARTED);
}
END_TEST

/* The worker's loop is late: the next run has begun before the junk of the previous one is read. */
START_TEST(G5_junk_that_is_read_late_is_still_not_charged_to_the_present_run)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("forge", "{\"what\": 2, \"ms\": 100, \"hide\": 1}", &t);
    RUN_UNTIL(t.ends == 1);
    RUN_UNTIL(is_idle());
    (void)send_long_run();
    ck_assert(WAIT_UNTIL(has_content(t.ledger), SOON_US)); /* meanwhile the loop stands still */
    RUN_UNTIL(t.ends == 2);
    ck_assert_int_eq(t.end, RUN_END_SPOILT);
}
END_TEST

START_TEST(G5_junk_behind_a_result_fails_the_run_that_wrote_it)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("forge", "{\"what\": 1, \"ms\": 100}", &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.end, RUN_END_CRASHED);
    ck_assert_ptr_nonnull(strstr(t.death, "bytes after the result"));
}
END_TEST

START_TEST(G5_a_result_for_a_job_to_come_fails_the_run_that_wrote_it)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("forge", "{\"what\": 3, \"ms\": 100}", &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.end, RUN_END_CRASHED);
    RUN_UNTIL(is_idle());
    (void)run("nap", "{\"ms\": 1}", &t);
    RUN_UNTIL(t.ends == 2);
    ck_assert_str_eq(t.result, "\"slept\"");
}
END_TEST

START_TEST(G5_a_forged_result_never_stands_for_the_next_run)
{
    enum run_end end = end_of_next_run("{\"what\": 4, \"ms\": 100, \"hide\": 1}");
    ck_assert(end == RUN_END_NOT_STARTED || strcmp(t.result, "\"slept\"") == 0);
}
END_TEST

START_TEST(G5_a_forged_result_with_a_guessed_nonce_never_stands_for_the_next_run)
{
    enum run_end end = end_of_next_run("{\"what\": 5, \"ms\": 100, \"hide\": 1}");
    ck_assert(end == RUN_END_NOT_STARTED || strcmp(t.result, "\"slept\"") == 0);
}
END_TEST

START_TEST(a_handler_that_closes_its_pipe_costs_that_run_only)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("close_fds", "{}", &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert(t.end == RUN_END_CRASHED ||
              t.end == RUN_END_SAID); /* its result may be in the ring */
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.ends, 1);
}
END_TEST

START_TEST(without_descriptors_a_slot_waits_and_starts_when_there_are_some)
{
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    open_slot();
    RUN_UNTIL(is_idle());
    struct rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    slot_kill(t.slot);
    RUN_UNTIL(t.deaths >= 2);
    ck_assert(slot_state(t.slot) == SLOT_EMPTY);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.ends, 0);
}
END_TEST

START_TEST(a_slot_without_a_program_to_start_keeps_trying_without_haste)
{
    (void)snprintf(t.runner, sizeof t.runner, "/nowhere/claimd-runner");
    open_slot();
    RUN_UNTIL(t.deaths >= 3);
    ck_assert_int_ge(t.death_us[2] - t.death_us[1], 100 * US_PER_MS); /* 200, less fork's time */
    ck_assert(strstr(t.death, "/nowhere/claimd-runner") != NULL);
}
END_TEST

/* The environment with which it starts must be small too: that stays readable after clearenv(). */
START_TEST(J4_a_runner_is_started_with_a_small_environment_of_its_own)
{
    ck_assert_int_eq(setenv("CLAIMD_POSTGRES_CONNINFO", "host=canary", 1), 0);
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("environment", "{\"text\": \"canary\"}", &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.outcome, CLAIMD_DONE);
    ck_assert_str_eq(t.result, "false");
    RUN_UNTIL(is_idle());
    (void)run("environment", "{\"text\": \"PATH=\"}", &t);
    RUN_UNTIL(t.ends == 2);
    ck_assert_str_eq(t.result, "true");
}
END_TEST

START_TEST(a_runner_is_replaced_when_it_is_idle_and_not_before)
{
    open_slot();
    RUN_UNTIL(is_idle());
    int pid = slot_pid(t.slot);
    (void)run("nap", "{\"ms\": 200}", &t);
    ck_assert(slot_is_current(t.slot));
    slot_replace(t.slot);
    ck_assert(!slot_is_current(t.slot));
    RUN_UNTIL(t.ends == 1);
    ck_assert_str_eq(t.result, "\"slept\"");
    RUN_UNTIL(is_idle());
    ck_assert_int_ne(slot_pid(t.slot), pid);
    pid = slot_pid(t.slot);
    slot_replace(t.slot);
    RUN_UNTIL(is_idle());
    ck_assert_int_ne(slot_pid(t.slot), pid);
    ck_assert(slot_is_current(t.slot));
    ck_assert_int_eq(t.deaths, 0); /* an expected end */
}
END_TEST

START_TEST(G6_a_file_that_ends_its_runner_is_told_and_can_be_left_out)
{
    static struct slot_without without;
    char bad[1024 + 8];
    (void)snprintf(bad, sizeof bad, "%s_bad", t.plugins);
    t.options.plugin_dir = bad;
    t.options.without = &without;
    static const char *const others[] = {"ctor_crash.so", "ctor_exit.so", "ctor_hang.so",
                                         "ctor_hang_later.so"};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        (void)snprintf(without.files[without.count++], RUNNER_FILE_SIZE, "%s", others[i]);
    }
    open_slot();
    RUN_UNTIL(t.load_deaths == 2);
    ck_assert_str_eq(t.load_file, "ctor_abort_later.so");
    ck_assert(!t.has_hung);
    ck_assert_int_eq(t.hellos, 0);
    (void)snprintf(without.files[without.count++], RUNNER_FILE_SIZE, "%s", t.load_file);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.load_deaths, 2);
}
END_TEST

START_TEST(a_slot_may_be_closed_in_a_run)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("spin", "{}", &t);
    (void)uv_run(&t.loop, UV_RUN_ONCE);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("slot");
    TCase *c = tcase_create("slot");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, slot_world_setup, slot_world_teardown);
    tcase_add_test(c, a_run_ends_once_with_its_result_and_the_runner_is_used_again);
    tcase_add_test(c, A2_a_runner_that_is_killed_in_a_run_is_told_and_replaced_at_once);
    tcase_add_test(c, a_kill_that_races_with_a_result_ends_the_run_once);
    tcase_add_test(c, a_run_that_never_reached_its_handler_is_told_apart);
    tcase_add_test(c, runners_that_die_before_they_started_a_handler_come_back_ever_more_slowly);
    tcase_add_test(c, a_runner_that_was_asked_to_stop_is_not_used_again);
    tcase_add_test(c, a_stop_that_nobody_asked_for_is_forgotten_before_the_next_job);
    tcase_add_test(c, G4_a_daemon_that_a_handler_left_is_gone_when_the_next_runner_is_there);
    tcase_add_test(c, G5_a_result_that_a_handler_forged_costs_the_next_run_nothing);
    tcase_add_test(c, G5_a_second_result_of_an_earlier_run_costs_the_next_one_nothing);
    tcase_add_test(c, G5_junk_of_an_earlier_run_is_not_charged_to_the_present_one);
    tcase_add_test(c, G5_junk_that_is_read_late_is_still_not_charged_to_the_present_run);
    tcase_add_test(c, G5_junk_behind_a_result_fails_the_run_that_wrote_it);
    tcase_add_test(c, G5_a_result_for_a_job_to_come_fails_the_run_that_wrote_it);
    tcase_add_test(c, G5_a_forged_result_never_stands_for_the_next_run);
    tcase_add_test(c, G5_a_forged_result_with_a_guessed_nonce_never_stands_for_the_next_run);
    tcase_add_test(c, a_handler_that_closes_its_pipe_costs_that_run_only);
    tcase_add_test(c, without_descriptors_a_slot_waits_and_starts_when_there_are_some);
    tcase_add_test(c, a_slot_without_a_program_to_start_keeps_trying_without_haste);
    tcase_add_test(c, J4_a_runner_is_started_with_a_small_environment_of_its_own);
    tcase_add_test(c, a_runner_is_replaced_when_it_is_idle_and_not_before);
    tcase_add_test(c, G6_a_file_that_ends_its_runner_is_told_and_can_be_left_out);
    tcase_add_test(c, a_slot_may_be_closed_in_a_run);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
