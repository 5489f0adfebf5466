/* SPDX-License-Identifier: Apache-2.0
 *
 * Tenants take turns, with real daemons: a small tenant does not wait behind a flood. Full passes
 * are rare here: nothing may depend on one. The tests compare the order of the claims. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define NO_FULL_PASS "\"scheduler\": {\"full_pass_ms\": 3600000}"
#define FLOOD 2000
#define FEW 10

static struct fleet fleet;

static void enqueue_of(int ms, const char *tenant, const char *more, int count)
{
    sql_run(fleet.sql,
            "SELECT count(*) FROM claimd.enqueue_many((SELECT jsonb_agg(jsonb_build_object('kind',"
            " 'sleep', 'args', '{\"ms\": %d}'::jsonb, 'share_key', %s %s)) FROM"
            " generate_series(1, %d) n))",
            ms, tenant, more, count);
}

static void enqueue(const char *tenant, const char *more, int count)
{
    enqueue_of(10, tenant, more, count);
}

static int64_t ended(const char *where)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE %s", where);
}

/* Counts runs of others that began between the enqueueing of the last jobs of `tenant` and the
 * claim of the last of them. */
static int64_t runs_before(const char *tenant)
{
    return sql_number(
        fleet.sql,
        "SELECT count(*) FROM claimd.job_history o, (SELECT min(created_at) AS came,"
        " max(attempted_at) AS last FROM claimd.job_history WHERE share_key = '%s') AS t"
        " WHERE o.share_key IS DISTINCT FROM '%s' AND o.attempted_at BETWEEN came AND"
        " last",
        tenant, tenant);
}

static void start(int slots, const char *more)
{
    fleet_start(&fleet, &(struct fleet_options){.slots = slots, .more = more});
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
}

