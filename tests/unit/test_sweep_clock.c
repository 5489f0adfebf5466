/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases in which PostgreSQL's clock is not trusted to decide what is old. */
#include "base/clock.h"
#include "model/sweep_clock.h"
#include "support/suite.h"

#include <check.h>

#define HOUR (3600 * US_PER_S)
#define DAY (24 * HOUR)
#define NOW (20000 * DAY)

START_TEST(a_clock_that_goes_as_the_leaders_does_holds_nothing)
{
    struct sweep_clock c = {.at_us = NOW};
    for (int i = 1; i <= 100; i++) {
        ck_assert_int_eq(sweep_clock_look(&c, NOW + i * HOUR, HOUR), 0);
        ck_assert_int_eq(c.hold_us, 0);
    }
    ck_assert_int_eq(c.at_us, NOW + 100 * HOUR);
}
END_TEST

START_TEST(more_than_a_day_beyond_the_leaders_clock_holds_for_a_day)
{
    struct sweep_clock c = {.at_us = NOW};
    ck_assert_int_eq(sweep_clock_look(&c, NOW + HOUR + DAY, HOUR), 0);
    ck_assert_int_eq(c.hold_us, 0);
    ck_assert_int_eq(sweep_clock_look(&c, NOW + 3 * HOUR + 2 * DAY + 1, 2 * HOUR), DAY + 1);
    ck_assert_int_eq(c.hold_us, DAY);
}
END_TEST

START_TEST(a_leader_that_was_suspended_as_long_holds_nothing)
{
    struct sweep_clock c = {.at_us = NOW};
    ck_assert_int_eq(sweep_clock_look(&c, NOW + 30 * DAY, 30 * DAY), 0);
    ck_assert_int_eq(c.hold_us, 0);
}
END_TEST

START_TEST(a_new_leader_holds_when_the_last_look_was_more_than_7_days_ago)
{
    struct sweep_clock c = {.at_us = NOW};
    ck_assert_int_eq(sweep_clock_look(&c, NOW + 7 * DAY, SWEEP_NEVER_US), 0);
    ck_assert_int_eq(c.hold_us, 0);
    ck_assert_int_eq(sweep_clock_look(&c, NOW + 14 * DAY + 1, SWEEP_NEVER_US), 7 * DAY + 1);
    ck_assert_int_eq(c.hold_us, DAY);
}
END_TEST

START_TEST(a_hold_ends_after_a_day_of_the_leaders_clock_whatever_postgresqls_does)
{
    struct sweep_clock c = {.at_us = NOW, .hold_us = DAY};
    ck_assert_int_eq(sweep_clock_look(&c, NOW + DAY, 23 * HOUR), 0); /* it gained an hour */
    ck_assert_int_eq(c.hold_us, HOUR);
    ck_assert_int_eq(sweep_clock_look(&c, NOW - 400 * DAY, HOUR / 2), 0); /* corrected */
    ck_assert_int_eq(c.hold_us, HOUR / 2);
    ck_assert_int_eq(sweep_clock_look(&c, NOW - 400 * DAY, HOUR), 0);
    ck_assert_int_eq(c.hold_us, 0);
}
END_TEST

START_TEST(a_hold_goes_on_under_the_next_leader)
{
    struct sweep_clock c = {.at_us = NOW, .hold_us = DAY};
    ck_assert_int_eq(sweep_clock_look(&c, NOW + 3 * DAY, SWEEP_NEVER_US), 0);
    ck_assert_int_eq(c.hold_us, DAY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep clock");
    TCase *c = tcase_create("sweep clock");
    tcase_add_test(c, a_clock_that_goes_as_the_leaders_does_holds_nothing);
    tcase_add_test(c, more_than_a_day_beyond_the_leaders_clock_holds_for_a_day);
    tcase_add_test(c, a_leader_that_was_suspended_as_long_holds_nothing);
    tcase_add_test(c, a_new_leader_holds_when_the_last_look_was_more_than_7_days_ago);
    tcase_add_test(c, a_hold_ends_after_a_day_of_the_leaders_clock_whatever_postgresqls_does);
    tcase_add_test(c, a_hold_goes_on_under_the_next_leader);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
