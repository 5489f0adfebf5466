/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's membership without servers: this file stands in for the stores, the lock and the
 * other parts of the worker. */
#include "base/clock.h"
#include "daemon/daemon.h"
#include "daemon/ready.h"
#include "store/migrate.h"
#include "support/suite.h"
#include "worker/membership/membership.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define HELLO                                                                                     \
    "{\"kinds\":[{\"name\":\"a\",\"plugin\":\"p\",\"version\":\"1\",\"max_attempts\":3,"          \
    "\"max_crashes\":2,\"timeout_ms\":1000,\"at_most_once\":false,\"backoff\":\"\",\"keep_log\":" \
    "false,\"grace_ms\":0}]}"

static struct {
    uv_loop_t loop;
    struct config config;
    struct servers servers;
    struct standing standing;
    struct due due;
    struct active_jobs active;
    struct membership membership;
    bool is_pg_up;

    /* requests that wait for their answers */
    migrate_check_cb *schema;
    struct cluster_join *join;
    predecessor_cb *predecessor;
    worker_done_cb *registered;
    void *registered_ctx;
    worker_heartbeat_cb *heartbeat;
    int registrations;
    int heartbeats;
    bool has_told_lost_pop;

    char first_id[WORKER_ID_SIZE];
    int locks_opened;
    int failed_with;
    char store_worker[WORKER_ID_SIZE];
} t;

/* ---- in place of the servers ---- */

bool pg_is_up(const struct pg *pg)
{
    (void)pg;
    return t.is_pg_up;
}

enum status migrate_check(struct pg *pg, migrate_check_cb *done, void *ctx, struct err *err)
{
    (void)pg;
    (void)ctx;
    (void)err;
    t.schema = done;
    return STATUS_OK;
}

enum status cluster_store_join(struct cluster_join *join, struct err *err)
{
    (void)err;
    t.join = join;
    return STATUS_OK;
}

enum status worker_store_end_predecessor(struct pg *pg, const char *worker_id, predecessor_cb *done,
                                         void *ctx, struct err *err)
{
    (void)pg;
    (void)worker_id;
    (void)ctx;
    (void)err;
    t.predecessor = done;
    return STATUS_OK;
}

enum status worker_store_hand_back_all(struct pg *pg, const char *dead_worker_id,
                                       handed_back_cb *each, worker_done_cb *done, void *ctx,
                                       struct err *err)
{
    (void)pg;
    (void)dead_worker_id;
    (void)each;
    (void)done;
    (void)ctx;
    return err_fail(err, STATUS_UNAVAILABLE, "not in this test");
}

enum status worker_store_register(struct pg *pg, const struct worker_registration *r,
                                  worker_done_cb *done, void *ctx, struct err *err)
{
    (void)pg;
    (void)err;
    ck_assert_int_eq(r->slots, 1);
    t.registrations++;
    t.registered = done;
    t.registered_ctx = ctx;
    return STATUS_OK;
}

enum status worker_store_heartbeat(struct pg *pg, const struct worker_heartbeat *b,
                                   worker_heartbeat_cb *done, void *ctx, struct err *err)
{
    (void)pg;
    (void)ctx;
    (void)err;
    t.heartbeats++;
    t.heartbeat = done;
    t.has_told_lost_pop = b->lost_pop;
    return STATUS_OK;
}

void job_store_set_worker(struct job_store *s, const char *worker_id)
{
    (void)s;
    (void)snprintf(t.store_worker, sizeof t.store_worker, "%s", worker_id);
}

const struct err *job_store_trouble(const struct job_store *s)
{
    (void)s;
    return NULL;
}

void hints_forget_sleeper(struct hints *hints, const char *name)
{
    (void)hints;
    (void)name;
}

const char *redlock_async_prefix(const struct redlock_async *lock)
{
    (void)lock;
    return "prefix";
}

size_t redlock_async_voting(const struct redlock_async *lock)
{
    (void)lock;
    return 1;
}

int redlock_async_free_prefix(struct redlock_async *lock, const char *prefix,
                              const struct redlock_async_key *keys, size_t count,
                              redlock_async_flushed_cb *done, void *ctx, struct redlock_error *err)
{
    (void)lock;
    (void)prefix;
    (void)keys;
    (void)count;
    (void)done;
    (void)ctx;
    (void)err;
    return -1;
}

