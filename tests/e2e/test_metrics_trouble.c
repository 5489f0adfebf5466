/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics about trouble: rows locked by another session, lost masters, a lost PostgreSQL, a lost
 * leadership. */
#include "base/buf.h"
#include "cluster/scrape.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

#define TEXT_MAX ((size_t)8 << 20)
#define MADE_UP 20000
#define BEHIND 300

static struct fleet f;
static char worker[128];
static char scheduler[128];

static void setup(void)
{
    static const struct fleet_options options = {.slots = 2};
    fleet_start(&f, &options);
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
    fleet_http(&f, "claimd-scheduler", 0, scheduler, sizeof scheduler);
    fleet_http(&f, "claimd-worker", 0, worker, sizeof worker);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Returns NAN while the daemon answers 503, as it does briefly after it was stopped. */
static double sum(const char *address, const char *name, const char *label)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    enum status st = scrape_get(address, "/metrics", SOON_US, &text, NULL);
    return st == STATUS_OK ? scrape_sum(buf_at(&text), name, label) : (double)NAN;
}

#define ASSERT_SOON(address, name, label, relation)                                             \
    do {                                                                                        \
        double is_ = 0;                                                                         \
        bool was_ = WAIT_UNTIL((is_ = sum((address), (name), (label)), is_ relation), SOON_US); \
        ck_assert_msg(was_, "%s is %g, not %s", (name), is_, #relation);                        \
    } while (0)

START_TEST(an_id_whose_row_is_locked_is_refused_and_put_back)
{
    struct sql *locker = sql_open(f.conninfo);
    int64_t id = sql_number(f.sql, "SELECT claimd.enqueue('noop', scheduled_at => now() + interval "
                                   "'500 ms')");
    sql_run(locker, "BEGIN");
    sql_run(locker, "SELECT FROM claimd.job WHERE id = %lld FOR UPDATE", (long long)id);
    ASSERT_SOON(worker, "claimd_claims_refused_total", "reason=\"locked\"", > 0);
    ASSERT_SOON(worker, "claimd_hints_put_back_total", NULL, > 0);
    sql_run(locker, "ROLLBACK");
    sql_close(locker);
    ASSERT_SOON(worker, "claimd_jobs_finished_total", "outcome=\"completed\"", == 1);
}
END_TEST

/* Pushes hints, first in line, with ids that no job has. */
static void push_made_up(int count)
{
    static const char script[] = "for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', "
                                 "'claimd:hints:default', i, 7000000000 + i) end";
    char number[16];
    autobuf struct buf out = BUF_INIT(1024);
    (void)snprintf(number, sizeof number, "%d", count);
    const char *const words[] = {"EVAL", script, "0", number, NULL};
    ck_assert_int_eq(redis_server_ask(&f.masters[0], words, &out, NULL), STATUS_OK);
}

START_TEST(H3_hints_that_are_of_no_job_are_dropped_without_a_claim_each)
{
    ASSERT_SOON(worker, "claimd_redis_node_voting", NULL, == 5);
    push_made_up(MADE_UP);
    (void)fleet_enqueue(&f, "noop", "{}", BEHIND);
    ASSERT_SOON(worker, "claimd_jobs_finished_total", "outcome=\"completed\"", == BEHIND);
    ck_assert(WAIT_UNTIL(fleet_redis_i64(&f, 0, "ZCARD claimd:hints:default") == 0, SOON_US));
    /* A hint of a finished job may have been pushed twice. On a slow machine, a lease may expire
     * before its claim, and the reply to a pop may arrive too late to be used. */
    ASSERT_SOON(worker, "claimd_claims_refused_total", NULL, >= 0.9 * MADE_UP);
    ck_assert_double_le(sum(worker, "claimd_claim_batch_jobs_sum", NULL), MADE_UP / 10.0);
}
END_TEST

START_TEST(lost_masters_and_a_lost_quorum_are_told_by_every_daemon)
{
    char label[256];
    ASSERT_SOON(worker, "claimd_redis_node_voting", NULL, == 5);
    redis_server_kill(&f.masters[2]);
    (void)snprintf(label, sizeof label, "node=\"unix:%s\"", f.masters[2].path);
    ASSERT_SOON(worker, "claimd_redis_node_up", label, == 0);
    ASSERT_SOON(worker, "claimd_redis_node_up", NULL, == 4);
    ASSERT_SOON(worker, "claimd_redis_node_voting", NULL, == 4);
    ASSERT_SOON(worker, "claimd_redis_node_errors_total", label, >= 1);
    ASSERT_SOON(worker, "claimd_lock_quorum", NULL, == 1);
    redis_server_kill(&f.masters[0]);
    redis_server_kill(&f.masters[1]);
    ASSERT_SOON(worker, "claimd_lock_quorum", NULL, == 0);
    ASSERT_SOON(scheduler, "claimd_lock_quorum", NULL, == 0);
    ASSERT_SOON(scheduler, "claimd_redis_node_up", NULL, == 2);
}
END_TEST

START_TEST(a_lost_postgres_is_told_and_its_sessions_are_counted)
{
    struct err err = {0};
    ASSERT_SOON(worker, "claimd_postgres_up", NULL, == 1);
    sql_close(TAKE(f.sql));
    pg_server_kill(&f.pg);
    ASSERT_SOON(worker, "claimd_postgres_up", NULL, == 0);
    ASSERT_SOON(scheduler, "claimd_postgres_up", NULL, == 0);
    ck_assert_msg(pg_server_restart(&f.pg, &err) == STATUS_OK, "%s", err.msg);
    ASSERT_SOON(worker, "claimd_postgres_up", NULL, == 1);
    ASSERT_SOON(worker, "claimd_postgres_connects_total", NULL, == 2);
    ASSERT_SOON(scheduler, "claimd_postgres_connects_total", NULL, == 2);
}
END_TEST

START_TEST(a_paused_queue_and_a_draining_worker_are_told)
{
    (void)fleet_enqueue(&f, "sleep", "{\"ms\": 60000, \"deaf\": true}", 1);
    ASSERT_SOON(worker, "claimd_worker_slots_busy", NULL, == 1);
    sql_run(f.sql, "INSERT INTO claimd.queue VALUES ('default', true)");
    ASSERT_SOON(scheduler, "claimd_queue_paused", "queue=\"default\"", == 1);
    fleet_signal(f.workers[0], SIGTERM);
    ASSERT_SOON(worker, "claimd_worker_draining", NULL, == 1);
    ASSERT_SOON(worker, "claimd_worker_jobs", "phase=\"running\"", == 1);
}
END_TEST

START_TEST(jobs_that_expire_are_told)
{
    sql_run(f.sql, "SELECT claimd.enqueue('noop', queue => 'nobodys', expires_at => now() + "
                   "interval '100 ms') FROM generate_series(1, 3)");
    ASSERT_SOON(scheduler, "claimd_jobs_expired_total", NULL, == 3);
}
END_TEST

START_TEST(who_lost_the_lead_tells_nothing_of_the_queues)
{
    char second[128];
    ASSERT_SOON(scheduler, "claimd_scheduler_leader", NULL, == 1);
    ASSERT_SOON(scheduler, "claimd_workers", "state=\"live\"", == 1);
    fleet_start_scheduler(&f, 1);
    fleet_http(&f, "claimd-scheduler", 1, second, sizeof second);
    ck_assert_double_eq(sum(second, "claimd_jobs", NULL), -1);
    fleet_signal(f.schedulers[0], SIGSTOP);
    ASSERT_SOON(second, "claimd_scheduler_leader", NULL, == 1);
    ASSERT_SOON(second, "claimd_workers", "state=\"live\"", == 1);
    fleet_signal(f.schedulers[0], SIGCONT);
    ASSERT_SOON(scheduler, "claimd_scheduler_leader", NULL, == 0);
    ASSERT_SOON(scheduler, "claimd_jobs", NULL, == -1);
    ASSERT_SOON(scheduler, "claimd_workers", NULL, == -1);
    /* Counters keep their values. */
    ck_assert_double_ge(sum(scheduler, "claimd_hints_fed_total", NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics_trouble");
    TCase *tests = tcase_create("trouble");
    tcase_set_timeout(tests, 180);
    tcase_add_unchecked_fixture(tests, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, an_id_whose_row_is_locked_is_refused_and_put_back);
    tcase_add_test(tests, H3_hints_that_are_of_no_job_are_dropped_without_a_claim_each);
    tcase_add_test(tests, lost_masters_and_a_lost_quorum_are_told_by_every_daemon);
    tcase_add_test(tests, a_lost_postgres_is_told_and_its_sessions_are_counted);
    tcase_add_test(tests, a_paused_queue_and_a_draining_worker_are_told);
    tcase_add_test(tests, jobs_that_expire_are_told);
    tcase_add_test(tests, who_lost_the_lead_tells_nothing_of_the_queues);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
