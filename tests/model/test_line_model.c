/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "line_model.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATES_MAX ((size_t)4 << 20)
#define STATES_MAX_OF_SOAK ((size_t)32 << 20)
#define HELD .nodes = 3, .clients = 3, .is_held = true
#define FREE .nodes = 3, .clients = 3

struct world_case {
    const char *what;
    struct line_world world;
};

/* L1–L9: one client holds the lock and two want it, in every order; with each kind of fault
 * alone. */
static const struct world_case worlds[] = {
    {"no fault", {HELD}},
    {"L6: a client dies", {HELD, .budget = MAY_DIE}},
    {"L6: sessions are lost on a node", {HELD, .budget = MAY_LOSE_SESSIONS}},
    {"a line is lost on a node", {HELD, .budget = MAY_LOSE_LINE}},
    {"L3: an offer ends", {HELD, .budget = MAY_EXPIRE}},
    {"a waiter gives up, a leave is lost", {HELD, .budget = MAY_GIVE_UP | MAY_LOSE_LEAVE}},
    {"L4: a round is cut short", {HELD, .budget = MAY_CUT}},
    {"L7: messages are lost", {HELD, .budget = MAY_LOSE_MESSAGE}},
    {"L7: a round overtakes messages", {HELD, .hears_late = true}},
    {"L8: a release leaves a gap", {HELD, .budget = MAY_GAP}},
    {"L8: a foreign client", {HELD, .budget = MAY_FOREIGN | MAY_FOREIGN_AGAIN}},
    {"L2: SET NX comes first", {HELD, .tries_first = true}},
};

static void run_world(const struct world_case *c, size_t states_max)
{
    static struct line_result r;
    line_model_run(&c->world, states_max, &r);
    printf("%s: %zu states, %zu steps, %zu on the ways to the end; %zu grants\n", c->what, r.states,
           r.transitions, r.drained, r.confirms);
    ck_assert_msg(r.what == NULL, "%s: %s:\n%s", c->what, r.what, r.trace);
    ck_assert_msg(!r.is_too_big, "%s: too big", c->what);
    ck_assert_uint_gt(r.confirms, 0); /* it is not safe by never granting */
}

START_TEST(L1_L9_no_order_of_events_makes_two_owners_or_passes_or_forgets_a_waiter)
{
    run_world(&worlds[_i], STATES_MAX);
}
END_TEST

static const struct world_case long_worlds[] = {
    {"L5: three come at once", {FREE}},
    {"L6, L7: a client dies, messages are lost", {HELD, .budget = MAY_DIE | MAY_LOSE_MESSAGE}},
    {"a client dies, a line is lost", {HELD, .budget = MAY_DIE | MAY_LOSE_LINE}},
    {"a client dies, a round is cut short", {HELD, .budget = MAY_DIE | MAY_CUT}},
    /* A client that comes with SET NX overtakes the line if it finds the key free: in a gap, at the
     * end of a dead client's lease, after a yield to a client that is not in line. */
    {"L8: SET NX comes first, into a gap",
     {HELD, .tries_first = true, .has_no_order = true, .budget = MAY_GAP}},
    {"L6: SET NX comes first, a client dies",
     {HELD, .tries_first = true, .has_no_order = true, .budget = MAY_DIE}},
    {"three come at once with SET NX", {FREE, .tries_first = true, .has_no_order = true}},
    {"five nodes, two come at once", {.nodes = 5, .clients = 2}},
    {"four clients", {.nodes = 3, .clients = 4, .is_held = true}},
    {"five nodes", {.nodes = 5, .clients = 3, .is_held = true}},
};

START_TEST(L1_L9_the_same_with_more_clients_nodes_and_faults)
{
    run_world(&long_worlds[_i], STATES_MAX_OF_SOAK);
}
END_TEST

enum found { FOUND_TWO_HOLDERS, FOUND_PASSED, FOUND_NEVER };

static const struct {
    const char *what;
    enum found found;
    struct line_world world;
} broken[] = {
    {"L2: a free key goes to whoever asks", FOUND_PASSED, {FREE, .takes_any_free_key = true}},
    {"L3: offers are votes",
     FOUND_TWO_HOLDERS,
     {HELD, .budget = MAY_EXPIRE, .counts_offers = true}},
    {"L3: offers that a round has overtaken count for the next",
     FOUND_NEVER,
     {HELD, .hears_late = true, .confirms_late_offers = true}},
    {"L4: answers of earlier rounds count",
     FOUND_TWO_HOLDERS,
     {HELD, .counts_earlier_rounds = true}},
    {"L5: nobody yields", FOUND_NEVER, {FREE, .yields_to_nobody = true}},
    {"L5: they yield to a quorum alone", FOUND_NEVER, {FREE, .yields_to_quorums_only = true}},
    {"L5: the first one yields too",
     FOUND_NEVER,
     {.nodes = 4, .clients = 2, .first_yields_too = true}},
    {"L5: they yield to the last one", FOUND_PASSED, {FREE, .yields_to_the_last = true}},
    {"L7: nobody refreshes",
     FOUND_NEVER,
     {HELD, .budget = MAY_LOSE_MESSAGE, .never_refreshes = true}},
};

static enum found kind_of(const char *what)
{
    return strstr(what, "holders") != NULL  ? FOUND_TWO_HOLDERS
           : strstr(what, "before") != NULL ? FOUND_PASSED
                                            : FOUND_NEVER;
}

START_TEST(the_check_finds_what_is_wrong_where_a_rule_is_taken_away)
{
    static struct line_result r;
    line_model_run(&broken[_i].world, STATES_MAX, &r);
    ck_assert_msg(r.what != NULL, "%s: nothing found in %zu states", broken[_i].what, r.states);
    printf("%s: %s after %zu states:\n%s", broken[_i].what, r.what, r.states, r.trace);
    ck_assert_int_eq(kind_of(r.what), broken[_i].found);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("line_model");
    TCase *t = tcase_create("line_model");
    tcase_set_timeout(t, 3000);
    tcase_add_loop_test(t, L1_L9_no_order_of_events_makes_two_owners_or_passes_or_forgets_a_waiter,
                        0, (int)ARRAY_COUNT(worlds));
    tcase_add_loop_test(t, the_check_finds_what_is_wrong_where_a_rule_is_taken_away, 0,
                        (int)ARRAY_COUNT(broken));
    if (getenv("CLAIMD_SOAK") != NULL) {
        tcase_add_loop_test(t, L1_L9_the_same_with_more_clients_nodes_and_faults, 0,
                            (int)ARRAY_COUNT(long_worlds));
    }
    suite_add_tcase(s, t);
    return suite_run(s);
}
