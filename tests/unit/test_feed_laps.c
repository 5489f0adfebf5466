/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue with more lanes than there is room for is walked in laps. */
#include "base/clock.h"
#include "model/feed.h"
#include "model/feed_full.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define S US_PER_S
#define T0 (1000 * S)
#define LOOK_AHEAD 1000
#define JOBS 3 /* most jobs per tenant */

static struct feed feed;
static struct feed_served served;
static struct feed_range ranges[FEED_RANGES_MAX];
static int64_t now_us;

/* The jobs of queue "q", priority 4: per tenant, how many wait, and how many of these have a hint:
 * the first ones. */
static int waiting[FEED_SHARES];
static int hinted[FEED_SHARES];
static int64_t hints;

static void setup(void)
{
    const struct feed_limits limits = {.look_ahead = LOOK_AHEAD,
                                       .look_behind_us = 2 * S,
                                       .page_rows = 500,
                                       .behind_rows = 50,
                                       .read_every_us = S / 100};
    feed_init(&feed, &limits);
    now_us = T0;
    hints = 0;
    memset(waiting, 0, sizeof waiting);
    memset(hinted, 0, sizeof hinted);
    ck_assert_int_eq(feed_served_add(&served, "q,small", "k", NULL), STATUS_OK);
}

static void teardown(void)
{
    feed_release(&feed);
    feed_served_release(&served);
}

/* Fills the table with lanes of "q", and adds one more. */
static void given_crowd(void)
{
    for (int i = 0; i < FEED_LANES_MAX; i++) {
        ck_assert_int_eq(feed_lane_add(&feed, "q", 4 + i / FEED_SHARES, i % FEED_SHARES, T0, NULL),
                         STATUS_OK);
    }
    ck_assert_int_eq(feed_lane_add(&feed, "small", 4, 0, T0, NULL), STATUS_LIMIT);
}

static void given_laps(void)
{
    char queue[JOB_NAME_MAX + 1];
    given_crowd();
    ck_assert_int_eq(feed_laps_begin(&feed, queue, NULL), STATUS_OK);
    ck_assert_str_eq(queue, "q");
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Simulates the answer of PostgreSQL to a range of a lap, and that of Redis to its rows. */
static void read_lap(const struct feed_range *range, bool is_real)
{
    const struct feed_lane *lane = &feed.lanes[range->lane];
    struct feed_pos last = range->after;
    int shares = 0;
    for (int64_t s = range->after.us + 1; is_real && s < FEED_SHARES && shares < range->rows_max;
         s++) {
        if (waiting[s] == 0) {
            continue;
        }
        int found = min_int(waiting[s], range->each_max);
        shares++;
        last.us = s;
        feed_lap_share(&feed, range, found > 0);
        for (int i = 0; i < found; i++) {
            bool is_new = i >= hinted[s];
            hints += is_new;
            feed_group_added(&feed, lane->group, T0, is_new);
        }
        hinted[s] = found > hinted[s] ? found : hinted[s];
    }
    feed_range_done(&feed, range, shares, last, now_us);
}

static void pass(void)
{
    for (size_t i = 0; i < feed.group_count; i++) {
        bool is_ours = strcmp(feed.groups[i].queue, "q") == 0 && feed.groups[i].priority == 4;
        feed_group_counted(&feed, i, is_ours ? hints : 0, now_us, S);
    }
    size_t count = feed_plan(&feed, now_us, now_us, true, ranges, FEED_RANGES_MAX);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(ranges[i].part, FEED_LAP);
        read_lap(&ranges[i], feed.lanes[ranges[i].lane].priority == 4);
    }
    now_us += 20 * US_PER_MS;
}

/* Simulates workers that take and complete that many jobs: the first ones of every tenant. */
static void work(int64_t jobs)
{
    for (int s = 0; s < FEED_SHARES && jobs > 0; s++) {
        int taken = (int)(jobs < hinted[s] ? jobs : hinted[s]);
        waiting[s] -= taken;
        hinted[s] -= taken;
        hints -= taken;
        jobs -= taken;
    }
}

START_TEST(L1_the_largest_queue_makes_room_for_others)
{
    given_laps();
    ck_assert_uint_eq(feed.order_count, 10);
    ck_assert_uint_eq(feed.lane_count, 10); /* each pass checks all entries */
    ck_assert(feed_queue_has_laps(&feed, "q"));
    ck_assert(!feed_queue_has_laps(&feed, "small"));
    ck_assert_int_eq(feed_lane_add(&feed, "q", 4, 5, T0, NULL), STATUS_CONFLICT);
    ck_assert_int_eq(feed_lane_add(&feed, "small", 4, 0, T0, NULL), STATUS_OK);
}
END_TEST

