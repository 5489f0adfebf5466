/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's row: registered, refreshed by heartbeats, stopped; a predecessor is ended and its
 * jobs are handed back. */
#include "job_store_fixture.h"
#include "store/rescue_store.h"
#include "store/worker_store.h"

#include <stdio.h>
#include <string.h>

#define WORKER_C "cccccccc-0000-4000-8000-000000000003"

static const char *const queues[] = {"default", "mail"};
static const struct worker_kind kinds[] = {
    {"noop", "noop.so", "1", {.max_attempts = 25, .max_crashes = 3, .timeout_us = 60 * US_PER_S}},
    {"other",
     "other.so",
     "2",
     {.max_attempts = 1,
      .max_crashes = 1,
      .timeout_us = 90 * US_PER_S,
      .at_most_once = true,
      .backoff = "fixed:7s",
      .keeps_log = true}},
};

struct told {
    int calls;
    enum status st;
    char msg[256];
    bool is_dead;
    char paused[128];
    char weights[128];
    char prefix[32];
    size_t id_count;
    int64_t ids[16];
    int back_count;
    int64_t back_us;
};
static struct told told;

static void on_done(void *ctx, enum status st, const struct err *err)
{
    struct told *t = ctx;
    t->calls++;
    t->st = st;
    (void)snprintf(t->msg, sizeof t->msg, "%.200s", err->msg);
}

static void on_back(void *ctx, const struct handed_back *job)
{
    struct told *t = ctx;
    ck_assert_str_eq(job->queue, "default");
    ck_assert_int_eq(job->priority, 4);
    t->back_count++;
    t->back_us = job->ready_at_unix_us;
}

static void join(char *ret, size_t size, const char *const *names, size_t count)
{
    size_t len = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < count && len < size; i++) {
        len += (size_t)snprintf(ret + len, size - len, "%s%s", i > 0 ? " " : "", names[i]);
    }
}

static void on_heartbeat(void *ctx, enum status st, const struct worker_heartbeat_reply *reply,
                         const struct err *err)
{
    struct told *t = ctx;
    (void)err;
    t->calls++;
    t->st = st;
    t->is_dead = reply->is_dead;
    join(t->paused, sizeof t->paused, reply->paused_queues, reply->paused_count);
    for (size_t i = 0, len = 0; i < reply->weight_count && len < sizeof t->weights; i++) {
        len += (size_t)snprintf(t->weights + len, sizeof t->weights - len, "%s=%d ",
                                reply->weights[i].queue, reply->weights[i].weight);
    }
}

static void on_predecessor(void *ctx, enum status st, const char *prefix, const int64_t *ids,
                           size_t count)
{
    struct told *t = ctx;
    t->calls++;
    t->st = st;
    t->id_count = count;
    (void)snprintf(t->prefix, sizeof t->prefix, "%s", prefix != NULL ? prefix : "");
    for (size_t i = 0; i < count && i < ARRAY_COUNT(t->ids); i++) {
        t->ids[i] = ids[i];
    }
}

#define TELL(call)                                          \
    do {                                                    \
        told = (struct told){0};                            \
        struct err err_ = {0};                              \
        struct err *err = &err_;                            \
        ck_assert_msg((call) == STATUS_OK, "%s", err_.msg); \
        RUN_UNTIL(told.calls == 1);                         \
    } while (0)

static void register_worker(struct pg *pg, const char *id, size_t kind_count)
{
    const struct worker_registration r = {.worker_id = id,
                                          .host = "here",
                                          .pid = 4711,
                                          .version = "0.1.0",
                                          .state_dir = "/var/lib/claimd",
                                          .token_prefix = "AbCdEfGhIjKl",
                                          .queues = queues,
                                          .queue_count = ARRAY_COUNT(queues),
                                          .slots = 4,
                                          .kinds = kinds,
                                          .kind_count = kind_count,
                                          .stale_us = 8 * US_PER_S};
    TELL(worker_store_register(pg, &r, on_done, &told, err));
    ck_assert_msg(told.st == STATUS_OK, "%s", told.msg);
}

static void heartbeat(const char *id, size_t kind_count, bool lost_pop)
{
    static const int64_t fences[] = {3, 5};
    const struct worker_heartbeat b = {.worker_id = id,
                                       .stale_us = 8 * US_PER_S,
                                       .is_quiet = true,
                                       .lost_pop = lost_pop,
                                       .running = 2,
                                       .held_fences = fences,
                                       .held_count = ARRAY_COUNT(fences),
                                       .kinds = kinds,
                                       .kind_count = kind_count};
    TELL(worker_store_heartbeat(store_a.pg, &b, on_heartbeat, &told, err));
    ck_assert_int_eq(told.st, STATUS_OK);
}

