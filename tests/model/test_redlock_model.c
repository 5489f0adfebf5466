/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "redlock_model.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* The last entry of each table takes long (four minutes, 21 million states): it runs only in the
 * soak. */
static const struct {
    const char *what;
    struct model_options options;
} worlds[] = {
    {"no extensions", {0}},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* ten times as slow */
    {"one round of extending, no flushes", {.extensions = 1, .never_flushes = true}},
#endif
    {"one round of extending", {.extensions = 1}},
};

static int count_of(size_t size)
{
    return (int)size - (getenv("CLAIMD_SOAK") == NULL);
}

START_TEST(N1_N9_no_order_of_events_makes_two_owners_at_once)
{
    struct model_result r;
    model_run(&worlds[_i].options, &r);
    printf("%s: %zu states, %zu steps; won %zu, held by other %zu, split %zu, no quorum %zu, "
           "expired %zu; extended %zu, lost %zu\n",
           worlds[_i].what, r.states, r.transitions, r.verdicts[REDLOCK_OK],
           r.verdicts[REDLOCK_HELD], r.verdicts[REDLOCK_SPLIT], r.verdicts[REDLOCK_NO_QUORUM],
           r.verdicts[REDLOCK_LOST], r.extended, r.lost);
    ck_assert(!r.is_too_big);
    ck_assert_msg(!r.is_violated, "two owners at once:\n%s", r.trace);
    ck_assert_uint_gt(r.verdicts[REDLOCK_OK], 0); /* it is not safe by never winning */
    ck_assert_uint_gt(r.verdicts[REDLOCK_HELD], 0);
    ck_assert_uint_gt(r.verdicts[REDLOCK_LOST], 0);
    ck_assert_uint_gt(r.lost, 0);
    ck_assert(worlds[_i].options.extensions == 0 || r.extended > 0);
}
END_TEST

static const struct {
    const char *what;
    struct model_options options;
} broken[] = {
    {"N1: a restarted node votes at once", {.has_no_quarantine = true}},
    {"N9: the canary is not read", {.has_no_canary = true}},
    {"A4: no margin for clocks", {.has_no_margin = true}},
    {"A4: the deadline counts from the reply", {.counts_from_the_reply = true}},
    {"A7: one vote wins", {.is_won_by_one = true}},
    {"E2: one confirmation extends",
     {.extensions = 1, .never_flushes = true, .is_extended_by_one = true}},
    {"N9: the canary is not read by rounds", {.extensions = 1, .has_no_canary_of_rounds = true}},
};

START_TEST(the_check_finds_two_owners_where_a_rule_is_taken_away)
{
    struct model_result r;
    model_run(&broken[_i].options, &r);
    printf("%s: two owners after %zu states:\n%s", broken[_i].what, r.states, r.trace);
    ck_assert(r.is_violated);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redlock_model");
    TCase *t = tcase_create("redlock_model");
    tcase_set_timeout(t, 3000);
    tcase_add_loop_test(t, N1_N9_no_order_of_events_makes_two_owners_at_once, 0,
                        count_of(ARRAY_COUNT(worlds)));
    tcase_add_loop_test(t, the_check_finds_two_owners_where_a_rule_is_taken_away, 0,
                        count_of(ARRAY_COUNT(broken)));
    suite_add_tcase(s, t);
    return suite_run(s);
}
