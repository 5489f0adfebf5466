/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload strategies: common ways to use a plain table of jobs as a queue. No-op jobs, no locks,
 * no history: a row is marked when its job is done. */
#include "base/rand.h"
#include "bench/crew.h"
#include "bench/figures.h"
#include "bench/raw.h"
#include "bench/workloads.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#define BATCH 100
#define CLIENTS_IN_P1 4
#define ROUNDS_MAX 20

static const unsigned count_type[] = {PG_INT8};

enum count { RUNS };

/* How often each job was run, by all clients. */
struct ledger {
    int64_t jobs;
    unsigned *runs; /* indexed by id, from 1 */
};

struct client {
    PGconn *pg;
    struct ledger ledger;
    struct crew_member *self;
    struct rand rand;
    int64_t ids[BATCH];
    size_t count;
    struct buf array;
};

/* ---- one client's statements ---- */

static enum status exec(struct client *client, const char *sql, struct err *err)
{
    PGresult *result = PQexec(client->pg, sql);
    enum status st = raw_pg_check(client->pg, result, PGRES_COMMAND_OK, err);
    PQclear(result);
    return st;
}

/* Reads the ids that a statement returns. */
static enum status ask(struct client *client, const char *name, struct err *err)
{
    PGresult *result = PQexecPrepared(client->pg, name, 0, NULL, NULL, NULL, 1);
    enum status st = raw_pg_check(client->pg, result, PGRES_TUPLES_OK, err);
    client->count = 0;
    for (int i = 0; st == STATUS_OK && i < PQntuples(result) && i < BATCH; i++) {
        client->ids[client->count++] = raw_pg_i64(result, i, 0);
    }
    PQclear(result);
    return st;
}

static enum status tell(struct client *client, const char *name, struct pg_param param,
                        struct err *err)
{
    const char *value = param.bytes;
    const int format = 1;
    PGresult *result = PQexecPrepared(client->pg, name, 1, &value, &param.len, &format, 1);
    enum status st = raw_pg_check(client->pg, result, PGRES_COMMAND_OK, err);
    PQclear(result);
    return st;
}

static enum status tell_one(struct client *client, const char *name, int64_t id, struct err *err)
{
    char storage[8];
    return tell(client, name, pg_param_i64(id, storage), err);
}

static void run(struct client *client, int64_t id)
{
    assert(id >= 1 && id <= client->ledger.jobs);
    (void)__atomic_fetch_add(&client->ledger.runs[id], 1, __ATOMIC_RELAXED);
    client->self->counts[RUNS]++;
}

/* ---- the strategies: one turn each; `count` is 0 after the turn if no job is left ---- */

/* Reads some jobs without a lock and tries one of them, hoping that other clients choose others. */
static enum status pick_at_random(struct client *client, struct err *err)
{
    enum status st = ask(client, "look", err);
    if (st != STATUS_OK || client->count == 0) {
        return st;
    }
    int64_t id = client->ids[rand_below(&client->rand, (int64_t)client->count)];
    run(client, id);
    return tell_one(client, "done", id, err);
}