START_TEST(registering_makes_the_row_and_announces_the_kinds)
{
    struct pg *pg = world_pg(); /* can see when it started */
    register_worker(pg, WORKER_A, 2);
    ASSERT_TEXT("SELECT concat_ws(' ', host, pid, slots, token_prefix, version, queues, kinds, "
                "dead, stopped) FROM claimd.worker WHERE stale_at BETWEEN clock_timestamp() + '5 "
                "s' AND clock_timestamp() + '8 s'",
                "here 4711 4 AbCdEfGhIjKl 0.1.0 {default,mail} {noop,other} f f");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.worker w, pg_stat_activity a WHERE a.pid = "
                  "w.backend_pid AND a.backend_start = w.backend_start",
                  1);
    ASSERT_TEXT("SELECT concat_ws(' ', plugin, version, max_attempts, max_crashes, timeout, "
                "at_most_once, backoff, keep_log) FROM claimd.kind WHERE name = 'other'",
                "other.so 2 1 1 00:01:30 t fixed:7s t");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.kind WHERE backoff IS NULL", 1);
    pg_close(pg);
}
END_TEST

static struct worker_registration given_lock_nodes(const char *nodes)
{
    return (struct worker_registration){.worker_id = WORKER_A,
                                        .host = "here",
                                        .version = "1",
                                        .state_dir = "/s",
                                        .token_prefix = "p",
                                        .stale_us = US_PER_S,
                                        .lock_nodes = nodes};
}

START_TEST(N8_a_worker_can_not_register_where_the_cluster_has_other_lock_nodes_by_now)
{
    const struct worker_registration r = given_lock_nodes("a:1,b:1,c:1");
    TELL(worker_store_register(store_a.pg, &r, on_done, &told, err));
    ck_assert_int_eq(told.st, STATUS_CONFLICT);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.worker", 0);
    sql_run(side, "UPDATE claimd.cluster SET lock_nodes = 'a:1,b:1,c:1'");
    TELL(worker_store_register(store_a.pg, &r, on_done, &told, err));
    ck_assert_msg(told.st == STATUS_OK, "%s", told.msg);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.worker", 1);
}
END_TEST

START_TEST(N8_a_worker_that_registers_during_a_change_of_lock_nodes_waits_for_its_end)
{
    const struct worker_registration r = given_lock_nodes("a:1");
    struct err err = {0};
    struct sql *admin = sql_open(world.conninfo);
    sql_run(side, "UPDATE claimd.cluster SET lock_nodes = 'a:1'");
    sql_run(admin, "BEGIN");
    sql_run(admin, "SELECT lock_nodes FROM claimd.cluster FOR UPDATE");
    sql_run(admin, "UPDATE claimd.cluster SET lock_nodes = 'b:1'");
    told = (struct told){0};
    ck_assert_int_eq(worker_store_register(store_a.pg, &r, on_done, &told, &err), STATUS_OK);
    RUN_UNTIL(sql_number(side, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = "
                               "current_database() AND wait_event_type = 'Lock'") == 1);
    ck_assert_int_eq(told.calls, 0);
    sql_run(admin, "COMMIT");
    sql_close(admin);
    RUN_UNTIL(told.calls == 1);
    ck_assert_int_eq(told.st, STATUS_CONFLICT);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.worker", 0);
}
END_TEST

START_TEST(a_heartbeat_tells_what_doctor_wants_to_know)
{
    static const char *const refused[] = {"a.json: no \"command\", {}", "b.so: not ours"};
    register_worker(store_a.pg, WORKER_A, 2);
    const struct worker_heartbeat b = {.worker_id = WORKER_A,
                                       .stale_us = 8 * US_PER_S,
                                       .refused = refused,
                                       .refused_count = ARRAY_COUNT(refused),
                                       .kinds = kinds,
                                       .kind_count = 2,
                                       .lock_nodes = 5,
                                       .lock_nodes_voting = 2,
                                       .uncommitted = 7,
                                       .uncommitted_us = 90 * US_PER_S,
                                       .trouble = "no space left"};
    TELL(worker_store_heartbeat(store_a.pg, &b, on_heartbeat, &told, err));
    ck_assert_int_eq(told.st, STATUS_OK);
    ASSERT_TEXT("SELECT concat_ws(' ', lock_nodes, lock_nodes_voting, uncommitted, uncommitted_us, "
                "trouble, abs(clock_ahead_us) < 5000000) FROM claimd.worker",
                "5 2 7 90000000 no space left t");
    ASSERT_TEXT("SELECT refused[1] || ' ' || refused[2] FROM claimd.worker",
                "a.json: no \"command\", {} b.so: not ours");
}
END_TEST

