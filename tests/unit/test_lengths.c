/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "support/suite.h"
#include "worker/jobs/lengths.h"

#include <check.h>
#include <stdio.h>

#define QUEUES 2
#define T0 (1000 * US_PER_S)
#define MINUTE (60 * US_PER_S)

static struct lengths l;

static struct run_length *claimed(size_t queue, const char *kind, int64_t now_us)
{
    return lengths_claimed(&l, queue, queue == 0 ? "a" : "b", kind, now_us);
}

static void ran(struct run_length *length, int64_t ran_us, int times)
{
    for (int i = 0; i < times; i++) {
        lengths_ran(&l, length, ran_us, T0);
    }
}

/* Asks with a later time. */
static bool may_ahead(size_t queue, int64_t now_us)
{
    l.looked_us = 0;
    return lengths_may_ahead(&l, queue, now_us);
}

START_TEST(a_queue_from_which_nothing_was_claimed_lately_may_be_claimed_ahead)
{
    ck_assert_int_eq(lengths_ahead(&l, QUEUES, T0), LENGTHS_ALL);
    struct run_length *length = claimed(0, "long", T0);
    ran(length, US_PER_S, 10);
    ck_assert(!may_ahead(0, T0 + MINUTE));
    ck_assert(may_ahead(0, T0 + MINUTE + 1));
}
END_TEST

START_TEST(one_long_or_unknown_kind_is_enough_for_its_queue_and_no_other)
{
    ran(claimed(0, "short", T0), 10, 100);
    ran(claimed(1, "short", T0), 10, 100);
    ck_assert_int_eq(lengths_ahead(&l, QUEUES, T0), LENGTHS_ALL);
    struct run_length *length = claimed(0, "new", T0);
    ck_assert(!may_ahead(0, T0));
    ck_assert(may_ahead(1, T0));
    ck_assert_int_eq(lengths_ahead(&l, QUEUES, T0), LENGTHS_SOME);
    ran(length, 10, 7);
    ck_assert(!may_ahead(0, T0));
    ran(length, 10, 1);
    ck_assert(may_ahead(0, T0));
    ran(length, US_PER_S, 10);
    ck_assert(!may_ahead(0, T0));
    (void)claimed(1, "new", T0);
    l.looked_us = 0;
    ck_assert_int_eq(lengths_ahead(&l, QUEUES, T0), LENGTHS_NONE);
}
END_TEST

START_TEST(a_kind_is_short_while_one_run_of_twenty_is_long)
{
    struct run_length *rare = claimed(0, "rare", T0);
    struct run_length *often = claimed(0, "often", T0);
    for (int i = 0; i < 50; i++) {
        ran(rare, 10, 39);
        ran(rare, US_PER_S, 1);
        ran(often, 10, 7);
        ran(often, US_PER_S, 1);
    }
    ck_assert(lengths_is_short(rare, T0));
    ck_assert(!lengths_is_short(often, T0));
    ran(often, 10, 200);
    ck_assert(lengths_is_short(often, T0));
    ck_assert(!lengths_is_short(NULL, T0));
}
END_TEST

static void fetched(int64_t took_us, int times)
{
    for (int i = 0; i < times; i++) {
        lengths_fetched(&l, took_us);
    }
}

START_TEST(what_is_long_is_measured_by_the_time_of_a_fetch)
{
    ck_assert_int_eq(lengths_max_us(&l), 20 * US_PER_MS);
    fetched(US_PER_MS, 10);
    ck_assert_int_eq(lengths_max_us(&l), 20 * US_PER_MS);
    fetched(50 * US_PER_MS, 1000);
    ck_assert_int_gt(lengths_max_us(&l), 145 * US_PER_MS);
    ck_assert_int_le(lengths_max_us(&l), 150 * US_PER_MS);
}
END_TEST

/* The first runs were judged by this time. */
START_TEST(the_first_fetch_says_how_far_away_the_servers_are)
{
    struct run_length *length = claimed(0, "k", T0);
    fetched(50 * US_PER_MS, 1);
    ran(length, 100 * US_PER_MS, 8);
    ck_assert(lengths_is_short(length, T0));
}
END_TEST

START_TEST(a_known_kind_that_was_handed_back_counts_as_long_for_a_minute)
{
    struct run_length *length = claimed(0, "k", T0);
    lengths_handed_back(&l, length, T0); /* not known yet: its runs decide */
    ran(length, 10, 8);
    ck_assert(lengths_is_short(length, T0));
    lengths_handed_back(&l, length, T0);
    ran(length, 10, 1000);
    ck_assert(!lengths_is_short(length, T0 + MINUTE - 1));
    ck_assert(lengths_is_short(length, T0 + MINUTE));
}
END_TEST

START_TEST(kinds_of_two_queues_are_known_apart_and_their_number_is_bounded)
{
    char kind[64];
    ran(claimed(0, "k", T0), 10, 8);
    ck_assert(lengths_is_short(lengths_find(&l, "a", "k"), T0));
    ck_assert_ptr_null(lengths_find(&l, "b", "k"));
    ck_assert_ptr_null(lengths_find(&l, "ak", ""));
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(kind, sizeof kind, "k%d", i);
        struct run_length *length = claimed(1, kind, T0);
        ck_assert(length == NULL || i < 4096);
        ck_assert(length != NULL || !lengths_may_ahead(&l, 1, T0));
    }
}
END_TEST

static void teardown(void)
{
    lengths_release(&l);
    l = (struct lengths){.fetch_us = 0};
}

int main(void)
{
    Suite *s = suite_create("lengths");
    TCase *t = tcase_create("lengths");
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_test(t, a_queue_from_which_nothing_was_claimed_lately_may_be_claimed_ahead);
    tcase_add_test(t, one_long_or_unknown_kind_is_enough_for_its_queue_and_no_other);
    tcase_add_test(t, a_kind_is_short_while_one_run_of_twenty_is_long);
    tcase_add_test(t, what_is_long_is_measured_by_the_time_of_a_fetch);
    tcase_add_test(t, the_first_fetch_says_how_far_away_the_servers_are);
    tcase_add_test(t, a_known_kind_that_was_handed_back_counts_as_long_for_a_minute);
    tcase_add_test(t, kinds_of_two_queues_are_known_apart_and_their_number_is_bounded);
    suite_add_tcase(s, t);
    return suite_run(s);
}
