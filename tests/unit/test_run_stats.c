/* SPDX-License-Identifier: Apache-2.0 */
#include "support/suite.h"
#include "worker/jobs/run_stats.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define T0 (5 * RUN_STATS_WINDOW_US)

static struct run_stats s;
static struct run_window sum;

static void setup(void)
{
    memset(&s, 0, sizeof s);
}

START_TEST(a_run_is_in_the_bucket_whose_bounds_are_around_it)
{
    static const int64_t lengths[] = {0,  1,  2,       3,         5,          19,           20,
                                      31, 32, 1000000, 123456789, 3600000000, 700000000000, 999999};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        setup();
        run_stats_add(&s, lengths[i], T0);
        size_t bucket = 0;
        while (s.now.buckets[bucket] == 0) {
            bucket++;
            ck_assert_uint_lt(bucket, RUN_STATS_BUCKETS);
        }
        double us = lengths[i] > 0 ? (double)lengths[i] : 1;
        ck_assert_double_le(exp2((double)bucket / 4), us * 1.0001);
        ck_assert_double_gt(exp2((double)(bucket + 1) / 4), us * 0.9999);
    }
}
END_TEST

START_TEST(a_run_of_any_length_has_a_bucket)
{
    run_stats_add(&s, INT64_MAX / 2, T0);
    run_stats_add(&s, -5, T0);
    ck_assert_uint_eq(s.now.buckets[RUN_STATS_BUCKETS - 1], 1);
    ck_assert_uint_eq(s.now.buckets[0], 1);
}
END_TEST

START_TEST(what_is_older_than_two_hours_is_forgotten)
{
    run_stats_add(&s, 10, T0);
    run_stats_add(&s, 10, T0 + RUN_STATS_WINDOW_US);
    run_stats_add(&s, 20, T0 + RUN_STATS_WINDOW_US + 1);
    run_stats_sum(&s, &sum);
    ck_assert_int_eq(sum.runs, 3);
    ck_assert_int_eq(sum.run_us, 40);
    ck_assert_int_eq(sum.since_us, T0);
    run_stats_add(&s, 30, T0 + 2 * RUN_STATS_WINDOW_US + 2);
    run_stats_sum(&s, &sum);
    ck_assert_int_eq(sum.runs, 2);
    ck_assert_int_eq(sum.since_us, T0 + RUN_STATS_WINDOW_US + 1);
    run_stats_add(&s, 40, T0 + 5 * RUN_STATS_WINDOW_US);
    run_stats_sum(&s, &sum);
    ck_assert_int_eq(sum.runs, 1);
    ck_assert_int_eq(sum.run_us, 40);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_stats");
    TCase *tc = tcase_create("windows");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_run_is_in_the_bucket_whose_bounds_are_around_it);
    tcase_add_test(tc, a_run_of_any_length_has_a_bucket);
    tcase_add_test(tc, what_is_older_than_two_hours_is_forgotten);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
