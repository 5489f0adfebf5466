/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of what to read next: lanes, room, rewinding. Row times here are small, since they are only
 * compared. */
#include "model/feed_full.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FULL_PAGE 200 /* rows of a page after which there may be more */
#define S INT64_C(1000000)
#define T0 (1000 * S) /* "now" of the tests, by both clocks */

static struct feed feed;
static struct feed_served served;
static struct feed_range ranges[FEED_RANGES_MAX];

static void setup(void)
{
    struct feed_limits limits = {.look_ahead = 1000,
                                 .look_behind_us = 2 * S,
                                 .page_rows = 200,
                                 .behind_rows = 50,
                                 .read_every_us = S / 100};
    feed_init(&feed, &limits);
}

static void teardown(void)
{
    feed_release(&feed);
    feed_served_release(&served);
}

static struct feed_lane *given_lane(const char *queue, int priority, int share)
{
    ck_assert_int_eq(feed_lane_add(&feed, queue, priority, share, T0, NULL), STATUS_OK);
    struct feed_lane *lane = feed_lane_find(&feed, queue, priority, share);
    feed_group_counted(&feed, lane->group, 0, T0, S);
    return lane;
}

static size_t plan_at(int64_t us)
{
    return feed_plan(&feed, us, us, true, ranges, FEED_RANGES_MAX);
}

static const struct feed_range *range_of(size_t count, const struct feed_lane *lane,
                                         enum feed_part part)
{
    for (size_t i = 0; i < count; i++) {
        if (&feed.lanes[ranges[i].lane] == lane && ranges[i].part == part) {
            return &ranges[i];
        }
    }
    return NULL;
}

static int rows_of(size_t count, const struct feed_lane *lane)
{
    const struct feed_range *range = range_of(count, lane, FEED_AHEAD);
    ck_assert_ptr_nonnull(range);
    return (int)range->rows_max;
}

/* Makes one pass in which every range of `lane` ahead of its cursor returns `rows` rows, the last
 * at `us`; other ranges return none. */
static void pass_at(int64_t now_us, const struct feed_lane *lane, int rows, int64_t us)
{
    size_t count = plan_at(now_us);
    for (size_t i = 0; i < count; i++) {
        bool is_it = &feed.lanes[ranges[i].lane] == lane && ranges[i].part == FEED_AHEAD;
        struct feed_pos last = {.us = is_it && rows > 0 ? us : 0, .id = is_it ? rows : 0};
        feed_range_done(&feed, &ranges[i], is_it ? rows : 0, last, now_us);
    }
}

/* No position is stored: what a former leader saw may have been wrong (INTERFACES rule 13). */
START_TEST(rule13_a_new_lane_is_read_from_its_beginning)
{
    given_lane("q", 4, 0);
    ck_assert_uint_eq(plan_at(T0), 1);
    ck_assert_int_eq(ranges[0].after.us, FEED_BEGIN_US);
    ck_assert_int_eq(ranges[0].after.id, INT64_MIN);
    ck_assert_int_eq(ranges[0].part, FEED_AHEAD);
}
END_TEST

START_TEST(a_lane_is_known_once)
{
    given_lane("q", 4, 0);
    ck_assert_int_eq(feed_lane_add(&feed, "q", 4, 0, T0, NULL), STATUS_CONFLICT);
    ck_assert_int_eq(feed_lane_add(&feed, "Q", 4, 0, T0, NULL), STATUS_INVALID);
}
END_TEST

START_TEST(a_read_that_finds_nothing_is_not_walked_again)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 0, 0);
    ck_assert_int_eq(lane->cursor.us, T0 - 2 * S);
    feed_rewind(&feed, T0 - 5 * S);
    ck_assert_int_eq(lane->cursor.us, T0 - 5 * S);
}
END_TEST