START_TEST(registering_again_changes_only_kinds_that_differ)
{
    register_worker(store_a.pg, WORKER_A, 2);
    sql_run(side,
            "UPDATE claimd.kind SET max_attempts = 9, updated_at = 'epoch' WHERE name = 'noop'");
    sql_run(side, "UPDATE claimd.kind SET updated_at = 'epoch' WHERE name = 'other'");
    register_worker(store_a.pg, WORKER_B, 2);
    ASSERT_TEXT("SELECT name || ' ' || max_attempts FROM claimd.kind WHERE updated_at > 'epoch'",
                "noop 25");
    register_worker(store_a.pg, WORKER_B, 2); /* after its first answer was lost */
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.worker", 2);
}
END_TEST

START_TEST(registering_leaves_what_an_operator_has_set_of_a_kind)
{
    register_worker(store_a.pg, WORKER_A, 2);
    sql_run(side,
            "SELECT claimd.set_kind('noop', '{\"timeout\": \"5 s\", \"max_attempts\": 2}')::text");
    sql_run(side, "UPDATE claimd.kind SET version = 'old', of_plugin = of_plugin || '{\"timeout\": "
                  "\"1 s\"}', updated_at = 'epoch'");
    register_worker(store_a.pg, WORKER_B, 2);
    ASSERT_TEXT("SELECT concat_ws(' ', version, timeout, max_attempts) FROM claimd.kind WHERE name "
                "= 'noop'",
                "1 00:00:05 2");
    sql_run(side, "UPDATE claimd.kind SET updated_at = 'epoch'");
    register_worker(store_a.pg, WORKER_B, 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.kind WHERE updated_at > 'epoch'", 0);
    sql_run(side,
            "SELECT claimd.set_kind('noop', '{\"timeout\": null, \"max_attempts\": null}')::text");
    ASSERT_TEXT("SELECT concat_ws(' ', timeout, max_attempts) FROM claimd.kind WHERE name = 'noop'",
                "00:01:00 25");
}
END_TEST

START_TEST(feat_B29_a_kind_that_is_announced_keeps_what_was_set_before)
{
    sql_run(side, "SELECT claimd.set_kind('other', '{\"timeout\": \"5 s\", \"paused\": true, "
                  "\"retain\": \"30d\"}')::text");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.kind WHERE NOT is_announced", 1);
    register_worker(store_a.pg, WORKER_A, 2);
    ASSERT_TEXT("SELECT concat_ws(' ', plugin, version, timeout, backoff, at_most_once, paused, "
                "is_announced) FROM claimd.kind WHERE name = 'other'",
                "other.so 2 00:00:05 fixed:7s t t t");
    ASSERT_NUMBER("SELECT days::text FROM claimd.retention WHERE scope = 'kind'", 30);
    sql_run(side, "SELECT claimd.set_kind('other', '{\"timeout\": null, \"paused\": null, "
                  "\"retain\": null}')::text");
    ASSERT_TEXT("SELECT concat_ws(' ', timeout, paused) FROM claimd.kind WHERE name = 'other'",
                "00:01:30 f");
}
END_TEST

START_TEST(a_heartbeat_says_what_the_worker_does_and_moves_stale_at)
{
    register_worker(store_a.pg, WORKER_A, 2);
    sql_run(side, "UPDATE claimd.worker SET stale_at = now()");
    heartbeat(WORKER_A, 1, true);
    ck_assert(!told.is_dead);
    ASSERT_TEXT("SELECT concat_ws(' ', quiet, lost_pops, running, held_fences, kinds) FROM "
                "claimd.worker WHERE stale_at > clock_timestamp() + '5 s'",
                "t 1 2 {3,5} {noop}");
    heartbeat(WORKER_A, 1, false);
    ASSERT_NUMBER("SELECT lost_pops::text FROM claimd.worker", 1);
}
END_TEST

START_TEST(a_heartbeat_on_a_dead_a_stopped_or_a_missing_row_is_not_confirmed)
{
    register_worker(store_a.pg, WORKER_A, 2);
    sql_run(side, "UPDATE claimd.worker SET dead = true, stale_at = 'epoch'");
    heartbeat(WORKER_A, 2, false);
    ck_assert(told.is_dead);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.worker WHERE stale_at = 'epoch'", 1);
    heartbeat(WORKER_B, 2, false);
    ck_assert(told.is_dead);
    register_worker(store_a.pg, WORKER_C, 2);
    TELL(worker_store_stopped(store_a.pg, WORKER_C, on_done, &told, err));
    heartbeat(WORKER_C, 2, false);
    ck_assert(told.is_dead);
}
END_TEST

START_TEST(a_heartbeat_learns_which_of_its_queues_are_paused)
{
    register_worker(store_a.pg, WORKER_A, 2);
    sql_run(
        side,
        "INSERT INTO claimd.queue VALUES ('mail', true), ('default', false), ('elsewhere', true)");
    heartbeat(WORKER_A, 2, false);
    ck_assert_str_eq(told.paused, "mail");
}
END_TEST

START_TEST(a_heartbeat_learns_the_weights_of_its_queues)
{
    register_worker(store_a.pg, WORKER_A, 2);
    heartbeat(WORKER_A, 2, false);
    ck_assert_str_eq(told.weights, "");
    sql_run(side, "INSERT INTO claimd.queue (name, weight) VALUES ('mail', 9), ('default', NULL), "
                  "('elsewhere', 3)");
    heartbeat(WORKER_A, 2, false);
    ck_assert_str_eq(told.weights, "mail=9 ");
    ck_assert_str_eq(told.paused, "");
}
END_TEST

START_TEST(a_predecessor_is_ended_and_its_jobs_are_named_and_handed_back)
{
    struct store old;
    store_start(&old, WORKER_B);
    register_worker(old.pg, WORKER_B, 2);
    sql_run(side, "UPDATE claimd.worker w SET backend_start = a.backend_start FROM "
                  "pg_stat_activity a WHERE a.pid = w.backend_pid");
    int64_t id = add_jobs(4);
    claim_now(&old, id, 4);
    sql_run(side,
            "UPDATE claimd.job SET kind = 'other' WHERE id = (SELECT max(id) FROM claimd.job)");
    sql_run(side,
            "UPDATE claimd.job SET max_attempts = 1 WHERE id = (SELECT min(id) FROM claimd.job)");
    int pid = pg_backend_pid(old.pg);
    /* Its connection is still open. Sessions of tests belong to a superuser, so only a superuser
     * may end them. */
    struct pg *pg = world_pg();
    TELL(worker_store_end_predecessor(pg, WORKER_B, on_predecessor, &told, err));
    pg_close(pg);
    ck_assert_int_eq(told.st, STATUS_OK);
    ck_assert_str_eq(told.prefix, "AbCdEfGhIjKl");
    ck_assert_uint_eq(told.id_count, 4);
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT count(*)::text FROM pg_stat_activity WHERE pid = %d",
                   pid);
    ASSERT_NUMBER(sql, 0);
    TELL(worker_store_hand_back_all(store_a.pg, WORKER_B, on_back, on_done, &told, err));
    ck_assert_int_eq(told.st, STATUS_OK);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE state = 'available' AND attempt = 1",
                  2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'discarded' AND "
                  "error LIKE '%its worker died%'",
                  2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_attempt WHERE outcome = 'lost'", 4);
    ck_assert_msg(told.back_count == 2, "those that are available need their hints");
    ck_assert(told.back_us > 0);
    ASSERT_TEXT("SELECT dead::text FROM claimd.worker", "true");
    store_stop(&old);
}
END_TEST

