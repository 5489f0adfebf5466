/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot that is given several jobs at once (docs/decisions/0019). */
#include "slot_world.h"
#include "support/suite.h"

START_TEST(jobs_that_were_given_at_once_run_in_their_order_and_each_is_told)
{
    int jobs[RUNNER_DEPTH];
    open_slot();
    RUN_UNTIL(is_idle());
    for (int i = 0; i < RUNNER_DEPTH; i++) {
        ck_assert(slot_takes(t.slot, "inspect", 10));
        (void)give("inspect", "{}", &jobs[i]);
    }
    ck_assert(!slot_takes(t.slot, "inspect", 10));
    slot_flush(t.slot);
    RUN_UNTIL(t.ends == RUNNER_DEPTH);
    ck_assert_ptr_eq(t.ended_job, &jobs[RUNNER_DEPTH - 1]);
    ck_assert_int_eq(t.returned, 0);
    RUN_UNTIL(is_idle());
}
END_TEST

START_TEST(A2_when_a_runner_dies_only_the_job_that_it_had_begun_is_charged)
{
    int jobs[3];
    open_slot();
    RUN_UNTIL(is_idle());
    (void)give("nap", "{\"ms\": 1}", &jobs[0]);
    int64_t second = give("nap", "{\"ms\": 60000}", &jobs[1]);
    (void)give("nap", "{\"ms\": 1}", &jobs[2]);
    slot_flush(t.slot);
    RUN_UNTIL(slot_has_started(t.slot, second));
    slot_take_results(t.slot); /* without a nudge, since other jobs follow */
    ck_assert_int_eq(t.ends, 1);
    ck_assert_ptr_eq(t.ended_job, &jobs[0]);
    slot_kill(t.slot);
    RUN_UNTIL(t.ends == 2);
    ck_assert_int_eq(t.end, RUN_END_CRASHED);
    ck_assert_ptr_eq(t.ended_job, &jobs[1]);
    ck_assert_int_eq(t.returned, 1);
    ck_assert_ptr_eq(t.returned_job, &jobs[2]);
}
END_TEST

START_TEST(a_job_that_waits_behind_another_comes_back_and_a_begun_one_does_not)
{
    int jobs[2];
    open_slot();
    RUN_UNTIL(is_idle());
    int64_t first = give("nap", "{\"ms\": 300}", &jobs[0]);
    int64_t second = give("nap", "{\"ms\": 1}", &jobs[1]);
    slot_flush(t.slot);
    RUN_UNTIL(slot_has_started(t.slot, first));
    ck_assert(!slot_has_started(t.slot, second));
    slot_take_back(t.slot);
    ck_assert_int_eq(t.returned, 1);
    ck_assert_ptr_eq(t.returned_job, &jobs[1]);
    ck_assert(!slot_takes(t.slot, "nap", 10)); /* it is slow */
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(t.ends, 1);
    (void)run("nap", "{\"ms\": 1}", &jobs[1]);
    RUN_UNTIL(t.ends == 2);
    ck_assert_str_eq(t.result, "\"slept\"");
}
END_TEST

START_TEST(who_is_asked_to_stop_is_the_run_that_was_meant)
{
    int jobs[3];
    open_slot();
    RUN_UNTIL(is_idle());
    int pid = slot_pid(t.slot);
    int64_t first = give("nap", "{\"ms\": 200}", &jobs[0]);
    int64_t second = give("nap", "{\"ms\": 1}", &jobs[1]);
    slot_flush(t.slot);
    RUN_UNTIL(slot_has_started(t.slot, first));
    slot_ask_to_stop(t.slot, second, STOP_SHUTDOWN); /* it is only taken back */
    ck_assert_int_eq(t.returned, 1);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(slot_pid(t.slot), pid);
    slot_ask_to_stop(t.slot, first, STOP_SHUTDOWN); /* it is over */
    (void)run("nap", "{\"ms\": 1}", &jobs[2]);
    RUN_UNTIL(t.ends == 2);
    RUN_UNTIL(is_idle());
    ck_assert_int_eq(slot_pid(t.slot), pid);
}
END_TEST

START_TEST(jobs_of_another_kind_wait_until_a_runner_has_none)
{
    int jobs[2];
    open_slot();
    RUN_UNTIL(is_idle());
    (void)give("nap", "{\"ms\": 50}", &jobs[0]);
    ck_assert(slot_takes(t.slot, "nap", 10));
    ck_assert(!slot_takes(t.slot, "inspect", 10)); /* G5: nap could forge its result */
    slot_flush(t.slot);
    RUN_UNTIL(is_idle());
    ck_assert(slot_takes(t.slot, "inspect", 10));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("slot_ahead");
    TCase *c = tcase_create("ahead");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, slot_world_setup, slot_world_teardown);
    tcase_add_test(c, jobs_that_were_given_at_once_run_in_their_order_and_each_is_told);
    tcase_add_test(c, A2_when_a_runner_dies_only_the_job_that_it_had_begun_is_charged);
    tcase_add_test(c, a_job_that_waits_behind_another_comes_back_and_a_begun_one_does_not);
    tcase_add_test(c, who_is_asked_to_stop_is_the_run_that_was_meant);
    tcase_add_test(c, jobs_of_another_kind_wait_until_a_runner_has_none);
    suite_add_tcase(s, c);
    return suite_run(s);
}
