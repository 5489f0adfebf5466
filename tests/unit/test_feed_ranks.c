/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks of tenants: what is pushed, and in which order, even if rows are read twice. Redis is
 * simulated by a list of ranks, from which the lowest is served. */
#include "model/feed_full.h"
#include "model/hint.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>

#define MS INT64_C(1000)
#define S (1000 * MS)
#define T0 (1000000 * S) /* "now" of the tests, by both clocks */
#define A 1              /* tenants */
#define B 2
#define HINTS_MAX 4096
#define PASS_US (5 * MS) /* one job is served in each */
#define LATELY 10        /* jobs served in 50 ms */

struct hint_of {
    int64_t rank;
    int64_t id; /* < 0: it has been served */
    int share;
};

static struct feed feed;
static struct feed_range ranges[FEED_RANGES_MAX];
static struct hint_of hints[HINTS_MAX];
static size_t hint_count;
static int64_t row_us; /* between two rows */
static int64_t now_us;

static void setup(void)
{
    struct feed_limits limits = {.look_ahead = 1000,
                                 .look_behind_us = 2 * S,
                                 .page_rows = 200,
                                 .behind_rows = 50,
                                 .read_every_us = S / 100};
    feed_init(&feed, &limits);
    hint_count = 0;
    row_us = MS;
    now_us = T0;
}

static void teardown(void)
{
    feed_release(&feed);
}

static struct feed_lane *lane_of(int share)
{
    return feed_lane_find(&feed, "q", 4, share);
}

static size_t waiting(int share)
{
    size_t count = 0;
    for (size_t i = 0; i < hint_count; i++) {
        count += hints[i].id > 0 && (share < 0 || hints[i].share == share);
    }
    return count;
}

static struct hint_of *first(void)
{
    struct hint_of *first = NULL;
    for (size_t i = 0; i < hint_count; i++) {
        if (hints[i].id > 0 && (first == NULL || hints[i].rank < first->rank)) {
            first = &hints[i];
        }
    }
    return first;
}

/* As the feeder does before each pass; here, for each served job. */
static void count_hints(void)
{
    const struct hint_of *head = first();
    now_us += PASS_US;
    feed.pg_us = now_us;
    if (feed_group_has_tenants(&feed.groups[0])) {
        feed_group_served(&feed, 0, head == NULL ? -1 : head->rank);
    }
    feed_group_counted(&feed, 0, (int64_t)waiting(-1), T0, S);
}

static void given_lane(int share)
{
    ck_assert_int_eq(feed_lane_add(&feed, "q", 4, share, T0, NULL), STATUS_OK);
    count_hints();
}

/* Simulates ZADD LT. */
static void push(int share, int64_t id, int64_t rank)
{
    for (size_t i = 0; i < hint_count; i++) {
        if (hints[i].id == id) {
            hints[i].rank = rank < hints[i].rank ? rank : hints[i].rank;
            return;
        }
    }
    ck_assert_uint_lt(hint_count, HINTS_MAX);
    hints[hint_count++] = (struct hint_of){.rank = rank, .id = id, .share = share};
}

/* Reads rows `from` to `to` of a tenant in one pass. Ids of different tenants differ. */
static void feed_rows(int share, enum feed_part part, int from, int to)
{
    struct feed_lane *lane = lane_of(share);
    struct feed_range range = {.lane = (size_t)(lane - feed.lanes), .part = part};
    range.rows_max = to - from + 2;
    range.rank = lane->rank;
    lane->reading += part != FEED_FULL;
    struct feed_pos at = {0};
    for (int n = from; n <= to; n++) {
        at = (struct feed_pos){.us = T0 - 100 * S + n * row_us, .id = n + 1 + share * 100000};
        push(share, at.id, feed_row_order_us(&feed, &range, at) / MS);
    }
    feed_range_done(&feed, &range, to - from + 1, at, T0);
}

static int serve(void)
{
    struct hint_of *served = first();
    ck_assert_ptr_nonnull(served);
    served->id = -served->id;
    return served->share;
}

/* Returns how many of the next `count` served jobs belong to this tenant. */
static int served_of(int share, int count)
{
    int of = 0;
    for (int i = 0; i < count; i++) {
        of += serve() == share;
        count_hints();
    }
    return of;
}

