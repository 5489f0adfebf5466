/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "scheduler/feeder_state.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>

START_TEST(one_that_is_stopped_during_a_pass_is_off_when_that_has_ended)
{
    static const enum feeder_event reads[] = {ON_GLANCE, ON_WHOLE};
    struct feeder_way way = {.state = FEEDER_OFF};
    feeder_step(&way, ON_START);
    ck_assert(feeder_leads(&way) && !feeder_is_under_way(&way));
    feeder_step(&way, ON_PASS);
    feeder_step(&way, reads[_i]);
    feeder_step(&way, ON_STOP);
    ck_assert(!feeder_leads(&way) && feeder_is_under_way(&way));
    feeder_step(&way, ON_PASS_END);
    ck_assert_int_eq(way.state, FEEDER_OFF);
}
END_TEST

START_TEST(it_leads_on_after_a_pass_and_after_one_that_could_not_begin)
{
    struct feeder_way way = {.state = FEEDER_OFF};
    feeder_step(&way, ON_START);
    feeder_step(&way, ON_PASS_END);
    ck_assert_int_eq(way.state, FEEDER_IDLE);
    feeder_step(&way, ON_PASS);
    feeder_step(&way, ON_PASS_END); /* there was nothing to read */
    ck_assert_int_eq(way.state, FEEDER_IDLE);
}
END_TEST

static const enum feeder_event impossible[][3] = {
    {ON_START, ON_PASS, ON_PASS},     /* two passes at the same time */
    {ON_START, ON_PASS, ON_START},    /* a start during a pass */
    {ON_START, ON_STOP, ON_PASS_END}, /* the end of a pass that was not started */
    {ON_START, ON_GLANCE, ON_STOP},   /* a read without a count */
};

START_TEST(what_can_not_be_is_noticed)
{
    struct feeder_way way = {.state = FEEDER_OFF};
    for (size_t i = 0; i < ARRAY_COUNT(impossible[_i]); i++) {
        feeder_step(&way, impossible[_i][i]);
    }
}
END_TEST

START_TEST(wishes_are_kept_until_they_are_fulfilled_each_by_itself)
{
    struct feeder_way way = {.state = FEEDER_OFF};
    feeder_want(&way, WANT_ROWS);
    feeder_want(&way, WANT_FORGET);
    feeder_has_done(&way, WANT_ROWS);
    ck_assert(!feeder_wants(&way, WANT_ROWS) && feeder_wants(&way, WANT_FORGET));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("feeder_state");
    TCase *c = tcase_create("feeder_state");
    tcase_add_loop_test(c, one_that_is_stopped_during_a_pass_is_off_when_that_has_ended, 0, 2);
    tcase_add_test(c, it_leads_on_after_a_pass_and_after_one_that_could_not_begin);
    tcase_add_loop_test_raise_signal(c, what_can_not_be_is_noticed, SIGABRT, 0,
                                     (int)ARRAY_COUNT(impossible));
    tcase_add_test(c, wishes_are_kept_until_they_are_fulfilled_each_by_itself);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
