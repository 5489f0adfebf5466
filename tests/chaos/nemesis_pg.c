/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of PostgreSQL. */
#include "base/clock.h"
#include "chaos/host.h"
#include "chaos/nemesis.h"

#include <signal.h>
#include <stdio.h>

#define STATEMENT_US (2 * US_PER_S)
#define STORM_MAX_MS 15000

/* ---- the server ---- */

static bool kill_server(struct world *w, struct nemesis *n, int64_t away_ms)
{
    struct pg_server *pg = world_primary(w);
    char detail[64];
    if (pg->pid <= 0 || w->pg_state.is_starting) {
        return false;
    }
    (void)snprintf(detail, sizeof detail, "back after %lld ms", (long long)away_ms);
    nemesis_target(n, detail, "pg%zu", w->lead);
    world_take_pg(w, world_scaled(w, away_ms * US_PER_MS));
    return true;
}

static bool restart(struct world *w, struct nemesis *n)
{
    struct pg_server *pg = world_primary(w);
    if (rand_below(&n->rand, 2) == 0 || pg->pid <= 0 || w->pg_state.is_starting) {
        return kill_server(w, n, nemesis_between(n, 0, 3000));
    }
    nemesis_target(n, "immediate shutdown", "pg%zu", w->lead);
    return kill(pg->pid, SIGQUIT) == 0; /* world_turn() starts it again */
}

static bool away(struct world *w, struct nemesis *n)
{
    return kill_server(w, n, nemesis_between(n, 20000, 60000));
}

static void go_on(struct world *w, struct nemesis *n)
{
    w->is_pg_stopped = false;
    for (size_t i = 0; i < n->pid_count; i++) {
        (void)kill(n->pids[i], SIGCONT);
    }
    n->pid_count = 0;
}

static bool stop(struct world *w, struct nemesis *n)
{
    const struct pg_server *pg = world_primary(w);
    if (pg->pid <= 0 || w->pg_state.is_starting || w->is_failing_over ||
        kill(pg->pid, SIGSTOP) != 0) {
        return false;
    }
    nemesis_target(n, "", "pg%zu", w->lead);
    w->is_pg_stopped = true;
    n->pids[0] = pg->pid;
    n->pid_count = 1 + program_children(pg->pid, n->pids + 1, ARRAY_COUNT(n->pids) - 1);
    for (size_t i = 1; i < n->pid_count; i++) {
        (void)kill(n->pids[i], SIGSTOP);
    }
    return true;
}

/* One step in four goes back by days. None goes forward by days: a job that is delayed while the
 * clock is ahead would not be due for days after the clock has returned. */
#define DAYS_EVERY 4
#define DAYS_MAX 40
#define DAY_MS (INT64_C(86400) * 1000)

static bool step_clock(struct world *w, struct nemesis *n)
{
    static const int64_t steps_ms[] = {-60000, 60000, -10000, 10000, -2000, 2000};
    bool is_by_days = rand_below(&n->rand, DAYS_EVERY) == 0;
    int64_t ms = is_by_days ? -DAY_MS * (1 + rand_below(&n->rand, DAYS_MAX))
                            : steps_ms[rand_below(&n->rand, ARRAY_COUNT(steps_ms))];
    char detail[64];
    (void)snprintf(detail, sizeof detail, "%+lld ms", (long long)ms);
    nemesis_target(n, detail, "pg");
    world_set_clock(w, WORLD_REDIS, is_by_days ? ms * US_PER_MS : world_scaled(w, ms * US_PER_MS));
    return true;
}

static void reset_clock(struct world *w, struct nemesis *n)
{
    (void)n;
    world_set_clock(w, WORLD_REDIS, 0);
}

/* ---- foreign sessions ---- */

/* Runs `sql` in a transaction that stays open. */
static bool hold(struct world *w, struct nemesis *n, const char *sql)
{
    struct err why = {0};
    struct session *s = &n->sessions[0];
    session_init(s, w->conninfo, STATEMENT_US);
    if (session_do(s, &why, "BEGIN; SET LOCAL lock_timeout = '1s'; %s", sql) == STATUS_OK) {
        return true;
    }
    session_close(s);
    return false;
}

static void let_go(struct world *w, struct nemesis *n)
{
    struct err why = {0};
    (void)w;
    if (session_is_open(&n->sessions[0]) &&
        session_do(&n->sessions[0], &why, "ROLLBACK") != STATUS_OK) {
        why = (struct err){0}; /* it ends with the session as well */
    }
    session_close(&n->sessions[0]);
}

static bool lock_table(struct world *w, struct nemesis *n)
{
    static const char *const tables[] = {"job",         "job_history", "worker", "cluster",
                                         "job_attempt", "kind",        "job"};
    static const char *const modes[] = {"ACCESS EXCLUSIVE", "SHARE ROW EXCLUSIVE"};
    const char *table = tables[rand_below(&n->rand, ARRAY_COUNT(tables))];
    const char *mode = modes[rand_below(&n->rand, ARRAY_COUNT(modes))];
    char sql[128];
    (void)snprintf(sql, sizeof sql, "LOCK TABLE claimd.%s IN %s MODE", table, mode);
    nemesis_target(n, mode, "%s", table);
    return hold(w, n, sql);
}