START_TEST(feat_B28_a_tenant_that_comes_late_goes_ahead_of_what_another_has_waiting)
{
    given_lane(A);
    feed_rows(A, FEED_AHEAD, 0, 999);
    count_hints();
    (void)served_of(A, 100);
    given_lane(B);
    feed_rows(B, FEED_AHEAD, 0, 9);
    int served = served_of(B, 22);
    ck_assert_msg(served >= 10, "%d of 10 came in the next 22", served);
}
END_TEST

START_TEST(tenants_with_work_waiting_are_served_alike_however_much_it_is)
{
    given_lane(A);
    given_lane(B);
    given_lane(0);
    feed_rows(A, FEED_AHEAD, 0, 799);
    feed_rows(B, FEED_AHEAD, 0, 99);
    feed_rows(0, FEED_AHEAD, 0, 399);
    int of_b = served_of(B, 240);
    ck_assert_msg(of_b >= 79 && of_b <= 81, "%d of 240 are a third", of_b);
}
END_TEST

START_TEST(who_comes_late_goes_ahead_of_what_was_popped_lately_and_may_not_have_started)
{
    given_lane(A);
    given_lane(B);
    feed_rows(A, FEED_AHEAD, 0, 899);
    (void)served_of(A, 500);
    const struct hint_of *next = first();
    ck_assert_ptr_nonnull(next);
    int64_t of_next = next->rank;
    feed_rows(B, FEED_AHEAD, 0, 0);
    next = first();
    ck_assert_ptr_nonnull(next);
    int64_t late = of_next - next->rank;
    ck_assert_msg(late >= LATELY && late <= 2 * LATELY, "%lld ranks ahead", (long long)late);
}
END_TEST

START_TEST(who_was_away_saves_no_ranks_up_but_those_popped_lately)
{
    given_lane(A);
    given_lane(B);
    feed_rows(A, FEED_AHEAD, 0, 899);
    (void)served_of(A, 500);
    feed_rows(B, FEED_AHEAD, 0, 399);
    int of_b = served_of(B, 200);
    ck_assert_msg(of_b >= 99 && of_b <= 101 + LATELY, "%d of 200 are half", of_b);
}
END_TEST

/* Its hints exist; a row that arrives only now comes after them. */
START_TEST(a_rewind_neither_charges_again_nor_gives_back)
{
    given_lane(A);
    given_lane(B);
    feed_rows(A, FEED_AHEAD, 0, 399);
    feed_rows(B, FEED_AHEAD, 0, 399);
    int64_t rank = lane_of(A)->rank;
    for (int i = 0; i < 10; i++) {
        feed_lane_rewind(lane_of(A), T0 - 100 * S + 100 * MS);
        feed_rows(A, FEED_AHEAD, 100, 399);
    }
    ck_assert_int_eq(lane_of(A)->rank, rank);
    int of_a = served_of(A, 200);
    ck_assert_msg(of_a >= 99 && of_a <= 101, "%d of 200 are half", of_a);
}
END_TEST

START_TEST(a_full_pass_changes_no_order_and_charges_nobody)
{
    given_lane(A);
    given_lane(B);
    feed_rows(A, FEED_AHEAD, 0, 399);
    feed_rows(B, FEED_AHEAD, 0, 99);
    (void)served_of(A, 100);
    int64_t rank = lane_of(A)->rank;
    for (int i = 0; i < 3; i++) {
        feed_full_begin(&feed);
        feed_rows(A, FEED_FULL, 50, 399);
        feed_rows(B, FEED_FULL, 50, 99);
    }
    ck_assert_int_eq(lane_of(A)->rank, rank);
    int of_a = served_of(A, 100);
    ck_assert_msg(of_a >= 49 && of_a <= 51, "%d of 100 are half", of_a);
}
END_TEST

START_TEST(X1_after_all_hints_were_lost_a_late_tenant_still_goes_ahead)
{
    given_lane(A);
    feed_rows(A, FEED_AHEAD, 0, 899);
    for (int n = 0; n < 900; n++) {
        feed_group_added(&feed, 0, T0 - 100 * S + n * MS, true);
    }
    hint_count = 0;
    feed_group_served(&feed, 0, -1);
    feed_group_counted(&feed, 0, 0, T0 + 10 * S, S); /* rewinds */
    feed_rows(A, FEED_AHEAD, 0, 899);
    count_hints();
    given_lane(B);
    feed_rows(B, FEED_AHEAD, 0, 9);
    int served = served_of(B, 22);
    ck_assert_msg(served >= 10, "%d of 10 came in the next 22", served);
}
END_TEST