START_TEST(a_queue_of_few_lanes_is_never_walked_in_laps)
{
    char queue[JOB_NAME_MAX + 1];
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(feed_lane_add(&feed, "q", 4, i, T0, NULL), STATUS_OK);
    }
    ck_assert_int_eq(feed_laps_begin(&feed, queue, NULL), STATUS_NOT_FOUND);
    ck_assert_uint_eq(feed.order_count, 1000);
}
END_TEST

START_TEST(L1_no_lanes_are_looked_for_in_a_queue_that_is_walked_in_laps)
{
    struct feed_gap gaps[FEED_GAPS_MAX];
    given_laps();
    ck_assert_uint_eq(feed_gaps(&feed, &served, gaps, FEED_GAPS_MAX), 1);
    ck_assert_str_eq(gaps[0].queue, "small");
    feed_full_begin(&feed);
    ck_assert_uint_eq(feed_full_plan(&feed, 100, ranges, FEED_RANGES_MAX), 0);
}
END_TEST

START_TEST(L1_each_tenant_is_read_once_in_a_lap_and_all_are_fed)
{
    int64_t left = 0;
    given_laps();
    for (int s = 0; s < FEED_SHARES; s += 5) {
        waiting[s] = 1 + s % JOBS;
        left += waiting[s];
    }
    /* Each pass feeds at least half of what was taken before it, or waits for the next lap. */
    for (int i = 0; i < 2000 && left > 0; i++) {
        pass();
        int64_t before = hints;
        ck_assert_int_le(hints, 2 * LOOK_AHEAD);
        work(hints);
        left -= before;
    }
    ck_assert_int_eq(left, 0);
}
END_TEST

START_TEST(L1_a_tenant_that_comes_late_waits_for_one_lap_whatever_the_others_have)
{
    given_laps();
    for (int s = 1; s < FEED_SHARES; s++) {
        waiting[s] = 1000000;
    }
    for (int i = 0; i < 10; i++) {
        pass();
        work(hints);
    }
    waiting[0] = 1; /* just behind the position of the lap */
    int passes = 0;
    for (pass(); hinted[0] == 0; pass()) {
        work(hints);
        ck_assert_int_lt(++passes, 100);
    }
    ck_assert_int_gt(passes, 1);
}
END_TEST

/* ---- random order of events ---- */

#define TENANTS 12
#define EVENTS 50000

static bool owed[TENANTS]; /* due and without a hint since the lap began */
static int64_t lap_begun_us;

static int share_of(int tenant)
{
    return tenant * tenant * 100;
}

static void forget_what_is_not_owed(void)
{
    for (int t = 0; t < TENANTS; t++) {
        int s = share_of(t);
        owed[t] = owed[t] && waiting[s] > 0 && hinted[s] == 0;
    }
}

/* Makes one pass over the lap of priority 4; its read may fail or be cut off. Returns whether it
 * was the last pass of the lap. */
static bool faulty_pass(int what)
{
    bool is_complete = false;
    for (size_t i = 0; i < feed.group_count; i++) {
        feed_group_counted(&feed, i, feed.groups[i].priority == 4 ? hints : LOOK_AHEAD, now_us, S);
    }
    size_t count = feed_plan(&feed, now_us, now_us, true, ranges, FEED_RANGES_MAX);
    ck_assert_uint_le(count, 1);
    if (count == 0) {
        return false;
    }
    struct feed_lane *lane = &feed.lanes[ranges[0].lane];
    if (lane->lap.begun_us != lap_begun_us) {
        lap_begun_us = lane->lap.begun_us;
        memset(owed, true, sizeof owed);
        forget_what_is_not_owed();
    }
    if (what == 0) {
        feed_range_failed(&feed, &ranges[0]);
    } else if (what == 1 && lane->lap.page > 1) {
        feed_range_too_long(&feed, &ranges[0], now_us);
    } else {
        read_lap(&ranges[0], true);
        is_complete = !lane->has_more;
    }
    forget_what_is_not_owed();
    return is_complete;
}

static void happen(unsigned what, int s)
{
    switch (what) {
    case 0:
    case 1:
        waiting[s]++;
        break;
    case 2:
        work(1);
        break;
    case 3: /* its hints are lost */
        hints -= hinted[s];
        hinted[s] = 0;
        break;
    case 4:
        feed_rewind(&feed, T0);
        break;
    case 5:
        now_us += S;
        break;
    default:
        now_us += US_PER_MS;
    }
}

START_TEST(G8_a_complete_lap_has_missed_no_tenant_whatever_happens)
{
    const struct feed_limits limits = {.look_ahead = 5, .look_behind_us = 2 * S, .page_rows = 4};
    int laps = 0;
    given_laps();
    feed_set_limits(&feed, &limits);
    srandom(1);
    for (int i = 0; i < EVENTS; i++) {
        happen((unsigned)(random() % 9), share_of((int)(random() % TENANTS)));
        forget_what_is_not_owed();
        if (random() % 2 == 0 && faulty_pass((int)(random() % 8))) {
            laps++;
            for (int t = 0; t < TENANTS; t++) {
                ck_assert_msg(!owed[t], "event %d: lap %d has missed tenant %d", i, laps, t);
            }
        }
    }
    ck_assert_int_gt(laps, 500);
}
END_TEST

