/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the feed besides lanes: long writers, which workers serve what, its pace, its memory;
 * and the rescuer's rescue_queue. */
#include "base/clock.h"
#include "model/feed_memory.h"
#include "model/feed_pace.h"
#include "model/feed_served.h"
#include "model/feed_writers.h"
#include "scheduler/rescue_queue.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>

#define S US_PER_S
#define GAP (5 * S / 2)

/* ---- writers ---- */

static int64_t list(struct feed_writers *w, const char *text, int64_t at_us)
{
    int64_t rewind_us = -1;
    ck_assert_int_eq(feed_writers_list(w, text, at_us, GAP, &rewind_us, NULL), STATUS_OK);
    return rewind_us;
}

START_TEST(a_long_transaction_that_ended_rewinds_to_before_it_was_seen)
{
    struct feed_writers w = {0};
    ck_assert_int_eq(list(&w, "", 100 * S), INT64_MAX);
    ck_assert_int_eq(list(&w, "10", 101 * S), INT64_MAX);
    ck_assert_int_eq(list(&w, "10,15", 102 * S), INT64_MAX);
    ck_assert_int_eq(list(&w, "10", 103 * S), INT64_MAX);
    ck_assert_int_eq(list(&w, "", 104 * S), 100 * S - S / 2);
    feed_writers_release(&w);
}
END_TEST

START_TEST(a_transaction_that_was_seen_once_is_left_to_the_look_behind)
{
    struct feed_writers w = {0};
    (void)list(&w, "", 100 * S);
    (void)list(&w, "10", 101 * S);
    ck_assert_int_eq(list(&w, "", 102 * S), INT64_MAX);
    feed_writers_release(&w);
}
END_TEST

/* The beginning of the transaction is unknown: it may have written before the saved marks were
 * computed. */
START_TEST(a_new_leader_rewinds_to_the_beginning_for_what_it_found_writing)
{
    struct feed_writers w = {0};
    ck_assert_int_eq(list(&w, "10", 100 * S), INT64_MAX);
    ck_assert_int_eq(list(&w, "", 101 * S), 0);
    feed_writers_release(&w);
}
END_TEST

START_TEST(after_a_gap_all_that_was_written_in_it_may_be_behind)
{
    struct feed_writers w = {0};
    (void)list(&w, "", 100 * S);
    ck_assert_int_eq(list(&w, "", 105 * S), 100 * S - S / 2);
    feed_writers_release(&w);
}
END_TEST

/* Rows that the transaction wrote after the step are older than what the cursors have read. */
START_TEST(a_clock_that_goes_back_rewinds_and_takes_those_who_write_along)
{
    struct feed_writers w = {0};
    (void)list(&w, "", 100 * S);
    (void)list(&w, "7", 101 * S);
    ck_assert_int_eq(list(&w, "7", 41 * S), 41 * S - GAP);
    (void)list(&w, "7", 42 * S);
    ck_assert_int_eq(list(&w, "", 43 * S), 41 * S - GAP);
    feed_writers_release(&w);
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    struct feed_writers w = {0};
    int64_t rewind_us = 7;
    ck_assert_int_eq(feed_writers_list(&w, "1,", S, GAP, &rewind_us, NULL), STATUS_OK);
    rewind_us = 7;
    ck_assert_int_eq(feed_writers_list(&w, "1,x", S, GAP, &rewind_us, NULL), STATUS_INVALID);
    ck_assert_int_eq(rewind_us, 7);
    feed_writers_release(&w);
}
END_TEST

/* ---- served ---- */

static void given_worker(struct feed_served *s, const char *queues, const char *kinds)
{
    ck_assert_int_eq(feed_served_add(s, queues, kinds, NULL), STATUS_OK);
}