START_TEST(a_walk_that_was_cut_off_leaves_its_part_to_the_full_pass)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    ck_assert_uint_eq(plan_at(T0), 1);
    feed_range_too_long(&feed, &ranges[0], T0);
    ck_assert_int_eq(lane->cursor.us, T0 - 2 * S);
    ck_assert(!lane->has_more && lane->reading == 0);
    feed_full_begin(&feed);
    ck_assert_uint_eq(feed_full_plan(&feed, 100, ranges, FEED_RANGES_MAX), 1);
    ck_assert_int_eq(ranges[0].after.us, FEED_BEGIN_US);
    ck_assert_int_eq(ranges[0].to.us, T0 - 2 * S);
}
END_TEST

START_TEST(nothing_is_read_without_room)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    feed_group_counted(&feed, lane->group, 1000, T0, S);
    ck_assert_uint_eq(plan_at(T0), 0);
    ck_assert(feed_is_full(&feed));
    ck_assert(!feed_has_more(&feed));
    feed_group_counted(&feed, lane->group, 990, T0, S);
    ck_assert_uint_eq(plan_at(T0), 1);
    ck_assert_int_eq(ranges[0].rows_max, 10);
}
END_TEST

START_TEST(nothing_is_read_before_the_hints_were_counted)
{
    given_lane("q", 4, 0);
    feed_forget_counts(&feed);
    size_t groups[4];
    ck_assert_uint_eq(feed_counts_wanted(&feed, groups, 4), 1);
    ck_assert_uint_eq(plan_at(T0), 0);
}
END_TEST

START_TEST(lanes_of_one_priority_share_its_room)
{
    (void)given_lane("q", 4, 1);
    struct feed_lane *b = given_lane("q", 4, 2);
    struct feed_lane *a = feed_lane_find(&feed, "q", 4, 1); /* adding a lane moves the others */
    feed_group_counted(&feed, a->group, 900, T0, S);
    ck_assert_uint_eq(plan_at(T0), 2);
    ck_assert_int_eq(rows_of(2, a), 50);
    ck_assert_int_eq(rows_of(2, b), 50);
}
END_TEST

START_TEST(priorities_have_room_of_their_own)
{
    struct feed_lane *full = given_lane("q", 4, 0);
    size_t group = full->group;
    given_lane("q", 0, 0);
    feed_group_counted(&feed, group, 1000, T0, S);
    ck_assert_uint_eq(plan_at(T0), 1);
    ck_assert_int_eq(feed.lanes[ranges[0].lane].priority, 0);
}
END_TEST

START_TEST(the_cursor_goes_on_where_the_page_ended)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 200, 5 * S);
    ck_assert(feed_has_more(&feed));
    ck_assert_uint_eq(plan_at(T0), 1);
    ck_assert_int_eq(ranges[0].after.us, 5 * S);
    ck_assert_int_eq(ranges[0].after.id, 200);
}
END_TEST

START_TEST(a_page_that_was_not_full_ends_the_lane)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 199, 5 * S);
    ck_assert(!feed_has_more(&feed));
    ck_assert_uint_eq(feed_plan(&feed, T0, T0, false, ranges, 10), 0);
    ck_assert_uint_eq(feed_plan(&feed, T0 + S, T0 + S, false, ranges, 10), 1);
}
END_TEST

START_TEST(a_lane_is_read_when_its_next_row_falls_due)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 1, 5 * S);
    lane->next_due_us = T0 + 5000;
    ck_assert_int_eq(feed_next_due_us(&feed), T0 + 5000);
    ck_assert_uint_eq(feed_plan(&feed, T0 + 4999, T0 + 4999, false, ranges, 10), 0);
    ck_assert_uint_eq(feed_plan(&feed, T0 + 5000, T0 + 5000, false, ranges, 10), 1);
}
END_TEST

START_TEST(young_rows_are_read_again_and_old_ones_are_not)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, T0 - 3 * S);
    ck_assert_ptr_null(range_of(plan_at(T0), lane, FEED_BEHIND));
    teardown();
    setup();
    lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, T0 - S);
    const struct feed_range *behind = range_of(plan_at(T0), lane, FEED_BEHIND);
    ck_assert_ptr_nonnull(behind);
    ck_assert_int_eq(behind->after.us, T0 - 2 * S);
    ck_assert_int_eq(behind->to.us, T0 - S);
}
END_TEST

