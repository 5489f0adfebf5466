/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's view of PostgreSQL's clock. */
#include "base/clock.h"
#include "scheduler/report.h"
#include "support/suite.h"

#include <check.h>

#define S US_PER_S
#define UNIX_US (1700000000 * S)

static int64_t read_clock(struct report_clock *c, int64_t ahead_us, int64_t asked_us,
                          int64_t answered_us)
{
    /* The clock was read in the middle. */
    return report_clock_step(c, UNIX_US + ahead_us + (asked_us + answered_us) / 2, asked_us,
                             answered_us);
}

START_TEST(a_clock_that_goes_on_has_no_step)
{
    struct report_clock c = {.is_known = false};
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(read_clock(&c, i * S / 1000, i * 2 * S, i * 2 * S + S / 10), 0);
    }
}
END_TEST

START_TEST(a_jump_is_told_once_with_its_sign)
{
    struct report_clock c = {.is_known = false};
    ck_assert_int_eq(read_clock(&c, 0, 0, S / 100), 0);
    ck_assert_int_le(read_clock(&c, -60 * S, 2 * S, 2 * S + S / 100), -59 * S);
    ck_assert_int_eq(read_clock(&c, -60 * S, 4 * S, 4 * S + S / 100), 0);
    ck_assert_int_ge(read_clock(&c, 0, 6 * S, 6 * S + S / 100), 59 * S);
}
END_TEST

START_TEST(a_slow_answer_is_no_jump)
{
    struct report_clock c = {.is_known = false};
    ck_assert_int_eq(read_clock(&c, 0, 0, S / 100), 0);
    /* Read at the end, after five seconds in flight. */
    ck_assert_int_eq(report_clock_step(&c, UNIX_US + 7 * S, 2 * S, 7 * S), 0);
    ck_assert_int_eq(read_clock(&c, 0, 8 * S, 8 * S + S / 100), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report");
    TCase *tests = tcase_create("clock");
    tcase_add_test(tests, a_clock_that_goes_on_has_no_step);
    tcase_add_test(tests, a_jump_is_told_once_with_its_sign);
    tcase_add_test(tests, a_slow_answer_is_no_jump);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
