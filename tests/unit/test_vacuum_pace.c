/* SPDX-License-Identifier: Apache-2.0
 *
 * When the table of open jobs is vacuumed. */
#include "base/clock.h"
#include "model/vacuum_pace.h"
#include "support/suite.h"

#include <check.h>

#define S US_PER_S
#define MS US_PER_MS

static bool is_due(struct vacuum_pace *p, int64_t dead, int64_t live, int64_t now_us)
{
    const struct vacuum_rows rows = {.dead = dead, .live = live};
    return vacuum_pace_is_due(p, &rows, now_us);
}

/* Records a vacuum that began at `at_us`. */
static void vacuumed(struct vacuum_pace *p, int64_t at_us, int64_t took_us, int64_t left)
{
    const struct vacuum_rows rows = {.dead = left};
    vacuum_pace_ended(p, at_us, at_us + took_us);
    vacuum_pace_left(p, &rows);
}

START_TEST(a_trickle_is_vacuumed_from_250_dead_rows_on)
{
    struct vacuum_pace p = {.fed = 0};
    vacuumed(&p, 100 * S, 5 * MS, 0);
    ck_assert(!is_due(&p, 249, 10, 101 * S));
    ck_assert(is_due(&p, 250, 10, 101 * S));
}
END_TEST

START_TEST(a_large_table_is_vacuumed_when_a_fifth_of_it_is_dead)
{
    struct vacuum_pace p = {.fed = 0};
    vacuumed(&p, 100 * S, S, 0);
    ck_assert(!is_due(&p, 199999, 1000000, 125 * S));
    ck_assert(is_due(&p, 200000, 1000000, 125 * S));
}
END_TEST

START_TEST(it_takes_at_most_a_twentieth_of_the_time)
{
    struct vacuum_pace p = {.fed = 0};
    vacuumed(&p, 100 * S, 100 * MS, 0);
    ck_assert(!is_due(&p, 100000, 0, 102 * S - 1));
    ck_assert(!vacuum_pace_is_worth_a_look(&p, 100000, 102 * S - 1));
    ck_assert(is_due(&p, 100000, 0, 102 * S));
    ck_assert(vacuum_pace_is_worth_a_look(&p, 100000, 102 * S));
}
END_TEST

START_TEST(what_a_transaction_keeps_from_vacuum_counts_as_part_of_the_table)
{
    struct vacuum_pace p = {.fed = 0};
    vacuumed(&p, 100 * S, 5 * MS, 10000);
    ck_assert(!is_due(&p, 11999, 10, 101 * S));
    ck_assert(is_due(&p, 12010, 10, 101 * S));
}
END_TEST

START_TEST(what_was_left_is_tried_again_after_30_s)
{
    struct vacuum_pace p = {.fed = 0};
    vacuumed(&p, 100 * S, 0, 10000);
    ck_assert(!is_due(&p, 10000, 10, 130 * S - 1));
    ck_assert(is_due(&p, 10000, 10, 130 * S));
    ck_assert(!is_due(&p, 249, 10, 130 * S));
}
END_TEST

START_TEST(what_somebody_else_has_vacuumed_is_not_waited_for)
{
    struct vacuum_pace p = {.fed = 0};
    vacuumed(&p, 100 * S, 0, 10000);
    ck_assert(!is_due(&p, 100, 10, 101 * S));
    ck_assert(is_due(&p, 600, 10, 101 * S));
}
END_TEST

START_TEST(an_idle_system_is_not_looked_at)
{
    struct vacuum_pace p = {.fed = 0};
    ck_assert(!vacuum_pace_is_worth_a_look(&p, 249, S));
    ck_assert(vacuum_pace_is_worth_a_look(&p, 250, S));
    vacuum_pace_looked(&p, 250);
    ck_assert(!vacuum_pace_is_worth_a_look(&p, 499, 2 * S));
    ck_assert(vacuum_pace_is_worth_a_look(&p, 500, 2 * S));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vacuum_pace");
    TCase *tests = tcase_create("pace");
    tcase_add_test(tests, a_trickle_is_vacuumed_from_250_dead_rows_on);
    tcase_add_test(tests, a_large_table_is_vacuumed_when_a_fifth_of_it_is_dead);
    tcase_add_test(tests, it_takes_at_most_a_twentieth_of_the_time);
    tcase_add_test(tests, what_a_transaction_keeps_from_vacuum_counts_as_part_of_the_table);
    tcase_add_test(tests, what_was_left_is_tried_again_after_30_s);
    tcase_add_test(tests, what_somebody_else_has_vacuumed_is_not_waited_for);
    tcase_add_test(tests, an_idle_system_is_not_looked_at);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