START_TEST(a_glance_leaves_young_rows_behind_the_cursor_to_the_next_pass)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, T0 - S);
    size_t count = feed_plan_ahead(&feed, T0, T0, ranges, FEED_RANGES_MAX);
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_nonnull(range_of(count, lane, FEED_AHEAD));
    feed_range_done(&feed, &ranges[0], 0, (struct feed_pos){0}, T0);
    const struct feed_range *behind = range_of(plan_at(T0), lane, FEED_BEHIND);
    ck_assert_ptr_nonnull(behind);
    ck_assert_int_eq(behind->after.us, T0 - 2 * S);
}
END_TEST

/* A row may commit until it is 2 s old: rows that were read before that age are read once more
 * after it. */
START_TEST(the_look_behind_ends_when_all_it_read_was_old)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, T0 - S);
    pass_at(T0 + S / 2, lane, 0, 0);
    ck_assert_ptr_nonnull(range_of(plan_at(T0 + S / 2 + 1), lane, FEED_BEHIND));
    for (size_t i = 0; i < 2; i++) {
        feed_range_done(&feed, &ranges[i], 0, (struct feed_pos){0}, T0 + S / 2 + 1);
    }
    pass_at(T0 + 3 * S, lane, 0, 0);
    ck_assert_ptr_null(range_of(plan_at(T0 + 3 * S + 1), lane, FEED_BEHIND));
}
END_TEST

START_TEST(the_look_behind_leaves_out_what_was_fed)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, T0 - S);
    feed_memory_add(&feed.memory, 5, T0 - S - 5);
    const struct feed_range *behind = range_of(plan_at(T0), lane, FEED_BEHIND);
    ck_assert(!feed_range_row(&feed, behind, (struct feed_pos){T0 - S - 5, 5}, true));
    ck_assert(feed_range_row(&feed, behind, (struct feed_pos){T0 - S - 4, 6}, true));
    ck_assert(!feed_range_row(&feed, behind, (struct feed_pos){T0 - S - 3, 7}, false));
}
END_TEST

START_TEST(a_rewind_reads_what_was_fed_too)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, 900 * S);
    feed_memory_add(&feed.memory, 5, 890 * S);
    feed_rewind(&feed, 800 * S);
    ck_assert(feed_has_more(&feed));
    const struct feed_range *ahead = range_of(plan_at(T0), lane, FEED_AHEAD);
    ck_assert_int_eq(ahead->after.us, 800 * S);
    ck_assert(feed_range_row(&feed, ahead, (struct feed_pos){890 * S, 5}, true));
}
END_TEST

START_TEST(a_rewind_never_goes_forward)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, FULL_PAGE, 500 * S);
    feed_rewind(&feed, 600 * S);
    ck_assert_int_eq(lane->cursor.us, 500 * S);
    feed_rewind(&feed, 100 * S);
    ck_assert_int_eq(lane->cursor.us, 100 * S);
}
END_TEST

/* Many rows may be scheduled for the same time; those with lower ids have already been read. */
START_TEST(a_rewind_to_the_time_of_the_cursor_reads_all_rows_of_that_time)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, FULL_PAGE, 500 * S);
    ck_assert_int_eq(lane->cursor.id, FULL_PAGE);
    feed_rewind(&feed, 500 * S);
    ck_assert_int_eq(lane->cursor.us, 500 * S);
    ck_assert_int_eq(lane->cursor.id, INT64_MIN);
}
END_TEST

START_TEST(a_rewind_during_a_pass_is_not_lost)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, T0 - S);
    size_t count = plan_at(T0); /* behind the cursor and ahead of it */
    ck_assert_uint_eq(count, 2);
    feed_rewind(&feed, 300 * S);
    feed_range_done(&feed, &ranges[0], 0, (struct feed_pos){0}, T0);
    feed_range_done(&feed, &ranges[1], 3, (struct feed_pos){T0 - 1, 9}, T0);
    ck_assert_int_eq(lane->cursor.us, 300 * S);
    ck_assert(lane->has_more);
}
END_TEST

