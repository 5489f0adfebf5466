/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler_world.h"

#include "base/buf.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX ((size_t)16 << 20)

struct fleet fleet;

/* ---- redis-cli ---- */

static void cli_text(size_t master, const char *const *words, struct buf *out)
{
    struct err err = {0};
    ck_assert_msg(redis_server_ask(&fleet.masters[master], words, out, &err) == STATUS_OK, "%s",
                  err.msg);
}

int64_t cli(size_t master, const char *const *words)
{
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    cli_text(master, words, &out);
    return out.len == 0 ? 0 : strtoll(buf_at(&out), NULL, 10);
}

int64_t hints_in(const char *set)
{
    char key[160];
    (void)snprintf(key, sizeof key, PREFIX ":hints:%s", set);
    return CLI(0, "ZCARD", key);
}

void pop_hints(const char *set, int count)
{
    char key[160];
    char number[16];
    (void)snprintf(key, sizeof key, PREFIX ":hints:%s", set);
    (void)snprintf(number, sizeof number, "%d", count);
    for (size_t i = 0; i < fleet.options.masters; i++) {
        (void)CLI(i, "ZPOPMIN", key, number);
    }
}

bool has_hint(const char *set, int64_t id)
{
    char key[160];
    char number[24];
    bool is_there = false;
    (void)snprintf(key, sizeof key, PREFIX ":hints:%s", set);
    (void)snprintf(number, sizeof number, "%lld", (long long)id);
    for (size_t i = 0; i < fleet.options.masters; i++) {
        is_there = is_there || CLI(i, "ZSCORE", key, number) > 0;
    }
    return is_there;
}

/* Adds the members to a list for SQL. `out` has members and scores in turn, one per line. */
static void add_members(struct buf *ids, const struct buf *out)
{
    const char *at = buf_at(out);
    for (bool is_member = true; *at != '\0'; is_member = !is_member) {
        int len = (int)strcspn(at, "\n");
        if (is_member && len > 0) {
            ck_assert_int_eq(buf_printf(ids, NULL, ",%.*s", len, at), STATUS_OK);
        }
        at += len + (at[len] == '\n' ? 1 : 0);
    }
}

int64_t rows_with_hints(const char *queue)
{
    char key[160];
    (void)snprintf(key, sizeof key, PREFIX ":hints:%s", queue);
    const char *const words[] = {"ZRANGE", key, "0", "-1", "WITHSCORES", NULL};
    autobuf struct buf ids = BUF_INIT(OUTPUT_MAX);
    ck_assert_int_eq(buf_append_text(&ids, "0", NULL), STATUS_OK);
    for (size_t i = 0; i < fleet.options.masters; i++) {
        autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
        cli_text(i, words, &out);
        if (out.len > 1) {
            add_members(&ids, &out);
        }
    }
    return sql_number(fleet.sql,
                      "SELECT count(*) FROM claimd.job WHERE queue = '%s' AND id = ANY ('{%s}')",
                      queue, buf_at(&ids));
}

static int64_t delete_popped(const struct buf *out)
{
    autobuf struct buf ids = BUF_INIT(OUTPUT_MAX);
    ck_assert_int_eq(buf_append_text(&ids, "0", NULL), STATUS_OK);
    add_members(&ids, out);
    return sql_number(fleet.sql,
                      "WITH gone AS (DELETE FROM claimd.job WHERE id = ANY ('{%s}') RETURNING 1)"
                      " SELECT count(*) FROM gone",
                      buf_at(&ids));
}

bool drain_hints(const char *set, int64_t count)
{
    char key[160];
    (void)snprintf(key, sizeof key, PREFIX ":hints:%s", set);
    const char *const words[] = {"ZPOPMIN", key, "1000", NULL};
    int64_t end_us = clock_boot_us() + SOON_US;
    int64_t seen = 0;
    while (seen < count && clock_boot_us() < end_us) {
        int64_t before = seen;
        for (size_t i = 0; i < fleet.options.masters; i++) {
            autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
            cli_text(i, words, &out);
            seen += out.len > 1 ? delete_popped(&out) : 0;
        }
        if (seen == before) {
            wait_step();
        }
    }
    return seen == count;
}

void lock_job(int64_t id, int ms)
{
    char key[64];
    char ttl[16];
    (void)snprintf(key, sizeof key, PREFIX ":job:%lld", (long long)id);
    (void)snprintf(ttl, sizeof ttl, "%d", ms);
    for (size_t i = 0; i < fleet.options.masters; i++) {
        (void)CLI(i, "SET", key, "somebody", "PX", ttl);
    }
}

void unlock_job(int64_t id)
{
    char key[64];
    (void)snprintf(key, sizeof key, PREFIX ":job:%lld", (long long)id);
    for (size_t i = 0; i < fleet.options.masters; i++) {
        (void)CLI(i, "DEL", key);
    }
}

bool scheduler_said(const char *event)
{
    return fleet_log_count(&fleet, "claimd-scheduler", 0, event) > 0;
}