START_TEST(an_unknown_or_stopped_predecessor_is_not_found)
{
    TELL(worker_store_end_predecessor(store_a.pg, WORKER_C, on_predecessor, &told, err));
    ck_assert_int_eq(told.st, STATUS_NOT_FOUND);
    register_worker(store_a.pg, WORKER_C, 1);
    TELL(worker_store_stopped(store_a.pg, WORKER_C, on_done, &told, err));
    TELL(worker_store_end_predecessor(store_a.pg, WORKER_C, on_predecessor, &told, err));
    ck_assert_int_eq(told.st, STATUS_NOT_FOUND);
}
END_TEST

START_TEST(handing_back_leaves_locked_rows_to_the_scheduler)
{
    int64_t id = add_jobs(3);
    claim_now(&store_a, id, 3);
    struct sql *locker = sql_open(world.conninfo);
    sql_run(locker, "BEGIN");
    sql_run(locker, "SELECT 1::text FROM claimd.job ORDER BY id LIMIT 1 FOR UPDATE");
    TELL(worker_store_hand_back_all(store_a.pg, WORKER_A, on_back, on_done, &told, err));
    ck_assert_int_eq(told.st, STATUS_OK);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE state = 'available'", 2);
    sql_close(locker);
}
END_TEST

START_TEST(an_id_that_is_no_uuid_is_refused)
{
    struct err err = {0};
    ck_assert_int_eq(worker_store_stopped(store_a.pg, "me", on_done, &told, &err), STATUS_INVALID);
}
END_TEST

