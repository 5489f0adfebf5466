/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler can say, and what can be said to it, through real daemons. Full passes are rare
 * here: nothing that these tests wait for may need one. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define SOON_US (60 * US_PER_S)

static struct fleet fleet;

static void wait_state(int64_t id, const char *state)
{
    char now[64] = "";
    bool is_there =
        WAIT_UNTIL((sql_text(fleet.sql, now, sizeof now,
                             "SELECT state FROM claimd.jobs WHERE id = %lld", (long long)id),
                    strcmp(now, state) == 0),
                   SOON_US);
    ck_assert_msg(is_there, "job %lld is %s, not %s", (long long)id, now, state);
}

#define ASSERT_SQL(expected, ...)                              \
    do {                                                       \
        char text_[512];                                       \
        sql_text(fleet.sql, text_, sizeof text_, __VA_ARGS__); \
        ck_assert_str_eq(text_, (expected));                   \
    } while (0)

static int64_t enqueue_nap(const char *kind, int times)
{
    static int files;
    char args[SERVER_PATH_MAX + 64];
    (void)snprintf(args, sizeof args, "{\"path\": \"%s/nap%d\", \"times\": %d, \"ms\": 0}",
                   fleet.dir, files++, times);
    return fleet_enqueue(&fleet, kind, args, 1);
}

/* ---- snooze and cancel ---- */

START_TEST(feat_B13_a_snoozed_job_comes_back_after_a_second_and_uncharged)
{
    long long id = enqueue_nap("snooze", 3);
    wait_state(id, "completed");
    ASSERT_SQL("1", "SELECT attempt FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("1 snoozed nap 1,1 snoozed nap 2,1 snoozed nap 3",
               "SELECT string_agg(concat_ws(' ', attempt, outcome, error), ',' ORDER BY fence)"
               " FROM claimd.job_attempt WHERE job_id = %lld",
               id);
    ASSERT_SQL("3",
               "SELECT count(*) FROM (SELECT ended_at, lead(started_at, 1, (SELECT attempted_at"
               " FROM claimd.jobs WHERE id = job_id)) OVER (ORDER BY fence) AS next"
               " FROM claimd.job_attempt WHERE job_id = %lld) t WHERE next >= ended_at + '0.9 s'",
               id);
}
END_TEST

START_TEST(rule3_a_started_at_most_once_job_that_snoozes_is_charged)
{
    long long id = enqueue_nap("snooze_once", 1);
    wait_state(id, "completed");
    ASSERT_SQL("2", "SELECT attempt FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("1 failed charged, a job of an at_most_once kind can't snooze: nap 1",
               "SELECT concat_ws(' ', attempt, outcome, error) FROM claimd.job_attempt"
               " WHERE job_id = %lld",
               id);
}
END_TEST

START_TEST(a_handler_that_gives_up_ends_its_job_as_cancelled)
{
    long long id = fleet_enqueue(&fleet, "give_up", "{}", 1);
    wait_state(id, "cancelled");
    ASSERT_SQL("order 7 is void", "SELECT error FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("cancelled order 7 is void nobody waits for it\n",
               "SELECT concat_ws(' ', outcome, error, log_tail) FROM claimd.job_attempt"
               " WHERE job_id = %lld",
               id);
}
END_TEST

static void setup(void)
{
    fleet_start(&fleet, &(struct fleet_options){
                            .slots = 4, .more = "\"scheduler\": {\"full_pass_ms\": 3600000}"});
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
    fleet_start_worker(&fleet, 1, NULL);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

static Suite *suite(void)
{
    Suite *s = suite_create("what a handler says");
    TCase *c = tcase_create("outcomes");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, feat_B13_a_snoozed_job_comes_back_after_a_second_and_uncharged);
    tcase_add_test(c, rule3_a_started_at_most_once_job_that_snoozes_is_charged);
    tcase_add_test(c, a_handler_that_gives_up_ends_its_job_as_cancelled);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