START_TEST(a_read_that_failed_is_not_charged)
{
    given_lane(A);
    struct feed_lane *lane = lane_of(A);
    feed_rows(A, FEED_AHEAD, 0, 9);
    int64_t rank = lane->rank;
    struct feed_range range = {.part = FEED_AHEAD, .rank = lane->rank};
    lane->reading++;
    (void)feed_row_order_us(&feed, &range, (struct feed_pos){.us = T0, .id = 99});
    ck_assert_int_eq(lane->rank, rank + 1);
    feed_range_failed(&feed, &range);
    ck_assert_int_eq(lane->rank, rank);
}
END_TEST

START_TEST(the_first_tenant_goes_ahead_of_jobs_of_nobody_that_are_ordered_by_time)
{
    row_us = 10;
    given_lane(0);
    feed_rows(0, FEED_AHEAD, 0, 899);
    ck_assert_int_eq(first()->rank, (T0 - 100 * S) / MS);
    ck_assert_int_eq(feed_lane_add(&feed, "q", 4, B, T0, NULL), STATUS_OK);
    size_t groups[4];
    /* Asks for the tenant's first rank. */
    ck_assert_uint_eq(feed_counts_wanted(&feed, groups, 4), 1);
    count_hints();
    feed_rows(B, FEED_AHEAD, 0, 9);
    ck_assert(lane_of(0)->has_more && lane_of(0)->cursor.us == FEED_BEGIN_US);
    feed_rows(0, FEED_AHEAD, 0, 950);
    int served = served_of(B, 22);
    ck_assert_msg(served == 10, "%d of 10 came in the next 22", served);
}
END_TEST

START_TEST(without_tenants_hints_are_ordered_by_time_and_counted_no_more_than_before)
{
    given_lane(0);
    feed_rows(0, FEED_AHEAD, 0, 9);
    ck_assert_int_eq(hints[9].rank, (T0 - 100 * S) / MS + 9);
    size_t groups[4];
    feed_group_counted(&feed, 0, 10, T0, S);
    ck_assert_uint_eq(feed_counts_wanted(&feed, groups, 4), 0);
    given_lane(A);
    ck_assert_uint_eq(feed_counts_wanted(&feed, groups, 4), 1);
}
END_TEST

START_TEST(a_full_group_lets_the_next_tenant_in_by_one_row)
{
    given_lane(A);
    feed_rows(A, FEED_AHEAD, 0, 999);
    lane_of(A)->has_more = true;
    count_hints();
    ck_assert_uint_eq(feed_plan(&feed, T0, T0, true, ranges, 10), 0);
    given_lane(B);
    ck_assert_uint_eq(feed_plan(&feed, T0, T0, true, ranges, 10), 1);
    ck_assert_int_eq(ranges[0].rows_max, 1);
    ck_assert_int_eq(feed.lanes[ranges[0].lane].share, B);
    struct feed_pos row = {.us = T0 - 100 * S, .id = 1};
    push(B, 1, feed_row_order_us(&feed, &ranges[0], row) / MS);
    feed_range_done(&feed, &ranges[0], 1, row, T0);
    count_hints();
    ck_assert(feed_is_full(&feed) && !feed_has_more(&feed)); /* no reason to hurry */
    ck_assert_uint_eq(feed_plan(&feed, T0, T0, false, ranges, 10), 0);
}
END_TEST

START_TEST(a_thousand_idle_lanes_leave_the_room_and_the_pass_to_the_one_with_more)
{
    for (int share = 1; share <= 1001; share++) {
        ck_assert_int_eq(feed_lane_add(&feed, "q", 4, share, T0, NULL), STATUS_OK);
        lane_of(share)->has_more = share == A;
        lane_of(share)->cursor.us = T0;
    }
    count_hints();
    size_t count = feed_plan(&feed, T0, T0, false, ranges, FEED_RANGES_MAX);
    ck_assert_uint_le(count, 200); /* some of the idle lanes each time */
    int rows = 0;
    for (size_t i = 0; i < count; i++) {
        rows = feed.lanes[ranges[i].lane].share == A ? ranges[i].rows_max : rows;
    }
    ck_assert_int_eq(rows, 200);
    ck_assert_int_lt(feed_gaps_due_us(&feed, T0, S), T0 + S);
}
END_TEST

