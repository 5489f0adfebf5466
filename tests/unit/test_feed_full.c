/* SPDX-License-Identifier: Apache-2.0
 *
 * The full pass: what it reads, what it leaves to the cursor, and when it runs. */
#include "model/feed_full.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000)
#define T0 (1000 * S) /* "now" of the tests, by both clocks */

static struct feed feed;
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
}

static struct feed_lane *given_lane(const char *queue)
{
    ck_assert_int_eq(feed_lane_add(&feed, queue, 4, 0, T0, NULL), STATUS_OK);
    struct feed_lane *lane = feed_lane_find(&feed, queue, 4, 0);
    feed_group_counted(&feed, lane->group, 0, T0, S);
    return lane;
}

/* Adds a lane whose cursor has read everything. */
static struct feed_lane *given_read_lane(const char *queue)
{
    struct feed_lane *lane = given_lane(queue);
    size_t count = feed_plan(&feed, T0, T0, true, ranges, FEED_RANGES_MAX);
    for (size_t i = 0; i < count; i++) {
        feed_range_done(&feed, &ranges[i], 0, (struct feed_pos){0}, T0);
    }
    ck_assert_int_eq(lane->cursor.us, T0 - 2 * S);
    return lane;
}

static size_t full_pass_rows(int rows)
{
    return feed_full_plan(&feed, rows, ranges, FEED_RANGES_MAX);
}

START_TEST(rule13_a_full_pass_reads_every_lane_from_its_beginning_up_to_its_cursor)
{
    given_read_lane("a");
    given_lane("b"); /* its cursor has read nothing yet */
    feed_full_begin(&feed);
    ck_assert_uint_eq(full_pass_rows(100), 1);
    ck_assert_int_eq(ranges[0].part, FEED_FULL);
    ck_assert_int_eq(ranges[0].after.us, FEED_BEGIN_US);
    ck_assert_int_eq(ranges[0].to.us, T0 - 2 * S);
    ck_assert(feed_range_row(&feed, &ranges[0], (struct feed_pos){5 * S, 1}, true));
    ck_assert(!feed_range_row(&feed, &ranges[0], (struct feed_pos){6 * S, 2}, false));
    feed_range_done(&feed, &ranges[0], 2, (struct feed_pos){6 * S, 2}, T0);
    ck_assert_uint_eq(full_pass_rows(100), 0);
}
END_TEST

START_TEST(a_full_pass_goes_on_where_a_full_page_ended)
{
    given_read_lane("a");
    feed_full_begin(&feed);
    ck_assert_uint_eq(full_pass_rows(100), 1);
    feed_range_done(&feed, &ranges[0], 100, (struct feed_pos){6 * S, 2}, T0);
    ck_assert_uint_eq(full_pass_rows(100), 1);
    ck_assert_int_eq(ranges[0].after.us, 6 * S);
    ck_assert_int_eq(ranges[0].after.id, 2);
    feed_range_done(&feed, &ranges[0], 99, (struct feed_pos){7 * S, 3}, T0);
    ck_assert_uint_eq(full_pass_rows(100), 0);
}
END_TEST

/* The rows of that read may be older than a row that returned behind it, and the read moves the
 * cursor past that row, whenever it ends. */
START_TEST(rule13_a_full_pass_that_begins_during_a_read_reads_up_to_now)
{
    struct feed_range under_way[2];
    struct feed_lane *lane = given_lane("a");
    ck_assert_uint_eq(feed_plan(&feed, T0, T0, true, under_way, 2), 1);
    feed_full_begin(&feed);
    ck_assert_uint_eq(full_pass_rows(100), 1);
    ck_assert_int_eq(ranges[0].after.us, FEED_BEGIN_US);
    ck_assert_int_eq(ranges[0].to.us, FEED_NEVER_US);
    feed_range_done(&feed, &ranges[0], 100, (struct feed_pos){6 * S, 2}, T0);
    feed_range_done(&feed, &under_way[0], 1, (struct feed_pos){8 * S, 3}, 9 * S);
    ck_assert_uint_eq(full_pass_rows(100), 1);
    ck_assert_int_eq(ranges[0].after.us, 6 * S);
    ck_assert_int_eq(ranges[0].to.us, lane->cursor.us);
}
END_TEST

