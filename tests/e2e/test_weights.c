/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of queues, with real daemons. The tests compare the order of the claims. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define BACKLOG 4000

static struct fleet fleet;

/* The claims since the mark, of running and finished jobs. */
#define CLAIMS                                                                           \
    "(SELECT queue, attempted_at FROM claimd.jobs, public.mark WHERE attempted_at > at " \
    "ORDER BY attempted_at LIMIT %d) AS claims"

/* Queues that come first in the list have older jobs. */
static void enqueue_for(const char *queues, int ms, int count)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, queue, args) SELECT 'sleep', q, '{\"ms\": %d}' FROM"
            " unnest('{%s}'::text[]) WITH ORDINALITY AS u(q, n), generate_series(1, %d) ORDER BY n",
            ms, queues, count);
}

static void enqueue(const char *queues)
{
    enqueue_for(queues, 5, BACKLOG);
}

static void weigh(const char *heavy, const char *light)
{
    sql_run(fleet.sql, "SELECT claimd.weigh_queue('heavy', %s), claimd.weigh_queue('light', %s)",
            heavy, light);
}

/* Earlier settings are effective from the mark on: a worker sends its next heartbeat when the last
 * one has been answered. */
static void mark_after_two_heartbeats(void)
{
    static const char next[] = "UPDATE public.mark SET at = beat_at FROM claimd.worker WHERE"
                               " beat_at > at RETURNING 1";
    sql_run(fleet.sql, "UPDATE public.mark SET at = clock_timestamp()");
    for (int seen = 0; seen < 2; seen++) {
        ck_assert(WAIT_UNTIL(
            sql_number(fleet.sql, "WITH m AS (%s) SELECT count(*) FROM m", next) == 1, SOON_US));
    }
}

/* Counts the heavy queue's share of the first `count` claims since the mark. */
static int64_t claims_of_heavy(int count)
{
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM " CLAIMS, count) == count, SOON_US));
    int64_t heavy =
        sql_number(fleet.sql, "SELECT count(*) FROM " CLAIMS " WHERE queue = 'heavy'", count);
    (void)printf("of %d claims, of the heavy queue: %lld\n", count, (long long)heavy);
    return heavy;
}

START_TEST(feat_B5_two_queues_are_served_by_weight_which_may_change)
{
    weigh("9", "1");
    mark_after_two_heartbeats();
    enqueue("light,heavy");
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE queue ="
                                         " 'heavy'") > 20,
                   SOON_US)); /* both queues are being fed */
    sql_run(fleet.sql, "UPDATE public.mark SET at = clock_timestamp()");
    int64_t heavy = claims_of_heavy(1000);
    ck_assert_int_ge(heavy, 850);
    ck_assert_int_le(heavy, 950);
    weigh("1", "3");
    mark_after_two_heartbeats();
    heavy = claims_of_heavy(400);
    ck_assert_int_ge(heavy, 80);
    ck_assert_int_le(heavy, 120);
    weigh("NULL", "NULL");
    mark_after_two_heartbeats();
    ck_assert_int_eq(claims_of_heavy(200), 0);
}
END_TEST

START_TEST(a_queue_without_jobs_leaves_the_runners_to_the_other)
{
    weigh("100", "1");
    mark_after_two_heartbeats();
    enqueue("light");
    ck_assert_int_eq(claims_of_heavy(500), 0);
}
END_TEST

START_TEST(a_queue_that_is_full_or_paused_leaves_the_runners_to_the_other)
{
    weigh("100", "1");
    sql_run(fleet.sql, "SELECT claimd.limit_queue('heavy', 1)");
    mark_after_two_heartbeats();
    enqueue_for("heavy", 60000, 500);
    ck_assert(WAIT_UNTIL(
        sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 1,
        SOON_US));
    enqueue_for("light", 5, 300);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history") == 300,
                         SOON_US));
    sql_run(fleet.sql, "SELECT claimd.pause_queue('heavy')");
    mark_after_two_heartbeats();
    enqueue_for("light", 5, 300);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history") == 600,
                         SOON_US));
}
END_TEST

static void setup(void)
{
    static const char *const env[] = {"CLAIMD_WORKER_QUEUES=heavy,light", NULL};
    fleet_start(&fleet, &(struct fleet_options){.masters = 3});
    sql_run(fleet.sql, "CREATE TABLE public.mark AS SELECT clock_timestamp() AS at");
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker_with(&fleet, 0, env);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

int main(void)
{
    Suite *s = suite_create("weights");
    TCase *c = tcase_create("weights");
    tcase_set_timeout(c, 240);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, feat_B5_two_queues_are_served_by_weight_which_may_change);
    tcase_add_test(c, a_queue_without_jobs_leaves_the_runners_to_the_other);
    tcase_add_test(c, a_queue_that_is_full_or_paused_leaves_the_runners_to_the_other);
    suite_add_tcase(s, c);
    return suite_run_in_one(s);
}