START_TEST(rule_2_a_kind_goes_where_those_who_serve_it_listen)
{
    struct feed_served s = {0};
    given_worker(&s, "default", "a,b");
    given_worker(&s, "default,mail", "a");
    ck_assert_int_eq(feed_served_route(&s, "default", "a"), FEED_ROUTE_QUEUE);
    ck_assert_int_eq(feed_served_route(&s, "default", "b"), FEED_ROUTE_KIND);
    ck_assert_int_eq(feed_served_route(&s, "default", "c"), FEED_ROUTE_NONE);
    ck_assert_int_eq(feed_served_route(&s, "mail", "a"), FEED_ROUTE_QUEUE);
    ck_assert_int_eq(feed_served_route(&s, "mail", "b"), FEED_ROUTE_NONE);
    ck_assert_int_eq(feed_served_route(&s, "other", "a"), FEED_ROUTE_NONE);
    feed_served_release(&s);
}
END_TEST

START_TEST(a_paused_queue_is_not_fed)
{
    struct feed_served s = {0};
    given_worker(&s, "default", "a");
    ck_assert_int_eq(feed_served_pause(&s, "default", NULL), STATUS_OK);
    ck_assert_int_eq(feed_served_route(&s, "default", "a"), FEED_ROUTE_NONE);
    feed_served_release(&s);
}
END_TEST

START_TEST(tables_differ_where_a_job_would_go_elsewhere)
{
    struct feed_served one = {0};
    struct feed_served two = {0};
    given_worker(&one, "default,mail", "a");
    given_worker(&two, "default,mail", "a");
    given_worker(&two, "default", "a");
    ck_assert(!feed_served_differs(&one, &two, "default"));
    ck_assert(feed_served_routes(&one) == feed_served_routes(&two));
    given_worker(&two, "default", "b");
    ck_assert(feed_served_routes(&one) != feed_served_routes(&two));
    ck_assert(feed_served_differs(&one, &two, "default"));
    ck_assert(feed_served_differs(&two, &one, "default"));
    ck_assert(!feed_served_differs(&one, &two, "mail"));
    feed_served_release(&one);
    feed_served_release(&two);
}
END_TEST

START_TEST(the_hash_of_all_routes_knows_no_order_and_no_paused_queues)
{
    struct feed_served one = {0};
    struct feed_served two = {0};
    given_worker(&one, "a", "k");
    given_worker(&one, "b,c", "l,m");
    given_worker(&two, "c,b", "m,l");
    given_worker(&two, "a", "k");
    ck_assert(feed_served_routes(&one) == feed_served_routes(&two));
    ck_assert_int_eq(feed_served_pause(&two, "a", NULL), STATUS_OK);
    ck_assert(feed_served_routes(&one) != feed_served_routes(&two));
    ck_assert_str_eq(feed_served_next(&two, ""), "b");
    ck_assert_str_eq(feed_served_next(&two, "b"), "c");
    ck_assert_ptr_null(feed_served_next(&two, "c"));
    feed_served_release(&one);
    feed_served_release(&two);
}
END_TEST

static void count_kind(void *ctx, const char *kind)
{
    ck_assert_str_eq(kind, "b");
    ++*(int *)ctx;
}

START_TEST(kinds_with_a_set_of_their_own_are_listed)
{
    struct feed_served s = {0};
    int count = 0;
    given_worker(&s, "default", "a,b");
    given_worker(&s, "default", "a");
    feed_served_partial(&s, "default", count_kind, &count);
    ck_assert_int_eq(count, 1);
    feed_served_release(&s);
}
END_TEST

/* ---- pace ---- */

static void passed(struct feed_pace *p, int64_t now_us, int rows, bool has_more, bool is_full)
{
    struct feed_pass pass = {.begun_us = now_us,
                             .now_us = now_us,
                             .rows = rows,
                             .has_more = has_more,
                             .is_full = is_full};
    feed_pace_passed(p, &pass, S);
}

START_TEST(rule_5_hunger_looks_again_after_2_10_50_250_ms_and_each_second)
{
    static const int64_t distances[] = {2, 10, 50, 250, 1000, 1000};
    struct feed_pace p = {0};
    for (size_t i = 0; i < ARRAY_COUNT(distances); i++) {
        passed(&p, 100 * S, 0, false, false);
        ck_assert(p.is_hungry);
        ck_assert_int_eq(p.next_us - 100 * S, distances[i] * US_PER_MS);
    }
}
END_TEST