/* ---- rescue ---- */

struct rescue_answer {
    int calls;
    int rows;
    struct rescue_found found; /* the first row of a walk */
    enum rescue_outcome outcome;
};

static void on_walked(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct rescue_answer *a = ctx;
    ck_assert_msg(st == STATUS_OK, "%s", err->msg);
    rescue_found_row(results[0], 0, &a->found);
    a->calls++;
}

static void on_moved(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct rescue_answer *a = ctx;
    struct rescue_moved m = {0};
    ck_assert_msg(st == STATUS_OK, "%s", err->msg);
    a->rows = pg_row_count(results[0]);
    if (a->rows > 0) {
        rescue_moved_row(results[0], 0, &m);
        a->outcome = m.outcome;
    }
    a->calls++;
}

static struct rescue_answer move(struct pg *pg, const struct rescue_found *job)
{
    struct rescue_answer a = {0};
    ck_assert_int_eq(rescue_store_move(pg, job, 1, on_moved, &a, NULL), STATUS_OK);
    RUN_UNTIL(a.calls == 1);
    return a;
}

START_TEST(D5_a_rescue_moves_no_run_of_another_worker_under_the_same_fence)
{
    struct pg *pg = world_pg();
    struct rescue_answer seen = {0};
    claim_now(&store_a, add_jobs(1), 1);
    ck_assert_int_eq(rescue_store_walk(pg, 0, 10, US_PER_S, on_walked, &seen, NULL), STATUS_OK);
    RUN_UNTIL(seen.calls == 1);
    ck_assert_int_eq(seen.found.why, RESCUE_DEAD); /* worker A never registered */
    sql_run(side, "UPDATE claimd.job SET worker_id = '" WORKER_B "'");
    ck_assert_int_eq(move(pg, &seen.found).rows, 0);
    sql_run(side, "UPDATE claimd.job SET worker_id = '" WORKER_A "'");
    ck_assert_int_eq(move(pg, &seen.found).outcome, RESCUE_AVAILABLE);
    ASSERT_TEXT("SELECT state FROM claimd.job", "available");
    pg_close(pg);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_store");
    TCase *tests = tcase_create("worker");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, jobs_setup, jobs_teardown);
    tcase_add_test(tests, registering_makes_the_row_and_announces_the_kinds);
    tcase_add_test(tests,
                   N8_a_worker_can_not_register_where_the_cluster_has_other_lock_nodes_by_now);
    tcase_add_test(tests,
                   N8_a_worker_that_registers_during_a_change_of_lock_nodes_waits_for_its_end);
    tcase_add_test(tests, a_heartbeat_tells_what_doctor_wants_to_know);
    tcase_add_test(tests, registering_again_changes_only_kinds_that_differ);
    tcase_add_test(tests, registering_leaves_what_an_operator_has_set_of_a_kind);
    tcase_add_test(tests, feat_B29_a_kind_that_is_announced_keeps_what_was_set_before);
    tcase_add_test(tests, a_heartbeat_says_what_the_worker_does_and_moves_stale_at);
    tcase_add_test(tests, a_heartbeat_on_a_dead_a_stopped_or_a_missing_row_is_not_confirmed);
    tcase_add_test(tests, a_heartbeat_learns_which_of_its_queues_are_paused);
    tcase_add_test(tests, a_heartbeat_learns_the_weights_of_its_queues);
    tcase_add_test(tests, a_predecessor_is_ended_and_its_jobs_are_named_and_handed_back);
    tcase_add_test(tests, an_unknown_or_stopped_predecessor_is_not_found);
    tcase_add_test(tests, handing_back_leaves_locked_rows_to_the_scheduler);
    tcase_add_test(tests, an_id_that_is_no_uuid_is_refused);
    tcase_add_test(tests, D5_a_rescue_moves_no_run_of_another_worker_under_the_same_fence);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