START_TEST(a_failed_pass_is_read_again)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    ck_assert_uint_eq(plan_at(T0), 1);
    feed_range_failed(&feed, &ranges[0]);
    ck_assert_int_eq(lane->cursor.us, FEED_BEGIN_US);
    ck_assert(feed_has_more(&feed));
    ck_assert_uint_eq(plan_at(T0), 1);
}
END_TEST

/* The same happens in a failover to a slower clock: inserted rows are older than the cursor. */
START_TEST(a_cursor_ahead_of_a_clock_that_went_back_follows_it)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, T0 - S);
    size_t count = feed_plan(&feed, T0 + S, T0 - 60 * S, false, ranges, FEED_RANGES_MAX);
    const struct feed_range *ahead = range_of(count, lane, FEED_AHEAD);
    ck_assert_ptr_nonnull(ahead);
    ck_assert_int_eq(ahead->after.us, T0 - 62 * S);
}
END_TEST

START_TEST(lanes_that_nobody_serves_are_not_read_until_somebody_does)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    feed_lane_serve(lane, false);
    ck_assert_uint_eq(plan_at(T0), 0);
    ck_assert(!feed_has_more(&feed) && !feed_is_full(&feed));
    size_t groups[1];
    feed_forget_counts(&feed);
    ck_assert_uint_eq(feed_counts_wanted(&feed, groups, 1), 0);
    feed_lane_serve(lane, true);
    feed_group_counted(&feed, lane->group, 0, T0, S);
    ck_assert(feed_has_more(&feed));
    ck_assert_uint_eq(plan_at(T0), 1);
}
END_TEST

/* A leader that spun on a due row without room never polled its descriptors again. */
START_TEST(a_row_that_is_due_and_has_no_room_is_nothing_to_wake_up_for)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    lane->next_due_us = T0 - S;
    ck_assert_int_eq(feed_next_due_us(&feed), T0 - S);
    feed_group_counted(&feed, lane->group, 1000, T0, S);
    ck_assert_int_eq(feed_next_due_us(&feed), FEED_NEVER_US);
}
END_TEST

START_TEST(groups_that_can_not_all_be_counted_take_turns)
{
    given_lane("a", 4, 0);
    given_lane("b", 4, 0);
    given_lane("c", 4, 0);
    feed_forget_counts(&feed);
    size_t seen[3] = {0};
    for (int i = 0; i < 3; i++) {
        size_t group = 0;
        ck_assert_uint_eq(feed_counts_wanted(&feed, &group, 1), 1);
        seen[group]++;
    }
    ck_assert(seen[0] == 1 && seen[1] == 1 && seen[2] == 1);
}
END_TEST

START_TEST(lanes_without_rows_are_forgotten_and_their_places_used_again)
{
    given_lane("a", 4, 0);
    given_lane("b", 4, 1);
    ck_assert_int_eq(feed_lane_add(&feed, "b", 4, 1, T0 + S, NULL), STATUS_CONFLICT);
    feed_lanes_forget(&feed, T0 + 1);
    ck_assert_ptr_null(feed_lane_find(&feed, "a", 4, 0));
    ck_assert_ptr_nonnull(feed_lane_find(&feed, "b", 4, 1));
    ck_assert_uint_eq(feed.order_count, 1);
    given_lane("c", 4, 0);
    ck_assert_uint_eq(feed.lane_count, 2);
    ck_assert_uint_eq(feed.group_count, 2);
    ck_assert_uint_eq(plan_at(T0), 2);
}
END_TEST

START_TEST(more_lanes_than_there_is_room_for_are_refused_and_said)
{
    for (int i = 0; i < FEED_LANES_MAX; i++) {
        ck_assert_int_eq(feed_lane_add(&feed, "q", i / FEED_SHARES, i % FEED_SHARES, T0, NULL),
                         STATUS_OK);
    }
    struct err err = {0};
    ck_assert(!feed.is_crowded);
    ck_assert_int_eq(feed_lane_add(&feed, "work", 4, 0, T0, &err), STATUS_LIMIT);
    ck_assert_str_eq(err.msg, "more than 32768 lanes");
    ck_assert(feed.is_crowded);
}
END_TEST