/* Many rows may be scheduled for the same time. */
START_TEST(a_full_pass_without_room_leaves_rows_of_the_cursors_time_to_it)
{
    struct feed_lane *lane = given_lane("a");
    ck_assert_uint_eq(feed_plan(&feed, T0, T0, true, ranges, FEED_RANGES_MAX), 1);
    feed_range_done(&feed, &ranges[0], 500, (struct feed_pos){T0 - S, 500}, T0);
    feed_full_begin(&feed);
    ck_assert_uint_eq(full_pass_rows(100), 1);
    feed_group_counted(&feed, lane->group, 2001, T0, S);
    feed_range_done(&feed, &ranges[0], 100, (struct feed_pos){T0 - S, 100}, T0);
    ck_assert_int_eq(lane->cursor.us, T0 - S);
    ck_assert_int_lt(lane->cursor.id, 101);
}
END_TEST

START_TEST(a_full_pass_reads_many_lanes_in_turn)
{
    char queue[16];
    for (int i = 0; i < 30; i++) {
        (void)snprintf(queue, sizeof queue, "q%d", i);
        given_read_lane(queue);
    }
    feed_full_begin(&feed);
    int lanes = 0;
    for (size_t count = full_pass_rows(160); count > 0; count = full_pass_rows(160)) {
        for (size_t i = 0; i < count; i++, lanes++) {
            ck_assert_int_ge(ranges[i].rows_max, 16);
            feed_range_done(&feed, &ranges[i], 1, (struct feed_pos){S, 1}, T0);
        }
    }
    ck_assert_int_eq(lanes, 30);
}
END_TEST

/* All hints were lost, and many jobs wait: the full pass must not fill Redis with them. */
START_TEST(a_full_pass_without_room_moves_the_cursor_back_instead)
{
    struct feed_lane *a = given_read_lane("a");
    feed_full_begin(&feed);
    ck_assert_uint_eq(full_pass_rows(100), 1);
    feed_group_counted(&feed, a->group, 2001, T0, S);
    feed_range_done(&feed, &ranges[0], 100, (struct feed_pos){6 * S, 2}, T0);
    ck_assert_uint_eq(full_pass_rows(100), 0);
    ck_assert_int_eq(a->cursor.us, 6 * S);
}
END_TEST

START_TEST(a_full_pass_that_is_wanted_comes_soon_and_others_at_their_interval)
{
    struct feed_full_pace p = {.every_us = 30 * S, .ended_us = T0};
    ck_assert_int_eq(feed_full_next_us(&p), T0 + 30 * S);
    feed_full_want(&p, T0 + S);
    ck_assert_int_lt(feed_full_next_us(&p), T0 + S + S / 10);
    feed_full_begun(&p, T0 + 2 * S);
    feed_full_ended(&p, T0 + 3 * S, true);
    ck_assert_int_eq(feed_full_next_us(&p), T0 + 33 * S);
    feed_full_want(&p, T0 + 3 * S);
    ck_assert_int_eq(feed_full_next_us(&p), T0 + 5 * S);
}
END_TEST

START_TEST(full_passes_take_at_most_a_twentieth_of_the_time)
{
    struct feed_full_pace p = {.every_us = 30 * S};
    feed_full_begun(&p, T0);
    feed_full_ended(&p, T0 + 10 * S, true);
    ck_assert_int_eq(feed_full_next_us(&p), T0 + 210 * S);
}
END_TEST

START_TEST(a_full_pass_that_failed_is_repeated_ever_more_slowly)
{
    struct feed_full_pace p = {.every_us = 30 * S};
    int64_t waits[12];
    for (size_t i = 0; i < 12; i++) {
        feed_full_begun(&p, T0);
        feed_full_ended(&p, T0, false);
        waits[i] = feed_full_next_us(&p) - T0;
        ck_assert(i == 0 || waits[i] >= waits[i - 1]);
    }
    ck_assert_int_le(waits[0], S / 5);
    ck_assert_int_eq(waits[11], 5 * S);
    feed_full_begun(&p, T0);
    feed_full_ended(&p, T0 + 60 * S, false);
    ck_assert_int_eq(feed_full_next_us(&p), T0 + 180 * S);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("feed full pass");
    TCase *c = tcase_create("full pass");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, rule13_a_full_pass_reads_every_lane_from_its_beginning_up_to_its_cursor);
    tcase_add_test(c, a_full_pass_goes_on_where_a_full_page_ended);
    tcase_add_test(c, rule13_a_full_pass_that_begins_during_a_read_reads_up_to_now);
    tcase_add_test(c, a_full_pass_without_room_leaves_rows_of_the_cursors_time_to_it);
    tcase_add_test(c, a_full_pass_reads_many_lanes_in_turn);
    tcase_add_test(c, a_full_pass_without_room_moves_the_cursor_back_instead);
    tcase_add_test(c, a_full_pass_that_is_wanted_comes_soon_and_others_at_their_interval);
    tcase_add_test(c, full_passes_take_at_most_a_twentieth_of_the_time);
    tcase_add_test(c, a_full_pass_that_failed_is_repeated_ever_more_slowly);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