START_TEST(rule_5_hunger_ends_with_a_pass_of_500_rows)
{
    struct feed_pace p = {0};
    passed(&p, S, 0, false, false);
    passed(&p, S, 499, false, false);
    ck_assert(p.is_hungry);
    passed(&p, S, 500, false, false);
    ck_assert(!p.is_hungry);
    passed(&p, S, 10, false, false);
    ck_assert(!p.is_hungry);
    passed(&p, S, 0, false, false);
    ck_assert(p.is_hungry);
}
END_TEST

START_TEST(full_hints_are_no_hunger_and_are_looked_at_less_and_less)
{
    struct feed_pace p = {0};
    int64_t last_us = 0;
    for (int i = 0; i < 10; i++) {
        passed(&p, S, 0, false, true);
        ck_assert(!p.is_hungry);
        ck_assert_int_ge(p.next_us - S, last_us);
        last_us = p.next_us - S;
    }
    ck_assert_int_eq(last_us, 250 * US_PER_MS);
}
END_TEST

/* A worker takes hints in batches: here, every fourth pass finds fewer. */
START_TEST(feat_B28_while_full_hints_are_taken_now_and_then_the_next_pass_is_soon)
{
    struct feed_pace p = {0};
    for (int i = 0; i < 100; i++) {
        struct feed_pass pass = {
            .now_us = S + (int64_t)i * 5 * US_PER_MS, .is_full = true, .progress = i % 4 == 0};
        feed_pace_passed(&p, &pass, S);
        ck_assert_int_eq(p.next_us - pass.now_us, 5 * US_PER_MS);
    }
}
END_TEST

START_TEST(under_a_stream_of_notifications_passes_are_2_ms_apart)
{
    struct feed_pace p = {0};
    ck_assert_int_eq(feed_pace_woken_us(&p, 5 * S), 5 * S);
    passed(&p, 5 * S, 1, false, false);
    ck_assert_int_eq(feed_pace_woken_us(&p, 5 * S + 100), 5 * S + 2000);
    ck_assert_int_eq(feed_pace_woken_us(&p, 6 * S), 6 * S);
}
END_TEST

/* ---- memory ---- */

START_TEST(the_memory_keeps_two_generations)
{
    struct feed_memory m = {0};
    feed_memory_age(&m, S, S);
    for (int64_t id = 1; id <= 5000; id++) {
        feed_memory_add(&m, id, 7);
    }
    ck_assert(feed_memory_has(&m, 4321, 7));
    ck_assert_msg(!feed_memory_has(&m, 4321, 8), "a retry has another time");
    feed_memory_age(&m, 2 * S, S);
    ck_assert(feed_memory_has(&m, 4321, 7));
    feed_memory_age(&m, 3 * S, S);
    ck_assert(!feed_memory_has(&m, 4321, 7));
    feed_memory_release(&m);
}
END_TEST

START_TEST(the_memory_is_bounded)
{
    struct feed_memory m = {0};
    for (int64_t id = 1; id <= (int64_t)(3 * FEED_MEMORY_MAX); id++) {
        feed_memory_add(&m, id, id);
    }
    ck_assert_uint_le(m.young.cap, FEED_MEMORY_MAX);
    ck_assert(feed_memory_has(&m, 3 * (int64_t)FEED_MEMORY_MAX, 3 * (int64_t)FEED_MEMORY_MAX));
    feed_memory_release(&m);
}
END_TEST

/* ---- rescue_queue ---- */

START_TEST(a_worker_is_swept_after_a_walk_that_began_after_its_death)
{
    struct rescue_queue c = {0};
    struct rescue_queue_worker swept[4];
    ck_assert(rescue_queue_add_worker(&c, "w1"));
    ck_assert(!rescue_queue_add_worker(&c, "w1"));
    rescue_queue_walk_begin(&c);
    ck_assert(rescue_queue_add_worker(&c, "w2"));
    rescue_queue_walk_end(&c);
    ck_assert_uint_eq(rescue_queue_take_swept(&c, swept, 4), 1);
    ck_assert_str_eq(swept[0].id, "w1");
    rescue_queue_walk_begin(&c);
    rescue_queue_walk_fail(&c);
    ck_assert_uint_eq(rescue_queue_take_swept(&c, swept, 4), 0);
    rescue_queue_release(&c);
}
END_TEST