void masters_kill(void)
{
    for (size_t i = 0; i < fleet.options.masters; i++) {
        redis_server_kill(&fleet.masters[i]);
    }
}

void masters_restart(void)
{
    struct err err = {0};
    for (size_t i = 0; i < fleet.options.masters; i++) {
        ck_assert_msg(redis_server_restart(&fleet.masters[i], &err) == STATUS_OK, "%s", err.msg);
    }
}

/* ---- rows of workers and jobs ---- */

const char *worker_uuid(int n)
{
    static char text[40];
    (void)snprintf(text, sizeof text, "00000000-0000-0000-0000-%012d", n);
    return text;
}

void given_worker(int n, const char *queues, const char *kinds)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir,"
            " token_prefix, version, queues, kinds) VALUES ('%s', now() + interval '1 hour', 1, 1,"
            " 'test', '', '', '1', '{%s}', '{%s}')",
            worker_uuid(n), queues, kinds);
}

void heartbeat_is_stale(int n)
{
    sql_run(fleet.sql, "UPDATE claimd.worker SET stale_at = now() WHERE worker_id = '%s'",
            worker_uuid(n));
}

void given_past_day(int days_ago)
{
    sql_run(fleet.sql,
            "DO $$ DECLARE day date := (clock_timestamp() AT TIME ZONE 'UTC')::date - %d; name text"
            " := 'job_history_' || to_char(day, 'YYYYMMDD'); BEGIN EXECUTE format('CREATE TABLE"
            " claimd.%%I (LIKE claimd.job_history INCLUDING ALL)', name); EXECUTE format('ALTER"
            " TABLE claimd.%%I OWNER TO claimd_scheduler', name); EXECUTE format('ALTER TABLE"
            " claimd.job_history ATTACH PARTITION claimd.%%I FOR VALUES FROM (%%L) TO (%%L)', name,"
            " day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC'); END $$",
            days_ago);
}

int64_t given_running(int n, const char *kind, int attempt)
{
    return sql_number(fleet.sql,
                      "WITH new AS (INSERT INTO claimd.job (kind, state, attempt, worker_id, fence,"
                      " attempted_at) VALUES ('%s', 'running', %d, '%s', nextval('claimd.fence'),"
                      " now()) RETURNING id) SELECT id FROM new",
                      kind, attempt, worker_uuid(n));
}

struct queued given_waiting(void)
{
    struct queued q;
    int64_t holder = given_running(1, "noop", 1);
    sql_run(fleet.sql,
            "UPDATE claimd.job SET flags = 2, exclusive_key = 'key' WHERE id = %lld;"
            "INSERT INTO claimd.exclusive (key, n, job_id, fence)"
            " SELECT 'key', 1, id, fence FROM claimd.job WHERE id = %lld",
            (long long)holder, (long long)holder);
    sql_run(fleet.sql, "BEGIN");
    q.waiting =
        sql_number(fleet.sql, "WITH new AS (INSERT INTO claimd.job (kind, flags, exclusive_key)"
                              " VALUES ('noop', 2, 'key') RETURNING exclusive_key, priority,"
                              " ready_at, id)"
                              " INSERT INTO claimd.key_waiting (key, priority, ready_at, job_id)"
                              " SELECT * FROM new RETURNING job_id");
    q.beside = fleet_enqueue(&fleet, "noop", "{}", 1);
    sql_run(fleet.sql, "COMMIT");
    return q;
}

/* ---- life cycle ---- */

bool leads(size_t i)
{
    return fleet_log_count(&fleet, "claimd-scheduler", i, "event=leader_won") >
           fleet_log_count(&fleet, "claimd-scheduler", i, "event=leader_lost");
}

void start_leader(size_t i)
{
    fleet_start_scheduler(&fleet, i);
    ck_assert_msg(WAIT_UNTIL(leads(i), SOON_US), "scheduler %zu does not lead", i);
}

void start_dying(size_t i, const char *probe)
{
    char path[SERVER_PATH_MAX];
    char config[SERVER_PATH_MAX + 16];
    char log[SERVER_PATH_MAX + 32];
    char armed[64];
    struct err err = {0};
    (void)snprintf(path, sizeof path, "%s/claimd-scheduler", getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(config, sizeof config, "%s/config.json", fleet.dir);
    (void)snprintf(log, sizeof log, "%s/claimd-scheduler-%zu.log", fleet.dir, i);
    (void)snprintf(armed, sizeof armed, "CLAIMD_PROBE=%s=kill", probe);
    const char *argv[] = {path, "--config", config, NULL};
    const char *env[] = {armed, "CLAIMD_SCHEDULER_HTTP_LISTEN=", NULL};
    ck_assert_msg(program_start(argv, env, log, &fleet.schedulers[i], &err) == STATUS_OK, "%s",
                  err.msg);
}

void await_death(size_t i)
{
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[i]), 128 + SIGKILL);
}

void world_start(const char *more)
{
    fleet_start(&fleet, &(struct fleet_options){.masters = 3, .time_scale = SCALE, .more = more});
}

void world_stop(void)
{
    fleet_stop(&fleet);
}