/* No event announces a FLUSHALL. */
START_TEST(X1_hints_that_ran_dry_although_fed_rewind_their_lanes)
{
    struct feed_lane *lane = given_lane("q", 4, 0);
    pass_at(T0, lane, 10, 900 * S);
    feed_group_added(&feed, lane->group, 870 * S, true);
    feed_group_added(&feed, lane->group, 860 * S, true);
    feed_group_counted(&feed, lane->group, 0, T0 + 3 * S, 2 * S);
    ck_assert_int_eq(lane->cursor.us, 860 * S);
    pass_at(T0 + 3 * S, lane, 10, 900 * S);
    int64_t cursor_us = lane->cursor.us;
    feed_group_counted(&feed, lane->group, 0, T0 + 6 * S, 2 * S);
    ck_assert_msg(lane->cursor.us == cursor_us, "nothing was fed since: no rewind");
}
END_TEST

START_TEST(pages_shrink_when_a_pass_takes_long)
{
    feed_pass_took(&feed, 21000);
    ck_assert_int_eq(feed.page_rows, 100);
    feed_pass_took(&feed, 21000);
    feed_pass_took(&feed, 21000);
    ck_assert_int_eq(feed.page_rows, 64);
    for (int i = 0; i < 10; i++) {
        feed_pass_took(&feed, 1000);
    }
    ck_assert_int_eq(feed.page_rows, 200);
}
END_TEST

/* ---- gaps ---- */

static struct feed_gap gaps[FEED_GAPS_MAX];

static bool has_gap(size_t count, enum feed_gap_form form, const char *queue, int lo, int hi)
{
    for (size_t i = 0; i < count; i++) {
        if (gaps[i].form == form && strcmp(gaps[i].queue, queue) == 0 && gaps[i].lo == lo &&
            gaps[i].hi == hi) {
            return true;
        }
    }
    return false;
}

static void given_served(const char *queues)
{
    feed_served_release(&served);
    ck_assert_int_eq(feed_served_add(&served, queues, "k", NULL), STATUS_OK);
}

static size_t gaps_now(size_t max)
{
    return feed_gaps(&feed, &served, gaps, max);
}

START_TEST(a_served_queue_without_lanes_is_one_gap)
{
    given_served("q");
    ck_assert_uint_eq(gaps_now(FEED_GAPS_MAX), 1);
    ck_assert(has_gap(1, FEED_GAP_PRIORITIES, "q", -1, 10));
}
END_TEST

START_TEST(gaps_lie_around_every_lane)
{
    given_served("q");
    given_lane("q", 4, 0);
    size_t count = gaps_now(FEED_GAPS_MAX);
    ck_assert_uint_eq(count, 3);
    ck_assert(has_gap(count, FEED_GAP_PRIORITIES, "q", -1, 4));
    ck_assert(has_gap(count, FEED_GAP_PRIORITIES, "q", 4, 10));
    ck_assert(has_gap(count, FEED_GAP_SHARES, "q", 0, FEED_SHARES));
}
END_TEST

START_TEST(gaps_between_lanes_name_their_neighbours)
{
    given_served("a,q");
    given_lane("q", 7, 5);
    given_lane("q", 4, 9);
    given_lane("q", 4, 3);
    given_lane("a", 0, 63);
    size_t count = gaps_now(FEED_GAPS_MAX);
    ck_assert(has_gap(count, FEED_GAP_SHARES, "q", 3, 9));
    ck_assert(has_gap(count, FEED_GAP_PRIORITIES, "q", 4, 7));
    ck_assert(has_gap(count, FEED_GAP_SHARES, "q", -1, 5));
    ck_assert(has_gap(count, FEED_GAP_SHARES, "q", 9, FEED_SHARES));
    ck_assert(has_gap(count, FEED_GAP_SHARES, "a", 63, FEED_SHARES));
    ck_assert(!has_gap(count, FEED_GAP_SHARES, "a", 63, 64));
}
END_TEST

