/* SPDX-License-Identifier: Apache-2.0
 *
 * On an idle system, the lock and the claim are requested at the same time (docs/decisions/0020):
 * what happens to a job whose claim is won while its lock is not, or not yet. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define MASTERS 3

static struct fleet f;
static int jobs;

static void setup(void)
{
    jobs = 1;
    fleet_start(&f, &(struct fleet_options){.masters = MASTERS});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
    /* After this job, everything is known and connected. */
    (void)fleet_enqueue(&f, "noop", "{}", 1);
    fleet_wait_finished(&f, 1, "completed", SOON_US);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* The job is in the ledger once it runs. */
static int64_t insert(int delay_s)
{
    char path[SERVER_PATH_MAX];
    fleet_ledger_path(&f, path, sizeof path);
    jobs++;
    return sql_number(f.sql,
                      "INSERT INTO claimd.job (kind, args, scheduled_at) VALUES ('ledger',"
                      " jsonb_build_object('path', '%s', 'ms', 0), now() + %d * interval '1 s')"
                      " RETURNING id",
                      path, delay_s);
}

static int64_t claims(void)
{
    return sql_number(f.sql, "SELECT last_value FROM claimd.fence");
}

static bool is_waiting_uncharged(int64_t id)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'available'"
                      " AND attempt = 0 AND crashes = 0",
                      (long long)id) == 1;
}

static void check_each_ran_once(void)
{
    fleet_wait_finished(&f, jobs, "completed", SOON_US);
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), jobs - 1);
    ck_assert_int_eq(sql_number(f.sql, "SELECT max(attempt) FROM claimd.job_history"), 1);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job_attempt"), 0);
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, SOON_US));
}

START_TEST(lock_G1_a_job_that_is_claimed_while_somebody_has_its_lock_is_given_back_uncharged)
{
    char command[128];
    int64_t before = claims();
    int64_t id = insert(1);
    (void)snprintf(command, sizeof command, "SET claimd:job:%lld other PX 600000", (long long)id);
    for (size_t i = 0; i < MASTERS; i++) {
        fleet_redis(&f, i, command);
    }
    ck_assert(WAIT_UNTIL(claims() > before && is_waiting_uncharged(id), SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), 0);
    (void)snprintf(command, sizeof command, "DEL claimd:job:%lld", (long long)id);
    for (size_t i = 0; i < MASTERS; i++) {
        fleet_redis(&f, i, command);
    }
    check_each_ran_once();
}
END_TEST

/* A majority of the masters stops answering; hints are on the first one. */
static void pause_masters(int number)
{
    for (size_t i = 1; i < MASTERS; i++) {
        fleet_signal(f.masters[i].pid, number);
    }
}

static int quorums_lost(void)
{
    return fleet_log_count(&f, "claimd-worker", 0, "event=quorum_lost");
}

/* Returns a job that was claimed while a majority did not answer, before the worker noticed
 * that. */
static int64_t insert_while_paused(void)
{
    for (;;) {
        int64_t before = claims();
        int lost = quorums_lost();
        pause_masters(SIGSTOP);
        int64_t id = insert(0);
        ck_assert(WAIT_UNTIL(claims() > before || quorums_lost() > lost, SOON_US));
        if (claims() > before) {
            return id;
        }
        pause_masters(SIGCONT); /* this machine was too slow */
        fleet_wait_finished(&f, jobs, "completed", SOON_US);
    }
}

START_TEST(lock_G1_a_claim_that_is_answered_before_its_lock_starts_nothing)
{
    int64_t id = insert_while_paused();
    ck_assert(WAIT_UNTIL(is_waiting_uncharged(id), SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), jobs - 2);
    pause_masters(SIGCONT);
    check_each_ran_once();
}
END_TEST

START_TEST(G4_a_hint_without_a_job_is_dropped_whichever_of_lock_and_claim_is_answered_first)
{
    int lost = quorums_lost();
    pause_masters(SIGSTOP);
    fleet_redis(&f, 0, "ZADD claimd:hints:default 5000000000000 999999");
    ck_assert(WAIT_UNTIL(fleet_redis_i64(&f, 0, "ZCARD claimd:hints:default") == 0 ||
                             quorums_lost() > lost,
                         SOON_US));
    pause_masters(SIGCONT);
    (void)insert(0);
    check_each_ran_once();
    ck_assert(WAIT_UNTIL(fleet_redis_i64(&f, 0, "ZCARD claimd:hints:default") == 0, SOON_US));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("lock and claim at once");
    TCase *c = tcase_create("worker");
    tcase_set_timeout(c, 180);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(
        c, lock_G1_a_job_that_is_claimed_while_somebody_has_its_lock_is_given_back_uncharged);
    tcase_add_test(c, lock_G1_a_claim_that_is_answered_before_its_lock_starts_nothing);
    tcase_add_test(
        c, G4_a_hint_without_a_job_is_dropped_whichever_of_lock_and_claim_is_answered_first);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