START_TEST(a_job_in_doubt_must_be_found_twice)
{
    struct rescue_queue c = {0};
    rescue_queue_walk_begin(&c);
    rescue_queue_add_doubt(&c, &(struct rescue_queue_item){.id = 1, .fence = 10}, 100 * S, 8 * S);
    rescue_queue_walk_end(&c);
    ck_assert_int_eq(rescue_queue_next_us(&c), INT64_MAX);
    rescue_queue_walk_begin(&c);
    rescue_queue_add_doubt(&c, &(struct rescue_queue_item){.id = 1, .fence = 11}, 130 * S,
                           8 * S); /* claimed again in the meantime */
    rescue_queue_add_doubt(&c, &(struct rescue_queue_item){.id = 2, .fence = 12}, 130 * S, 8 * S);
    rescue_queue_walk_end(&c);
    ck_assert_int_eq(rescue_queue_next_us(&c), INT64_MAX);
    rescue_queue_walk_begin(&c);
    rescue_queue_add_doubt(&c, &(struct rescue_queue_item){.id = 2, .fence = 12}, 139 * S, 8 * S);
    rescue_queue_walk_end(&c);
    struct rescue_queue_item item;
    ck_assert_uint_eq(rescue_queue_take(&c, 140 * S, &item, 1), 1);
    ck_assert_int_eq(item.id, 2);
    rescue_queue_release(&c);
}
END_TEST

START_TEST(items_come_when_their_time_has_come)
{
    struct rescue_queue c = {0};
    struct rescue_queue_item got[4];
    rescue_queue_add(&c, &(struct rescue_queue_item){.id = 1, .at_us = 10});
    rescue_queue_add(&c, &(struct rescue_queue_item){.id = 2, .at_us = 5});
    ck_assert_int_eq(rescue_queue_next_us(&c), 5);
    ck_assert_uint_eq(rescue_queue_take(&c, 7, got, 4), 1);
    ck_assert_int_eq(got[0].id, 2);
    ck_assert_uint_eq(rescue_queue_take(&c, 10, got, 4), 1);
    ck_assert_uint_eq(rescue_queue_take(&c, 10, got, 4), 0);
    rescue_queue_release(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("feed parts");
    TCase *c = tcase_create("parts");
    tcase_add_test(c, a_long_transaction_that_ended_rewinds_to_before_it_was_seen);
    tcase_add_test(c, a_transaction_that_was_seen_once_is_left_to_the_look_behind);
    tcase_add_test(c, a_new_leader_rewinds_to_the_beginning_for_what_it_found_writing);
    tcase_add_test(c, after_a_gap_all_that_was_written_in_it_may_be_behind);
    tcase_add_test(c, a_clock_that_goes_back_rewinds_and_takes_those_who_write_along);
    tcase_add_test(c, what_is_no_number_is_refused);
    tcase_add_test(c, rule_2_a_kind_goes_where_those_who_serve_it_listen);
    tcase_add_test(c, a_paused_queue_is_not_fed);
    tcase_add_test(c, tables_differ_where_a_job_would_go_elsewhere);
    tcase_add_test(c, the_hash_of_all_routes_knows_no_order_and_no_paused_queues);
    tcase_add_test(c, kinds_with_a_set_of_their_own_are_listed);
    tcase_add_test(c, rule_5_hunger_looks_again_after_2_10_50_250_ms_and_each_second);
    tcase_add_test(c, rule_5_hunger_ends_with_a_pass_of_500_rows);
    tcase_add_test(c, full_hints_are_no_hunger_and_are_looked_at_less_and_less);
    tcase_add_test(c, feat_B28_while_full_hints_are_taken_now_and_then_the_next_pass_is_soon);
    tcase_add_test(c, under_a_stream_of_notifications_passes_are_2_ms_apart);
    tcase_add_test(c, the_memory_keeps_two_generations);
    tcase_add_test(c, the_memory_is_bounded);
    tcase_add_test(c, a_worker_is_swept_after_a_walk_that_began_after_its_death);
    tcase_add_test(c, a_job_in_doubt_must_be_found_twice);
    tcase_add_test(c, items_come_when_their_time_has_come);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