static enum status claim_one(struct client *client, const char *name, struct err *err)
{
    enum status st = exec(client, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ask(client, name, err);
    if (st == STATUS_OK && client->count > 0) {
        st = tell_one(client, "running", client->ids[0], err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return exec(client, "COMMIT", err);
}

/* If another client takes the row first, the statement waits for that client and then returns no
 * row, although other rows are free: only an empty table is the end. */
static enum status for_update(struct client *client, struct err *err)
{
    enum status st = claim_one(client, "lock_first", err);
    if (st != STATUS_OK) {
        return st;
    }
    if (client->count == 0) {
        return ask(client, "look", err);
    }
    run(client, client->ids[0]);
    return tell_one(client, "done", client->ids[0], err);
}

static enum status skip_locked(struct client *client, struct err *err)
{
    enum status st = claim_one(client, "lock_free", err);
    if (st != STATUS_OK || client->count == 0) {
        return st;
    }
    run(client, client->ids[0]);
    return tell_one(client, "done", client->ids[0], err);
}

static enum status skip_locked_batched(struct client *client, struct err *err)
{
    enum status st = ask(client, "claim_batch", err);
    if (st != STATUS_OK || client->count == 0) {
        return st;
    }
    for (size_t i = 0; i < client->count; i++) {
        run(client, client->ids[i]);
    }
    buf_reset(&client->array);
    st = pg_array_i64(&client->array, client->ids, client->count, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tell(client, "batch_done", pg_param_buf(&client->array), err);
}

static const struct strategy {
    const char *name;
    enum status (*turn)(struct client *client, struct err *err);
    int64_t part; /* fraction of the requested jobs, so that each takes a second or two */
    bool may_run_twice;
} strategies[] = {
    {"random pick", pick_at_random, 50, true},
    {"FOR UPDATE", for_update, 60, false},
    {"SKIP LOCKED", skip_locked, 40, false},
    {"SKIP LOCKED, batches of 100", skip_locked_batched, 2, false},
};
#define STRATEGIES (sizeof strategies / sizeof strategies[0])
enum { BATCHED = STRATEGIES - 1 };

static const struct {
    const char *name;
    const char *sql;
} statements[] = {
    {"look", "SELECT id FROM strategy.job WHERE state = 0 ORDER BY id LIMIT 100"},
    {"lock_first", "SELECT id FROM strategy.job WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE"},
    {"lock_free", "SELECT id FROM strategy.job WHERE state = 0 ORDER BY id LIMIT 1"
                  " FOR UPDATE SKIP LOCKED"},
    {"running", "UPDATE strategy.job SET state = 1, attempt = attempt + 1, started_at = now()"
                " WHERE id = $1::bigint"},
    {"done", "UPDATE strategy.job SET state = 2, finished_at = now() WHERE id = $1::bigint"},
    {"claim_batch", "UPDATE strategy.job SET state = 1, attempt = attempt + 1, started_at = now()"
                    " WHERE id = ANY (ARRAY (SELECT id FROM strategy.job WHERE state = 0"
                    " ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)) RETURNING id, args"},
    {"batch_done", "UPDATE strategy.job SET state = 2, finished_at = now()"
                   " WHERE id = ANY ($1::bigint[])"},
};

/* ---- the process of a client ---- */

struct cell {
    const struct cluster *cluster;
    const struct strategy *strategy;
    struct ledger ledger;
};

static enum status prepare(struct client *client, const char *conninfo, struct err *err)
{
    enum status st = raw_pg_open(conninfo, &client->pg, err);
    for (size_t i = 0; i < ARRAY_COUNT(statements) && st == STATUS_OK; i++) {
        st = raw_pg_prepare(client->pg, statements[i].name, statements[i].sql, err);
    }
    return st;
}

static enum status work(const void *ctx, struct crew_member *self, struct err *err)
{
    const struct cell *cell = ctx;
    struct client client = {
        .ledger = cell->ledger, .self = self, .array = BUF_INIT((size_t)16 << 10)};
    rand_seed(&client.rand, (uint64_t)self->index + 1);
    enum status st = prepare(&client, cell->cluster->conninfo, err);
    if (st == STATUS_OK) {
        st = crew_ready(self, err);
    }
    do {
        if (st == STATUS_OK) {
            st = cell->strategy->turn(&client, err);
        }
    } while (st == STATUS_OK && client.count > 0);
    if (st == STATUS_OK) {
        st = crew_done(self, err);
    }
    buf_release(&client.array);
    raw_pg_close(client.pg);
    return st;
}

/* ---- one cell of the table ---- */

struct speed {
    double jobs_per_s;
    double cpu_us_per_job;
    double duplicates; /* repeated runs of jobs */
    double jobs;
};

#define STATEMENT(text)           \
    {                             \
        .name = "", .sql = (text) \
    }
static const struct pg_statement create[] = {
    STATEMENT("DROP SCHEMA IF EXISTS strategy CASCADE"),
    STATEMENT("CREATE SCHEMA strategy"),
    STATEMENT("CREATE TABLE strategy.job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
              " state smallint NOT NULL DEFAULT 0, attempt integer NOT NULL DEFAULT 0, args text"
              " NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz,"
              " finished_at timestamptz)"),
    STATEMENT("CREATE INDEX ON strategy.job (id) WHERE state = 0"),
};
static const struct pg_statement insert_jobs = {
    .name = "",
    .sql = "INSERT INTO strategy.job (args) SELECT '{\"to\":\"user@example.com\",\"k\":\"xx\"}'"
           " FROM generate_series(1, $1)",
    .types = count_type,
    .type_count = 1};
static const struct pg_statement settle[] = {STATEMENT("VACUUM ANALYZE strategy.job"),
                                             STATEMENT("CHECKPOINT")};
static const struct pg_statement open_jobs =
    STATEMENT("SELECT count(*) FROM strategy.job WHERE state <> 2");

static enum status query_all(struct cluster *c, const struct pg_statement *all, size_t count,
                             struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t i = 0; i < count && st == STATUS_OK; i++) {
        st = db_query(&c->db, &all[i], NULL, 0, err);
    }
    return st;
}

static enum status fill(struct cluster *c, int64_t jobs, struct err *err)
{
    char storage[8];
    struct pg_param count = pg_param_i64(jobs, storage);
    enum status st = query_all(c, create, ARRAY_COUNT(create), err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &insert_jobs, &count, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    return query_all(c, settle, ARRAY_COUNT(settle), err);
}

/* Checks that every job was run, and none twice if the strategy rules that out. */
static enum status reconcile(struct cluster *c, const struct cell *cell, int64_t runs,
                             struct speed *ret, struct err *err)
{
    int64_t missed = 0;
    int64_t told = 0;
    for (int64_t id = 1; id <= cell->ledger.jobs; id++) {
        missed += cell->ledger.runs[id] == 0;
        told += cell->ledger.runs[id];
    }
    enum status st = db_query(&c->db, &open_jobs, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t duplicates = told - cell->ledger.jobs;
    if (missed != 0 || told != runs || c->db.row[0] != 0 ||
        (duplicates != 0 && !cell->strategy->may_run_twice)) {
        return err_fail(err, STATUS_CONFLICT,
                        "%s: %" PRId64 " jobs were not run, %" PRId64 " are open, %" PRId64
                        " ran again",
                        cell->strategy->name, missed, c->db.row[0], duplicates);
    }
    ret->duplicates = (double)duplicates;
    return STATUS_OK;
}

static enum status measure_with(struct cluster *c, const struct cell *cell, size_t clients,
                                struct speed *ret, struct err *err)
{
    struct crew_result done = {0};
    double jobs = (double)cell->ledger.jobs;
    enum status st = fill(c, cell->ledger.jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = crew_run(c, clients, work, cell, &done, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct speed){.jobs = jobs,
                          .jobs_per_s = 1e6 * jobs / (double)(done.us + 1),
                          .cpu_us_per_job = (double)(done.postgres_us + done.cpu_us) / jobs};
    return reconcile(c, cell, done.counts[RUNS], ret, err);
}

static enum status measure(struct cluster *c, const struct strategy *strategy, size_t clients,
                           int64_t jobs, struct speed *ret, struct err *err)
{
    struct cell cell = {.cluster = c, .strategy = strategy};
    cell.ledger.jobs = jobs / strategy->part + 1;
    size_t size = ((size_t)cell.ledger.jobs + 1) * sizeof *cell.ledger.runs;
    void *runs = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (runs == MAP_FAILED) {
        return err_fail_sys(err, STATUS_NOMEM, errno, "ledger");
    }
    cell.ledger.runs = runs;
    enum status st = measure_with(c, &cell, clients, ret, err);
    (void)munmap(runs, size);
    if (st != STATUS_OK) {
        return st;
    }
    (void)fprintf(stderr, "bench: %s, %zu clients: %.0f jobs/s, per job %.0f us, %.0f ran again\n",
                  strategy->name, clients, ret->jobs_per_s, ret->cpu_us_per_job, ret->duplicates);
    return STATUS_OK;
}

/* ---- the workloads ---- */

static const size_t client_counts[] = {1, 4, 16, 64};
#define COUNTS (sizeof client_counts / sizeof client_counts[0])
#define CELLS (STRATEGIES * COUNTS)

static void add_cell(json_t *list, struct speed speeds[][CELLS], size_t rounds, size_t cell)
{
    double rates[ROUNDS_MAX];
    double cpus[ROUNDS_MAX];
    double again[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        const struct speed *s = &speeds[i][cell];
        rates[i] = s->jobs_per_s;
        cpus[i] = s->cpu_us_per_job;
        again[i] = 100 * s->duplicates / s->jobs;
    }
    double rate = figures_median(rates, rounds);
    double percent = figures_median(again, rounds);
    (void)json_array_append_new(
        list,
        json_pack("{s:s, s:I, s:f, s:f, s:f}", "strategy", strategies[cell / COUNTS].name,
                  "clients", (json_int_t)client_counts[cell % COUNTS], "jobs_per_s", rate,
                  "cpu_us_per_job", figures_median(cpus, rounds), "duplicates_percent", percent));
    if (cell % COUNTS == 0) {
        (void)fprintf(stderr, "\n%-28s", strategies[cell / COUNTS].name);
    }
    (void)fprintf(stderr, "%8.0f (%.2f)", rate, 1 + percent / 100);
}

static void add_table(json_t *result, struct speed speeds[][CELLS], size_t rounds)
{
    json_t *list = json_array();
    (void)fprintf(stderr, "\n%-28s", "JOBS/S (RUNS PER JOB), BY");
    for (size_t i = 0; i < COUNTS; i++) {
        (void)fprintf(stderr, "%7zu CLIENTS", client_counts[i]);
    }
    for (size_t i = 0; i < CELLS; i++) {
        add_cell(list, speeds, rounds, i);
    }
    (void)fputc('\n', stderr);
    (void)json_object_set_new(result, "strategies", list);
}

enum status strategies_run(struct cluster *c, const struct bench_options *options, json_t *result,
                           struct err *err)
{
    static struct speed speeds[ROUNDS_MAX][CELLS];
    size_t rounds = (size_t)options->rounds;
    for (size_t n = 0; n < rounds * CELLS; n++) {
        size_t cell = n % CELLS;
        enum status st = measure(c, &strategies[cell / COUNTS], client_counts[cell % COUNTS],
                                 options->jobs, &speeds[n / CELLS][cell], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    add_table(result, speeds, rounds);
    return STATUS_OK;
}

enum status skip_locked_run(struct cluster *c, const struct bench_options *options, json_t *result,
                            struct err *err)
{
    struct speed speed = {0};
    enum status st = measure(c, &strategies[BATCHED], CLIENTS_IN_P1, options->jobs, &speed, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)json_object_set_new(result, "jobs_per_s", json_real(speed.jobs_per_s));
    (void)json_object_set_new(result, "cpu_us_per_job",
                              json_pack("{s:f}", "all", speed.cpu_us_per_job));
    return STATUS_OK;
}