bool ready_is_time(const struct config *c, const struct redlock_async *lock, int64_t since_us)
{
    (void)c;
    (void)lock;
    (void)since_us;
    return true;
}

void daemon_host(const struct config *c, char *ret_host, size_t size)
{
    (void)c;
    (void)snprintf(ret_host, size, "host");
}

/* ---- in place of the other parts ---- */

static size_t runner_count(void *ctx)
{
    (void)ctx;
    return 1;
}

static bool runner_is_current(void *ctx, size_t runner)
{
    (void)ctx;
    return runner == 0;
}

static void replace_runner(void *ctx, size_t runner)
{
    (void)ctx;
    (void)runner;
}

static enum status open_lock(void *ctx, int64_t ttl_max_us, struct err *err)
{
    (void)ctx;
    (void)ttl_max_us;
    (void)err;
    t.locks_opened++;
    t.servers.lock = (struct redlock_async *)&t; /* never looked into */
    return STATUS_OK;
}

static void put_back(void *ctx, const struct hint *hint)
{
    (void)ctx;
    (void)hint;
}

static int spare_least(void *ctx)
{
    (void)ctx;
    return 0;
}

static void on_answered(void *ctx, const struct worker_heartbeat_reply *reply)
{
    (void)ctx;
    (void)reply;
}

static void on_failed(void *ctx, int exit_code, const char *why)
{
    (void)ctx;
    (void)why;
    t.failed_with = exit_code;
}

static void setup(void)
{
    const struct membership_env env = {.servers = &t.servers,
                                       .standing = &t.standing,
                                       .due = &t.due,
                                       .active = &t.active,
                                       .runner_count = runner_count,
                                       .runner_is_current = runner_is_current,
                                       .replace_runner = replace_runner,
                                       .open_lock = open_lock,
                                       .put_back = put_back,
                                       .spare_least = spare_least,
                                       .answered = on_answered,
                                       .fail = on_failed};
    t.config.time_scale = 1;
    t.config.lock.node_count = 1;
    (void)snprintf(t.config.lock.nodes[0], sizeof t.config.lock.nodes[0], "127.0.0.1:1");
    t.config.lock.ttl_us = 10 * US_PER_S;
    t.config.worker.queue_count = 1;
    (void)snprintf(t.config.worker.queues[0], sizeof t.config.worker.queues[0], "default");
    (void)snprintf(t.config.worker.state_dir, sizeof t.config.worker.state_dir, "%s", suite_tmp());
    t.config.worker.beat_us = 3600 * US_PER_S;
    t.is_pg_up = true;
    t.failed_with = -1;
    ck_assert_int_eq(uv_loop_init(&t.loop), 0);
    t.servers.loop = &t.loop;
    t.servers.config = &t.config;
    ck_assert_int_eq(membership_open(&t.membership, &env, NULL), STATUS_OK);
}

static void teardown(void)
{
    membership_close(&t.membership);
    ck_assert_int_eq(uv_run(&t.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&t.loop), 0);
    membership_release(&t.membership);
}

/* Answers all steps up to the registration. */
static void get_to_registration(void)
{
    kinds_take_hello(&t.membership, 0, 1, HELLO, strlen(HELLO));
    ck_assert(t.schema != NULL);
    t.schema(&t.membership, STATUS_OK, NULL);
    ck_assert_ptr_nonnull(t.join);
    t.join->done(&t.membership, STATUS_OK, 20 * US_PER_S, NULL);
    ck_assert_int_eq(t.locks_opened, 1);
    ck_assert_int_eq(t.registrations, 1);
}

static void get_registered(void)
{
    get_to_registration();
    t.registered(t.registered_ctx, STATUS_OK, NULL);
    (void)snprintf(t.first_id, sizeof t.first_id, "%s", t.standing.worker_id);
    t.standing.stage = WORKER_RUNNING; /* the root's answer to due.registered */
}

START_TEST(nothing_is_asked_before_a_runner_has_said_its_kinds)
{
    registration_begin(&t.membership);
    ck_assert(t.schema == NULL);
    kinds_take_hello(&t.membership, 0, 1, HELLO, strlen(HELLO));
    ck_assert(t.schema != NULL);
    ck_assert(!t.standing.is_registered);
}
END_TEST