START_TEST(L1_one_tenant_with_much_is_fed_by_many_rows_a_lap)
{
    given_laps();
    waiting[7] = 1000;
    pass();
    now_us += S;
    ck_assert_int_eq(hints, 1); /* the first lap counts the tenants */
    pass();
    ck_assert_int_ge(hints, 32);
}
END_TEST

START_TEST(a_lap_that_finds_nothing_new_rests_for_four_times_as_long)
{
    given_laps();
    for (int s = 0; s < FEED_SHARES; s++) {
        waiting[s] = 1;
        hinted[s] = 1; /* all of them have been fed */
    }
    int reads = 0;
    for (int i = 0; i < 500; i++) {
        size_t count = 0;
        for (size_t g = 0; g < feed.group_count; g++) {
            feed_group_counted(&feed, g, 0, now_us, S);
        }
        count = feed_plan(&feed, now_us, now_us, true, ranges, FEED_RANGES_MAX);
        for (size_t k = 0; k < count; k++) {
            bool is_real = feed.lanes[ranges[k].lane].priority == 4;
            reads += is_real;
            read_lap(&ranges[k], is_real);
        }
        now_us += 15 * US_PER_MS; /* the duration of the pass */
    }
    ck_assert_int_le(reads, 500 / 3);
    ck_assert_int_ge(reads, 33); /* at least one lap */
}
END_TEST

START_TEST(a_share_that_takes_too_long_is_left_out_of_the_lap)
{
    given_laps();
    for (int i = 0; i < 12; i++) {
        for (size_t g = 0; g < feed.group_count; g++) {
            feed_group_counted(&feed, g, 0, now_us, S);
        }
        size_t count = feed_plan(&feed, now_us, now_us, true, ranges, FEED_RANGES_MAX);
        ck_assert_uint_gt(count, 0);
        if (ranges[0].each_max == 0) {
            ck_assert_int_eq(ranges[0].rows_max, 1);
            ck_assert_int_ge(i, 9); /* 512, 256, … 1 */
            return;
        }
        for (size_t k = 0; k < count; k++) {
            feed_range_too_long(&feed, &ranges[k], now_us);
        }
        now_us += 10 * S;
    }
    ck_abort_msg("it was never left out");
}
END_TEST

START_TEST(laps_end_when_the_lanes_would_fit_with_room_to_spare)
{
    char queue[JOB_NAME_MAX + 1];
    given_laps();
    for (int s = 0; s < FEED_SHARES; s++) {
        waiting[s] = 1;
    }
    ck_assert(!feed_laps_end(&feed, queue)); /* the queue has not been counted */
    for (int i = 0; i < 200; i++) {
        pass();
        work(hints);
    }
    ck_assert(feed_laps_end(&feed, queue));
    ck_assert_str_eq(queue, "q");
    ck_assert_uint_eq(feed.order_count, 0);
    ck_assert_int_eq(feed_lane_add(&feed, "q", 4, 5, T0, NULL), STATUS_OK);
}
END_TEST

START_TEST(X2_a_clock_that_goes_back_holds_up_no_lap)
{
    given_laps();
    waiting[5] = 1;
    pass();
    work(hints);
    now_us -= 400 * S;
    waiting[5] = 1;
    pass();
    ck_assert_int_eq(hints, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("feed laps");
    TCase *c = tcase_create("laps");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, L1_the_largest_queue_makes_room_for_others);
    tcase_add_test(c, a_queue_of_few_lanes_is_never_walked_in_laps);
    tcase_add_test(c, L1_no_lanes_are_looked_for_in_a_queue_that_is_walked_in_laps);
    tcase_add_test(c, L1_each_tenant_is_read_once_in_a_lap_and_all_are_fed);
    tcase_add_test(c, L1_a_tenant_that_comes_late_waits_for_one_lap_whatever_the_others_have);
    tcase_add_test(c, G8_a_complete_lap_has_missed_no_tenant_whatever_happens);
    tcase_add_test(c, L1_one_tenant_with_much_is_fed_by_many_rows_a_lap);
    tcase_add_test(c, a_lap_that_finds_nothing_new_rests_for_four_times_as_long);
    tcase_add_test(c, a_share_that_takes_too_long_is_left_out_of_the_lap);
    tcase_add_test(c, laps_end_when_the_lanes_would_fit_with_room_to_spare);
    tcase_add_test(c, X2_a_clock_that_goes_back_holds_up_no_lap);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
