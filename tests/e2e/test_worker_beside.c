/* SPDX-License-Identifier: Apache-2.0
 *
 * On an idle system lock and claim are asked for at once (docs/decisions/0020): what becomes of a
 * job whose claim is won and whose lock is not, or not yet. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define SOON_US (60 * US_PER_S)
#define MASTERS 3

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = MASTERS});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
    (void)fleet_enqueue(&f, "noop", "{}", 1); /* from now on all is known and connected */
    fleet_wait_finished(&f, 1, "completed", SOON_US);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Not due yet, in the ledger once it runs. */
static int64_t insert_later(void)
{
    char path[SERVER_PATH_MAX];
    fleet_ledger_path(&f, path, sizeof path);
    return sql_i64(f.sql,
                   "INSERT INTO claimd.job (kind, args, scheduled_at) VALUES ('ledger',"
                   " jsonb_build_object('path', '%s', 'ms', 0), now() + interval '1 s')"
                   " RETURNING id",
                   path);
}

static int64_t claims(void)
{
    return sql_i64(f.sql, "SELECT last_value FROM claimd.fence");
}

static bool is_waiting_uncharged(int64_t id)
{
    return sql_i64(f.sql,
                   "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'available'"
                   " AND attempt = 0 AND crashes = 0",
                   (long long)id) == 1;
}

static void check_ran_once(int64_t id)
{
    fleet_wait_finished(&f, 2, "completed", SOON_US);
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), 1);
    ck_assert_int_eq(
        sql_i64(f.sql, "SELECT attempt FROM claimd.job_history WHERE id = %lld", (long long)id), 1);
    ck_assert_int_eq(sql_i64(f.sql, "SELECT count(*) FROM claimd.job_attempt"), 0);
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, SOON_US));
}

START_TEST(lock_G1_a_job_that_is_claimed_while_somebody_has_its_lock_is_given_back_uncharged)
{
    char command[128];
    int64_t before = claims();
    int64_t id = insert_later();
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
    check_ran_once(id);
}
END_TEST

/* The masters that don't answer are a majority; hints are on the first one. */
static void pause_masters(int number)
{
    for (size_t i = 1; i < MASTERS; i++) {
        fleet_signal(f.masters[i].pid, number);
    }
}

START_TEST(lock_G1_a_claim_that_is_answered_before_its_lock_starts_nothing)
{
    int64_t before = claims();
    pause_masters(SIGSTOP);
    int64_t id = insert_later();
    ck_assert(WAIT_UNTIL(claims() > before && is_waiting_uncharged(id), SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), 0);
    pause_masters(SIGCONT);
    check_ran_once(id);
}
END_TEST

START_TEST(G4_a_hint_without_a_job_is_dropped_whichever_of_lock_and_claim_is_answered_first)
{
    pause_masters(SIGSTOP);
    fleet_redis(&f, 0, "ZADD claimd:hints:default 5000000000000 999999");
    ck_assert(WAIT_UNTIL(fleet_redis_i64(&f, 0, "ZCARD claimd:hints:default") == 0, SOON_US));
    pause_masters(SIGCONT);
    check_ran_once(insert_later());
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
