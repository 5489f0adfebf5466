/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "redlock/rules/retry.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>

#define DRAWS 20000
#define QUORUM 3

static const struct retry_terms terms = {.base_us = 50 * US_PER_MS, .cap_us = 500 * US_PER_MS};
static const uint64_t nothing_measured[REDLOCK_LATENCY_BUCKETS];

static struct rand seeded(void)
{
    struct rand r;
    rand_seed(&r, 42);
    return r;
}

struct spread {
    int64_t least_us;
    int64_t most_us;
    int64_t mean_us;
};

static struct spread draw(enum redlock_result result, unsigned failures, size_t votes)
{
    struct rand r = seeded();
    struct spread s = {.least_us = INT64_MAX};
    int64_t sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t us = retry_delay_us(&terms, result, failures, QUORUM, votes, &r);
        s.least_us = us < s.least_us ? us : s.least_us;
        s.most_us = us > s.most_us ? us : s.most_us;
        sum += us;
    }
    s.mean_us = sum / DRAWS;
    return s;
}

START_TEST(A14_a_pause_is_drawn_from_zero_to_the_doubled_base_up_to_the_cap)
{
    for (unsigned i = 0; i < 70; i++) {
        int64_t most_us = i < 4 ? terms.base_us << i : terms.cap_us;
        struct spread s = draw(REDLOCK_NO_QUORUM, i, 0);
        ck_assert_int_ge(s.least_us, 0);
        ck_assert_int_lt(s.least_us, most_us / 100);
        ck_assert_int_le(s.most_us, most_us);
        ck_assert_int_gt(s.most_us, most_us - most_us / 100);
        ck_assert_int_gt(s.mean_us, most_us * 48 / 100);
        ck_assert_int_lt(s.mean_us, most_us * 52 / 100);
    }
}
END_TEST

START_TEST(A14_after_a_split_the_contender_with_more_votes_comes_back_sooner)
{
    int64_t most_us[QUORUM];
    for (size_t votes = 0; votes < QUORUM; votes++) {
        most_us[votes] = draw(REDLOCK_SPLIT, 0, votes).most_us;
        int64_t limit_us = terms.base_us * (int64_t)(1 + QUORUM - votes);
        ck_assert_int_le(most_us[votes], limit_us);
        ck_assert_int_gt(most_us[votes], limit_us - limit_us / 100);
    }
    ck_assert_int_gt(most_us[0], most_us[1]);
    ck_assert_int_gt(most_us[1], most_us[2]);
}
END_TEST

START_TEST(A14_two_generators_draw_different_pauses)
{
    struct rand a;
    struct rand b;
    int same = 0;
    rand_seed(&a, 1);
    rand_seed(&b, 2);
    for (int i = 0; i < 1000; i++) {
        same += retry_delay_us(&terms, REDLOCK_SPLIT, 3, QUORUM, 1, &a) ==
                retry_delay_us(&terms, REDLOCK_SPLIT, 3, QUORUM, 1, &b);
    }
    ck_assert_int_lt(same, 5);
}
END_TEST

START_TEST(A14_the_base_is_at_least_four_times_the_p99_that_was_measured)
{
    uint64_t latency[REDLOCK_LATENCY_BUCKETS] = {[3] = 980, [9] = 15, [12] = 5};
    struct retry_terms t = retry_terms_of(US_PER_MS, 500 * US_PER_MS, latency);
    ck_assert_int_eq(t.base_us, 4 * (10 << 9)); /* 5 of 1000 are slower */
    t = retry_terms_of(300 * US_PER_MS, 500 * US_PER_MS, latency);
    ck_assert_int_eq(t.base_us, 300 * US_PER_MS);
    latency[3] = 10; /* too few to judge */
    t = retry_terms_of(2 * US_PER_MS, 500 * US_PER_MS, latency);
    ck_assert_int_eq(t.base_us, 2 * US_PER_MS);
}
END_TEST

START_TEST(A14_terms_that_say_nothing_are_bounded_all_the_same)
{
    struct retry_terms t = retry_terms_of(0, 0, nothing_measured);
    ck_assert_int_ge(t.base_us, US_PER_MS);
    ck_assert_int_ge(t.cap_us, t.base_us);
    t = retry_terms_of(-5, -7, nothing_measured);
    ck_assert_int_ge(t.cap_us, t.base_us);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redlock_retry");
    TCase *t = tcase_create("retry");
    tcase_add_test(t, A14_a_pause_is_drawn_from_zero_to_the_doubled_base_up_to_the_cap);
    tcase_add_test(t, A14_after_a_split_the_contender_with_more_votes_comes_back_sooner);
    tcase_add_test(t, A14_two_generators_draw_different_pauses);
    tcase_add_test(t, A14_the_base_is_at_least_four_times_the_p99_that_was_measured);
    tcase_add_test(t, A14_terms_that_say_nothing_are_bounded_all_the_same);
    suite_add_tcase(s, t);
    return suite_run(s);
}