START_TEST(the_steps_end_with_a_row_and_mark_that_there_is_one)
{
    get_to_registration();
    ck_assert(!t.due.registered);
    t.registered(t.registered_ctx, STATUS_OK, NULL);
    ck_assert(t.due.registered);
    ck_assert(t.standing.is_registered);
    ck_assert_str_eq(t.store_worker, t.standing.worker_id);
    ck_assert_uint_eq(t.membership.kinds.served.count, 1);
}
END_TEST

START_TEST(other_lock_nodes_end_the_worker)
{
    get_to_registration();
    t.registered(t.registered_ctx, STATUS_CONFLICT, &(struct err){.msg = "other nodes"});
    ck_assert_int_ge(t.failed_with, 1);
    ck_assert(!t.standing.is_registered);
}
END_TEST

START_TEST(a_confirmed_heartbeat_counts_from_when_it_was_sent)
{
    get_registered();
    t.standing.has_lost_pop = true;
    int64_t before = clock_boot_us();
    heartbeat_now(&t.membership);
    ck_assert(t.has_told_lost_pop);
    int64_t sent = clock_boot_us();
    t.heartbeat(&t.membership, STATUS_OK, &(struct worker_heartbeat_reply){.asked = ""}, NULL);
    ck_assert_int_ge(t.standing.heartbeat_confirmed_us, before);
    ck_assert_int_le(t.standing.heartbeat_confirmed_us, sent);
    ck_assert(t.due.limits_of_runs);
    ck_assert(!t.standing.has_lost_pop);
}
END_TEST

START_TEST(a_failed_heartbeat_reports_the_lost_pop_again)
{
    get_registered();
    t.standing.has_lost_pop = true;
    heartbeat_now(&t.membership);
    ck_assert(!t.standing.has_lost_pop);
    t.heartbeat(&t.membership, STATUS_TIMEOUT, NULL, &(struct err){.msg = "no answer"});
    ck_assert(t.standing.has_lost_pop);
}
END_TEST

START_TEST(a_requested_heartbeat_follows_one_that_is_in_flight)
{
    get_registered();
    heartbeat_now(&t.membership);
    heartbeat_request(&t.membership);
    ck_assert_int_eq(t.heartbeats, 1);
    t.heartbeat(&t.membership, STATUS_OK, &(struct worker_heartbeat_reply){.asked = ""}, NULL);
    ck_assert_int_eq(t.heartbeats, 2);
}
END_TEST

START_TEST(a_worker_that_was_marked_dead_registers_anew_and_freezes_its_jobs)
{
    get_registered();
    struct active_job *job = active_add(&t.active, 7);
    (void)active_step(&t.active, job, ON_VERDICT);
    heartbeat_now(&t.membership);
    t.heartbeat(&t.membership, STATUS_OK, &(struct worker_heartbeat_reply){.is_dead = true}, NULL);
    ck_assert(!t.standing.is_registered);
    ck_assert_int_gt(job->heartbeat_frozen_us, 0);
    ck_assert_int_eq(t.registrations, 2);
    ck_assert_str_ne(t.standing.worker_id, t.first_id);
    active_remove(&t.active, job);
}
END_TEST

START_TEST(a_paused_kind_is_not_served_and_other_sets_are_due)
{
    get_registered();
    t.due = (struct due){.listen = false};
    kinds_take_paused(&t.membership, (const char *const[]){"a"}, 1);
    ck_assert_uint_eq(t.membership.kinds.served.count, 0);
    ck_assert(t.due.listen);
    ck_assert_int_eq(t.heartbeats, 1);
    kinds_take_paused(&t.membership, NULL, 0);
    ck_assert_uint_eq(t.membership.kinds.served.count, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_membership");
    TCase *tc = tcase_create("membership");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, nothing_is_asked_before_a_runner_has_said_its_kinds);
    tcase_add_test(tc, the_steps_end_with_a_row_and_mark_that_there_is_one);
    tcase_add_test(tc, other_lock_nodes_end_the_worker);
    tcase_add_test(tc, a_confirmed_heartbeat_counts_from_when_it_was_sent);
    tcase_add_test(tc, a_failed_heartbeat_reports_the_lost_pop_again);
    tcase_add_test(tc, a_requested_heartbeat_follows_one_that_is_in_flight);
    tcase_add_test(tc, a_worker_that_was_marked_dead_registers_anew_and_freezes_its_jobs);
    tcase_add_test(tc, a_paused_kind_is_not_served_and_other_sets_are_due);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
