/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "feed_model.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPS_LESS 1 /* three times as slow */
#else
#define STEPS_LESS 0
#endif

#define ONE_ROW .rows = 1, .look_ahead = 1, .push_max = 1
#define TWO_ROWS .rows = 2, .look_ahead = 1, .push_max = 1
#define THREE_ROWS .rows = 3, .look_ahead = 1, .push_max = 1

/* Without events that need the safety net: no row is moved without a hint, no hint is lost, no walk
 * is cut off. */
#define UNAIDED .has_no_silence = true, .has_no_loss = true

struct size {
    const char *what;
    struct feed_model_options options;
    size_t steps_long; /* CLAIMD_SOAK */
};

static const struct size sizes[] = {
    {"one row at one moment", {.rules = {ONE_ROW}, .has_no_time = true}, 0},
    {"one row", {.rules = {ONE_ROW}, .steps_max = 10}, 14},
    {"one row, and the clock steps", {.rules = {ONE_ROW}, .clock_steps = 1, .steps_max = 9}, 12},
    {"two rows", {.rules = {TWO_ROWS}, .clock_steps = 1, .steps_max = 7}, 9},
    {"two lanes", {.rules = {TWO_ROWS, .share_of = {0, 1}}, .steps_max = 7}, 9},
    {"three rows in two lanes", {.rules = {THREE_ROWS, .share_of = {0, 0, 1}}, .steps_max = 6}, 8},
};

/* Without any full pass. */
static const struct size unaided[] = {
    {"one row", {.rules = {ONE_ROW, .has_no_full_pass = true}, UNAIDED, .steps_max = 11}, 16},
    {"two rows", {.rules = {TWO_ROWS, .has_no_full_pass = true}, UNAIDED, .steps_max = 8}, 10},
    {"two lanes",
     {.rules = {TWO_ROWS, .share_of = {0, 1}, .has_no_full_pass = true}, UNAIDED, .steps_max = 7},
     9},
};

static bool is_long(void)
{
    return getenv("CLAIMD_SOAK") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static void run(const struct size *size, struct feed_model_result *ret)
{
    struct feed_model_options options = size->options;
    if (options.steps_max > 0) {
        options.steps_max = is_long() ? size->steps_long : options.steps_max - STEPS_LESS;
    }
    feed_model_run(&options, ret);
    printf("%s: %s%zu events, %zu states, %zu steps, %zu full passes; ran on from %zu, the full "
           "pass found the row in %zu\n",
           size->what, ret->is_complete ? "all there is after " : "", ret->steps, ret->states,
           ret->transitions, ret->full_passes, ret->rests, ret->recovered);
    ck_assert(!ret->is_too_big);
    ck_assert_msg(!ret->is_violated, "%s:\n%s", ret->what, ret->trace);
    ck_assert(ret->is_complete == options.has_no_time);
    ck_assert_uint_gt(ret->rests, 0);
}

START_TEST(G8_rule13_every_due_row_is_fed_in_every_order_of_events)
{
    struct feed_model_result r;
    run(&sizes[_i], &r);
    ck_assert_uint_gt(r.full_passes, 0); /* it is not safe by doing nothing */
    ck_assert(r.recovered > 0 || r.steps < 6);
}
END_TEST

START_TEST(rule14_what_nobody_loses_or_moves_in_silence_is_fed_without_a_full_pass)
{
    struct feed_model_result r;
    run(&unaided[_i], &r);
    ck_assert_uint_eq(r.full_passes, 0);
}
END_TEST

static const struct {
    const char *what;
    struct feed_model_options options;
} broken[] = {
    {"rule 13: no full pass", {.rules = {ONE_ROW, .has_no_full_pass = true}}},
    {"rule 13: full passes begin at a mark that rises past rows that run",
     {.rules = {ONE_ROW, .marks = MARKS_AT_AVAILABLE, .is_mark_saved_later = true},
      .has_no_silence = true}},
    {"rule 13: marks and the leader's clock only rise",
     {.rules = {ONE_ROW, .marks = MARKS_AT_ROWS, .is_clock_only_rising = true},
      .clock_steps = 1,
      .has_no_silence = true}},
    {"rule 13: marks rise while no cluster poll sees who writes",
     {.rules = {ONE_ROW, .marks = MARKS_AT_ROWS, .is_cap_stale = true}, .has_no_silence = true}},
    {"a full pass that can not push is complete",
     {.rules = {ONE_ROW, .is_full_done_by_failing = true}}},
    {"a full pass reads up to the cursor although a read is under way",
     {.rules = {ONE_ROW, .is_full_to_the_cursor = true}}},
    {"no full pass, and nothing follows of who writes",
     {.rules = {ONE_ROW, .has_no_full_pass = true, .is_deaf_to_writers = true}, UNAIDED}},
    {"no full pass, and the cursor moves before its rows are pushed",
     {.rules = {ONE_ROW, .has_no_full_pass = true, .is_moved_before_push = true}, UNAIDED}},
    {"a rewind to a time leaves the rows of that time",
     {.rules = {TWO_ROWS, .is_rewound_by_time_only = true}}},
};

START_TEST(the_check_finds_the_row_that_is_lost_where_a_rule_is_taken_away)
{
    struct feed_model_result r;
    feed_model_run(&broken[_i].options, &r);
    printf("%s: after %zu states: %s:\n%s", broken[_i].what, r.states, r.what, r.trace);
    ck_assert(r.is_violated);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("feed_model");
    TCase *t = tcase_create("feed_model");
    tcase_set_timeout(t, is_long() ? 1800 : 400);
    tcase_add_loop_test(t, G8_rule13_every_due_row_is_fed_in_every_order_of_events, 0,
                        (int)ARRAY_COUNT(sizes));
    tcase_add_loop_test(t, rule14_what_nobody_loses_or_moves_in_silence_is_fed_without_a_full_pass,
                        0, (int)ARRAY_COUNT(unaided));
    if (!is_long()) {
        tcase_add_loop_test(t, the_check_finds_the_row_that_is_lost_where_a_rule_is_taken_away, 0,
                            (int)ARRAY_COUNT(broken));
    }
    suite_add_tcase(s, t);
    return suite_run(s);
}