static bool lock_rows(struct world *w, struct nemesis *n)
{
    nemesis_target(n, "", "job");
    return hold(
        w, n, "SELECT count(*) FROM (SELECT 1 FROM claimd.job LIMIT 40 FOR UPDATE SKIP LOCKED) x");
}

static bool snapshot(struct world *w, struct nemesis *n)
{
    nemesis_target(n, "", "pg");
    return hold(w, n,
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM claimd.job;"
                " SELECT txid_current()");
}

/* Takes the lock of the table repeatedly, for a little longer than lock_timeout. The statement ends
 * by itself, since it may be impossible to end it from outside. It waits only briefly for the lock,
 * since all other sessions would queue behind it. */
static bool lock_storm(struct world *w, struct nemesis *n)
{
    struct err why = {0};
    struct session *s = &n->sessions[0];
    nemesis_target(n, "", "job");
    session_init(s, w->conninfo, STATEMENT_US);
    enum status st = session_do(s, &why, "SET lock_timeout = '100ms'; SET statement_timeout = %lld",
                                (long long)world_scaled(w, STORM_MAX_MS));
    return st == STATUS_OK &&
           session_send(s,
                        "DO $$ BEGIN FOR i IN 1..60 LOOP"
                        " BEGIN LOCK TABLE claimd.job IN SHARE ROW EXCLUSIVE MODE;"
                        " PERFORM pg_sleep(0.1 + random() * 0.25);"
                        " EXCEPTION WHEN lock_not_available THEN NULL; END; COMMIT;"
                        " PERFORM pg_sleep(random() * 0.1); END LOOP; END $$",
                        &why) == STATUS_OK;
}

static void storm_ends(struct world *w, struct nemesis *n)
{
    struct err why = {0};
    struct session *s = &n->sessions[1];
    session_close(&n->sessions[0]); /* its backend notices at its next step at the earliest */
    session_init(s, w->conninfo, STATEMENT_US);
    if (session_do(
            s, &why,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE 'DO $$ BEGIN FOR i IN 1..60%%' AND pid <> pg_backend_pid()") !=
        STATUS_OK) {
        why = (struct err){0};
    }
    session_close(s);
}

static bool cut_sessions(struct world *w, struct nemesis *n)
{
    struct err why = {0};
    struct session *s = &n->sessions[0];
    bool is_all = rand_below(&n->rand, 4) == 0;
    nemesis_target(n, is_all ? "all" : "some", "pg");
    session_init(s, w->conninfo, STATEMENT_US);
    enum status st = session_do(s, &why,
                                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                " WHERE usename LIKE 'chaos_%%' AND random() < %s",
                                is_all ? "2" : "0.4");
    session_close(s);
    return st == STATUS_OK;
}

const struct nemesis_def nemesis_pg_defs[] = {
    {"pg_restart",
     "kill -9 or immediate shutdown of PostgreSQL, which is restarted at once or soon",
     COUNT_RESTART, TRAIT_PG_GONE, 100000, 0, 0, restart, NULL},
    {"pg_away", "PostgreSQL is killed and down for up to 60 s", COUNT_RESTART, TRAIT_PG_GONE,
     500000, 0, 0, away, NULL},
    {"pg_stop", "SIGSTOP of all processes of PostgreSQL", COUNT_OTHER, TRAIT_PG_STOPPED, 120000,
     1000, 20000, stop, go_on},
    {"pg_clock", "PostgreSQL's clock is stepped by up to 60 s or back by up to 40 days, and back",
     COUNT_CLOCK, TRAIT_PG_CLOCK, 150000, 5000, 60000, step_clock, reset_clock},
    {"pg_lock_table", "another session locks a table", COUNT_OTHER, 0, 40000, 500, 12000,
     lock_table, let_go},
    {"pg_lock_rows", "another session locks rows of jobs", COUNT_OTHER, 0, 30000, 500, 12000,
     lock_rows, let_go},
    {"pg_lock_storm", "a table is locked repeatedly, for a little longer than lock_timeout",
     COUNT_OTHER, 0, 120000, 3000, 15000, lock_storm, storm_ends},
    {"pg_snapshot", "a long transaction keeps its snapshot", COUNT_OTHER, TRAIT_SPARES_RESCUES,
     60000, 5000, 60000, snapshot, let_go},
    {"pg_cut", "the sessions of some or all daemons are terminated", COUNT_OTHER, 0, 20000, 0, 0,
     cut_sessions, NULL},
};
const size_t nemesis_pg_count = ARRAY_COUNT(nemesis_pg_defs);
