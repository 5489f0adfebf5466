/* SPDX-License-Identifier: Apache-2.0
 *
 * How a slot handles a page that a handler wrote over: "what" as in tests/plugins/meddle.c. */
#include "slot_world.h"
#include "support/suite.h"

#include <stdio.h>

static const char *const before_an_end[] = {"{\"what\": 0}", "{\"what\": 1}", "{\"what\": 2}",
                                            "{\"what\": 3}"};

START_TEST(G5_a_runner_that_dies_with_its_page_written_over_leaves_its_job_in_doubt)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("wipe", before_an_end[_i], &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.end, RUN_END_DOUBTED);
    ck_assert_ptr_eq(t.ended_job, &t);
}
END_TEST

START_TEST(G5_a_run_that_hides_its_begin_and_goes_on_is_found_and_killed)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("wipe", "{\"what\": 4}", &t);
    RUN_UNTIL((slot_take_results(t.slot), t.ends == 1));
    ck_assert_int_eq(t.end, RUN_END_DOUBTED);
    ck_assert_ptr_nonnull(strstr(t.death, "overwrote the page"));
}
END_TEST

/* Its own place is intact, but the places of the others are not, and those are taken back before a
 * kill. */
START_TEST(L4_a_run_that_wipes_the_places_behind_it_does_not_escape_its_kill)
{
    int jobs[4];
    open_slot();
    RUN_UNTIL(is_idle());
    int64_t first = give("wipe", "{\"what\": 5}", &jobs[0]);
    for (size_t i = 1; i < ARRAY_COUNT(jobs); i++) {
        (void)give("wipe", "{\"what\": 5}", &jobs[i]);
    }
    slot_flush(t.slot);
    RUN_UNTIL(slot_has_started(t.slot, first));
    RUN_UNTIL((slot_kill_run(t.slot, first), t.ends + t.returned == 4));
    ck_assert_int_eq(t.deaths, 1);
}
END_TEST

START_TEST(A2_jobs_whose_places_are_whole_come_back_when_the_page_is_written_over_before_them)
{
    int jobs[3];
    open_slot();
    RUN_UNTIL(is_idle());
    (void)give("wipe", "{\"what\": 2}", &jobs[0]);
    (void)give("wipe", "{\"what\": 2}", &jobs[1]);
    (void)give("wipe", "{\"what\": 2}", &jobs[2]);
    slot_flush(t.slot);
    RUN_UNTIL(t.deaths == 1);
    ck_assert_int_eq(t.ends, 1);
    ck_assert_int_eq(t.end, RUN_END_DOUBTED);
    ck_assert_ptr_eq(t.ended_job, &jobs[0]);
    ck_assert_int_eq(t.returned, 2);
}
END_TEST

START_TEST(G6_a_file_that_says_hello_in_its_runners_name_is_told_and_can_be_left_out)
{
    static struct slot_without without;
    char forged[1024 + 8];
    (void)snprintf(forged, sizeof forged, "%s_forged", t.plugins);
    t.options.plugin_dir = forged;
    t.options.without = &without;
    open_slot();
    RUN_UNTIL(t.load_deaths == 1);
    ck_assert_str_eq(t.load_file, "ctor_hello.so");
    ck_assert_int_eq(t.hellos, 0);
    (void)snprintf(without.files[without.count++], RUNNER_FILE_SIZE, "%s", t.load_file);
    RUN_UNTIL(is_idle());
}
END_TEST

START_TEST(G5_a_run_that_nudges_without_end_is_killed)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("wipe", "{\"what\": 6}", &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.end, RUN_END_CRASHED);
    ck_assert_ptr_nonnull(strstr(t.death, "nudges without a result"));
}
END_TEST

START_TEST(a_page_can_not_be_made_shorter)
{
    open_slot();
    RUN_UNTIL(is_idle());
    (void)run("wipe", "{\"what\": 7}", &t);
    RUN_UNTIL(t.ends == 1);
    ck_assert_int_eq(t.end, RUN_END_SAID);
    ck_assert_str_eq(t.result, "\"sealed\"");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("slot_page");
    TCase *c = tcase_create("page");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, slot_world_setup, slot_world_teardown);
    tcase_add_loop_test(c, G5_a_runner_that_dies_with_its_page_written_over_leaves_its_job_in_doubt,
                        0, (int)ARRAY_COUNT(before_an_end));
    tcase_add_test(c, G5_a_run_that_hides_its_begin_and_goes_on_is_found_and_killed);
    tcase_add_test(c, L4_a_run_that_wipes_the_places_behind_it_does_not_escape_its_kill);
    tcase_add_test(
        c, A2_jobs_whose_places_are_whole_come_back_when_the_page_is_written_over_before_them);
    tcase_add_test(c, G6_a_file_that_says_hello_in_its_runners_name_is_told_and_can_be_left_out);
    tcase_add_test(c, G5_a_run_that_nudges_without_end_is_killed);
    tcase_add_test(c, a_page_can_not_be_made_shorter);
    suite_add_tcase(s, c);
    return suite_run(s);
}