static void setup(void)
{
    start(2, NO_FULL_PASS);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

/* Half of a flood: a tenant that waits for its end has all of it ahead. At 200 runs per second,
 * which no machine exceeds, it takes 5 s; a new tenant is found within a second. */
#define SOON_RUNS (FLOOD / 2)

static void few_after_flood(const char *flood)
{
    enqueue(flood, "", FLOOD);
    ck_assert(WAIT_UNTIL(ended("true") > 50, SOON_US));
    enqueue("'few'", "", FEW);
    ck_assert(WAIT_UNTIL(ended("share_key = 'few'") == FEW, SOON_US));
    int64_t before = runs_before("few");
    (void)printf("runs of the flood until the last of %d was claimed: %lld\n", FEW,
                 (long long)before);
    ck_assert_int_le(before, SOON_RUNS);
}

START_TEST(feat_B28_ten_jobs_of_one_tenant_do_not_wait_for_two_thousand_of_another)
{
    few_after_flood("'flood'");
}
END_TEST

START_TEST(feat_B28_a_tenant_does_not_wait_for_a_flood_of_jobs_of_nobody)
{
    few_after_flood("NULL");
}
END_TEST

/* All hints in Redis belong to the flood; look_ahead is small. */
START_TEST(a_tenant_gets_in_while_the_hints_are_full_of_anothers)
{
    enqueue("'flood'", "", FLOOD);
    ck_assert(WAIT_UNTIL(ended("true") > 50, SOON_US));
    for (int i = 0; i < 5; i++) {
        char tenant[16];
        (void)snprintf(tenant, sizeof tenant, "'small%d'", i);
        enqueue(tenant, "", 2);
        ck_assert(WAIT_UNTIL(ended("share_key LIKE 'small%'") == 2 * (i + 1), SOON_US));
    }
    ck_assert_int_le(runs_before("small4"), SOON_RUNS);
    ck_assert_int_gt(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job"), 100);
}
END_TEST

START_TEST(two_floods_are_served_alike)
{
    enqueue("'first'", "", FLOOD);
    ck_assert(WAIT_UNTIL(ended("true") > 50, SOON_US));
    enqueue("'second'", "", 400);
    ck_assert(WAIT_UNTIL(ended("share_key = 'second'") == 400, SOON_US));
    int64_t of_first = sql_number(
        fleet.sql, "SELECT count(*) FROM claimd.job_history o, (SELECT min(attempted_at) AS first,"
                   " max(attempted_at) AS last FROM claimd.job_history WHERE share_key = 'second')"
                   " AS t WHERE o.share_key = 'first' AND o.attempted_at BETWEEN first AND last");
    (void)printf("while 400 of the second ran, of the first: %lld\n", (long long)of_first);
    ck_assert_int_ge(of_first, 300);
    ck_assert_int_le(of_first, 500);
}
END_TEST

/* Each end of a run pushes the next job of its key. */
START_TEST(chains_of_keys_of_one_tenant_do_not_hold_up_another)
{
    enqueue("'flood'", ", 'exclusive_key', 'key' || n % 100", FLOOD);
    ck_assert(WAIT_UNTIL(ended("true") > 50, SOON_US));
    enqueue("'few'", ", 'exclusive_key', 'few'", FEW);
    ck_assert(WAIT_UNTIL(ended("share_key = 'few'") == FEW, SOON_US));
    (void)printf("runs until the last of %d with one key was claimed: %lld\n", FEW,
                 (long long)runs_before("few"));
    ck_assert_int_le(runs_before("few"), SOON_RUNS);
}
END_TEST

START_TEST(turns_outlive_their_leader_and_its_hints)
{
    fleet_start_scheduler(&fleet, 1);
    enqueue("'flood'", "", FLOOD);
    ck_assert(WAIT_UNTIL(ended("true") > 50, SOON_US));
    fleet_signal(fleet.schedulers[0], SIGKILL);
    (void)fleet_wait_end(&fleet, &fleet.schedulers[0]);
    fleet_redis(&fleet, 0, "DEL claimd:hints:default");
    ck_assert(WAIT_UNTIL(fleet_log_count(&fleet, "claimd-scheduler", 1, "event=leader_won") == 1,
                         SOON_US));
    int64_t before = ended("true");
    ck_assert(WAIT_UNTIL(ended("true") > before + 50, SOON_US)); /* the feed is working */
    enqueue("'few'", "", FEW);
    ck_assert(WAIT_UNTIL(ended("share_key = 'few'") == FEW, SOON_US));
    ck_assert_int_le(runs_before("few"), SOON_RUNS);
    fleet_wait_finished(&fleet, FLOOD + FEW, "completed", SOON_US);
}
END_TEST

/* ---- urgent jobs ---- */

#define URGENT_ONES 20
#define PASSED_MIN 3 /* out of those claimed ahead; one may be in the other slot */
#define FLOOD_MS_MAX 16

static void keep_flooded(int ms)
{
    if (sql_number(fleet.sql, "SELECT count(*) FROM claimd.job") < FLOOD) {
        enqueue_of(ms, "NULL", "", FLOOD);
    }
}

/* Counts the jobs that were claimed before it and did not end before it. */
static int64_t passed_by(int64_t id)
{
    return sql_number(
        fleet.sql,
        "SELECT count(*) FROM claimd.job_history u, (SELECT attempted_at, finalized_at"
        " FROM claimd.job_history UNION ALL SELECT attempted_at, 'infinity' FROM"
        " claimd.job WHERE state = 'running') o WHERE u.id = %lld AND"
        " o.attempted_at < u.attempted_at AND o.finalized_at > u.finalized_at",
        (long long)id);
}

/* Counts how many urgent jobs pass others, beside a flood of jobs that take `ms`. */
static int count_passes(int ms)
{
    int passes = 0;
    sql_run(fleet.sql, "DELETE FROM claimd.job WHERE state = 'available'");
    for (int i = 0; i < URGENT_ONES; i++) {
        keep_flooded(ms);
        int64_t id = sql_number(fleet.sql, "SELECT claimd.enqueue('noop', priority => 0)");
        ck_assert(WAIT_UNTIL(sql_number(fleet.sql,
                                        "SELECT count(*) FROM claimd.job_history WHERE id = %lld",
                                        (long long)id) == 1,
                             SOON_US));
        int64_t passed = passed_by(id);
        (void)printf("%lld ", (long long)passed);
        passes += passed >= PASSED_MIN;
    }
    (void)printf("jobs of %d ms were claimed before it and ended after it\n", ms);
    ck_assert_int_gt(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job"), 0);
    return passes;
}

/* In a plain queue, an urgent job would pass none of them, however long they take. If the jobs are
 * too long, none are claimed ahead; if they are too short, they have ended before it is claimed.
 * Which lengths these are depends on the machine. */
START_TEST(feat_B4_an_urgent_job_passes_those_that_were_claimed_ahead)
{
    int passes = 0;
    for (int ms = 1; passes == 0 && ms <= FLOOD_MS_MAX; ms *= 2) {
        keep_flooded(ms);
        ck_assert(WAIT_UNTIL(ended("true") > 200, SOON_US));
        passes = count_passes(ms);
    }
    ck_assert_int_ge(passes, 1);
}
END_TEST

/* ---- aging ---- */

#define URGENT 400 /* waiting all the time */

/* Keeps jobs of priority 0 waiting until `urgent` of them have run, or the job of priority 9
 * has. */
static bool runs_beside_urgent_ones(int64_t id, int64_t urgent)
{
    int64_t end_us = clock_boot_us() + SOON_US;
    int64_t ran = 0;
    while (ran < urgent && clock_boot_us() < end_us) {
        int64_t open = sql_number(fleet.sql, "SELECT count(*) FROM claimd.job");
        if (open < URGENT) {
            enqueue("NULL", ", 'priority', 0", URGENT);
        }
        ran = ended("priority = 0");
        if (sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE id = %lld",
                       (long long)id) == 1) {
            return true;
        }
    }
    return false;
}

static int64_t given_last_one(void)
{
    enqueue("NULL", ", 'priority', 0", URGENT);
    ck_assert(WAIT_UNTIL(ended("true") > 10, SOON_US));
    return sql_number(fleet.sql, "SELECT claimd.enqueue('noop', priority => 9)");
}

START_TEST(without_aging_priority_9_waits_while_there_is_priority_0)
{
    ck_assert(!runs_beside_urgent_ones(given_last_one(), 1500));
}
END_TEST

START_TEST(feat_B4_with_aging_priority_9_runs_although_there_is_always_priority_0)
{
    ck_assert(runs_beside_urgent_ones(given_last_one(), INT64_MAX));
}
END_TEST

static void setup_full_passes(void)
{
    start(2, "\"scheduler\": {\"full_pass_ms\": 2000}");
}

static void setup_aging(void)
{
    start(2, "\"scheduler\": {\"full_pass_ms\": 2000, \"priority_aging_ms\": 2000}");
}

static void setup_small(void)
{
    start(2, "\"scheduler\": {\"full_pass_ms\": 3600000, \"look_ahead\": 100}");
}

static Suite *suite(void)
{
    Suite *s = suite_create("fairness");
    TCase *t = tcase_create("fairness");
    tcase_set_timeout(t, 240);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, feat_B28_ten_jobs_of_one_tenant_do_not_wait_for_two_thousand_of_another);
    tcase_add_test(t, feat_B28_a_tenant_does_not_wait_for_a_flood_of_jobs_of_nobody);
    tcase_add_test(t, two_floods_are_served_alike);
    tcase_add_test(t, chains_of_keys_of_one_tenant_do_not_hold_up_another);
    tcase_add_test(t, turns_outlive_their_leader_and_its_hints);
    tcase_add_test(t, feat_B4_an_urgent_job_passes_those_that_were_claimed_ahead);
    suite_add_tcase(s, t);
    TCase *not_aging = tcase_create("not aging");
    tcase_set_timeout(not_aging, 240);
    tcase_add_checked_fixture(not_aging, setup_full_passes, teardown);
    tcase_add_test(not_aging, without_aging_priority_9_waits_while_there_is_priority_0);
    suite_add_tcase(s, not_aging);
    TCase *aging = tcase_create("aging");
    tcase_set_timeout(aging, 240);
    tcase_add_checked_fixture(aging, setup_aging, teardown);
    tcase_add_test(aging, feat_B4_with_aging_priority_9_runs_although_there_is_always_priority_0);
    suite_add_tcase(s, aging);
    TCase *small = tcase_create("small look-ahead");
    tcase_set_timeout(small, 240);
    tcase_add_checked_fixture(small, setup_small, teardown);
    tcase_add_test(small, a_tenant_gets_in_while_the_hints_are_full_of_anothers);
    suite_add_tcase(s, small);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