static int64_t score_at(int64_t waited_us)
{
    struct feed_range range = {.lane = (size_t)(lane_of(0) - feed.lanes), .part = FEED_FULL};
    return feed_row_score(&feed, &range, (struct feed_pos){.us = T0 - waited_us, .id = 1});
}

START_TEST(feat_B4_a_row_goes_up_by_a_priority_for_each_step_that_it_waited)
{
    given_lane(0);
    ck_assert_int_eq(score_at(100 * S), hint_score(4, T0 - 100 * S)); /* off */
    feed.limits.aging_us = 10 * S;
    ck_assert_int_eq(score_at(9 * S), hint_score(4, T0 - 9 * S));
    ck_assert_int_eq(score_at(10 * S), hint_score(3, T0 - 10 * S));
    ck_assert_int_eq(score_at(39 * S), hint_score(1, T0 - 39 * S));
    ck_assert_int_eq(score_at(1000 * S), hint_score(0, T0 - 1000 * S));
    ck_assert_int_eq(score_at(-S), hint_score(4, T0 + S));
}
END_TEST

/* If ranks advance more slowly than the clock, the due time of the row would be behind them all. */
START_TEST(feat_B4_an_aged_row_comes_no_later_than_the_rank_served)
{
    given_lane(0);
    ck_assert_int_eq(feed_lane_add(&feed, "q", 3, A, T0, NULL), STATUS_OK);
    size_t group = feed_lane_find(&feed, "q", 3, A)->group;
    feed_group_served(&feed, group, (T0 - 500 * S) / MS);
    feed.pg_us += S;
    feed_group_served(&feed, group, (T0 - 400 * S) / MS);
    feed.pg_us += S;
    feed_group_served(&feed, group, (T0 - 300 * S) / MS);
    feed.limits.aging_us = 10 * S;
    ck_assert_int_eq(score_at(10 * S), hint_score(3, T0 - 400 * S));
}
END_TEST

START_TEST(a_group_whose_tenants_are_forgotten_is_ordered_by_time_again)
{
    given_lane(0);
    given_lane(A);
    lane_of(A)->seen_us = 0;
    feed_lanes_forget(&feed, 1);
    ck_assert(!feed_group_has_tenants(&feed.groups[0]));
    feed_rows(0, FEED_AHEAD, 0, 0);
    ck_assert_int_eq(hints[0].rank, (T0 - 100 * S) / MS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("feed_ranks");
    TCase *t = tcase_create("feed_ranks");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, feat_B28_a_tenant_that_comes_late_goes_ahead_of_what_another_has_waiting);
    tcase_add_test(t, tenants_with_work_waiting_are_served_alike_however_much_it_is);
    tcase_add_test(t, who_comes_late_goes_ahead_of_what_was_popped_lately_and_may_not_have_started);
    tcase_add_test(t, who_was_away_saves_no_ranks_up_but_those_popped_lately);
    tcase_add_test(t, a_rewind_neither_charges_again_nor_gives_back);
    tcase_add_test(t, a_full_pass_changes_no_order_and_charges_nobody);
    tcase_add_test(t, X1_after_all_hints_were_lost_a_late_tenant_still_goes_ahead);
    tcase_add_test(t, a_read_that_failed_is_not_charged);
    tcase_add_test(t, the_first_tenant_goes_ahead_of_jobs_of_nobody_that_are_ordered_by_time);
    tcase_add_test(t, without_tenants_hints_are_ordered_by_time_and_counted_no_more_than_before);
    tcase_add_test(t, a_full_group_lets_the_next_tenant_in_by_one_row);
    tcase_add_test(t, a_thousand_idle_lanes_leave_the_room_and_the_pass_to_the_one_with_more);
    tcase_add_test(t, feat_B4_a_row_goes_up_by_a_priority_for_each_step_that_it_waited);
    tcase_add_test(t, feat_B4_an_aged_row_comes_no_later_than_the_rank_served);
    tcase_add_test(t, a_group_whose_tenants_are_forgotten_is_ordered_by_time_again);
    suite_add_tcase(s, t);
    return suite_run(s);
}