START_TEST(no_gap_lies_in_a_queue_that_nobody_serves)
{
    given_served("q");
    given_lane("junk", 4, 0);
    ck_assert_uint_eq(gaps_now(FEED_GAPS_MAX), 1);
    ck_assert_int_eq(feed_served_pause(&served, "q", NULL), STATUS_OK);
    ck_assert_uint_eq(gaps_now(FEED_GAPS_MAX), 0);
}
END_TEST

START_TEST(gaps_that_do_not_fit_take_turns)
{
    given_served("q");
    given_lane("q", 4, 0); /* three gaps, and two places for queues with few lanes */
    ck_assert_uint_eq(gaps_now(4), 2);
    ck_assert_uint_eq(gaps_now(4), 1);
    ck_assert_uint_eq(gaps_now(4), 2);
}
END_TEST

START_TEST(gaps_of_a_queue_with_few_lanes_do_not_wait_for_those_of_many)
{
    given_served("many,few");
    for (int i = 0; i < 5000; i++) {
        given_lane("many", 4, 3 * i);
    }
    for (int i = 0; i < 20; i++) {
        size_t count = gaps_now(FEED_GAPS_MAX);
        ck_assert_uint_ge(count, FEED_GAPS_MAX / 2);
        ck_assert(has_gap(count, FEED_GAP_PRIORITIES, "few", -1, 10));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("feed");
    TCase *c = tcase_create("plan");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, rule13_a_new_lane_is_read_from_its_beginning);
    tcase_add_test(c, a_lane_is_known_once);
    tcase_add_test(c, a_read_that_finds_nothing_is_not_walked_again);
    tcase_add_test(c, a_walk_that_was_cut_off_leaves_its_part_to_the_full_pass);
    tcase_add_test(c, nothing_is_read_without_room);
    tcase_add_test(c, nothing_is_read_before_the_hints_were_counted);
    tcase_add_test(c, lanes_of_one_priority_share_its_room);
    tcase_add_test(c, priorities_have_room_of_their_own);
    tcase_add_test(c, the_cursor_goes_on_where_the_page_ended);
    tcase_add_test(c, a_page_that_was_not_full_ends_the_lane);
    tcase_add_test(c, a_lane_is_read_when_its_next_row_falls_due);
    tcase_add_test(c, young_rows_are_read_again_and_old_ones_are_not);
    tcase_add_test(c, a_glance_leaves_young_rows_behind_the_cursor_to_the_next_pass);
    tcase_add_test(c, the_look_behind_ends_when_all_it_read_was_old);
    tcase_add_test(c, the_look_behind_leaves_out_what_was_fed);
    tcase_add_test(c, a_rewind_reads_what_was_fed_too);
    tcase_add_test(c, a_rewind_never_goes_forward);
    tcase_add_test(c, a_rewind_to_the_time_of_the_cursor_reads_all_rows_of_that_time);
    tcase_add_test(c, a_rewind_during_a_pass_is_not_lost);
    tcase_add_test(c, a_failed_pass_is_read_again);
    tcase_add_test(c, a_cursor_ahead_of_a_clock_that_went_back_follows_it);
    tcase_add_test(c, lanes_that_nobody_serves_are_not_read_until_somebody_does);
    tcase_add_test(c, a_row_that_is_due_and_has_no_room_is_nothing_to_wake_up_for);
    tcase_add_test(c, groups_that_can_not_all_be_counted_take_turns);
    tcase_add_test(c, lanes_without_rows_are_forgotten_and_their_places_used_again);
    tcase_add_test(c, more_lanes_than_there_is_room_for_are_refused_and_said);
    tcase_add_test(c, X1_hints_that_ran_dry_although_fed_rewind_their_lanes);
    tcase_add_test(c, pages_shrink_when_a_pass_takes_long);
    tcase_add_test(c, a_served_queue_without_lanes_is_one_gap);
    tcase_add_test(c, no_gap_lies_in_a_queue_that_nobody_serves);
    tcase_add_test(c, gaps_of_a_queue_with_few_lanes_do_not_wait_for_those_of_many);
    tcase_add_test(c, gaps_lie_around_every_lane);
    tcase_add_test(c, gaps_between_lanes_name_their_neighbours);
    tcase_add_test(c, gaps_that_do_not_fit_take_turns);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
