/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload enqueue: measures how fast one client inserts jobs, one by one and in bulk, compared
 * with a table that has the same columns and indexes but no checks. No daemon runs. The results are
 * medians of ratios within a round, as in scraped.c. */
#include "base/clock.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/workloads.h"
#include "cluster/child.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define ROUNDS_MAX 20
#define BLOCK 100      /* jobs inserted one by one before the next way has its turn */
#define BULK_ROWS 1000 /* per statement */
#define COPY_US (600 * US_PER_S)
#define REAP_US (200 * US_PER_MS)
#define COPY_TEXT_MAX 4096
#define LIST_MAX ((size_t)1 << 20)

#define ARGS "{\"customer\": 4711, \"path\": \"/srv/2026/11/report.pdf\"}"
#define PLAIN "claimd_bench.plain"

static const unsigned number_type[] = {PG_INT8};
static const unsigned text_type[] = {PG_TEXT};
static const unsigned bool_type[] = {PG_BOOL};

static const struct pg_statement make_schema = {.name = "", .sql = "CREATE SCHEMA claimd_bench"};
static const struct pg_statement make_plain = {
    .name = "",
    .sql = "CREATE TABLE " PLAIN " (LIKE claimd.job INCLUDING DEFAULTS INCLUDING GENERATED"
           " INCLUDING IDENTITY INCLUDING INDEXES)"};
static const struct pg_statement empty = {.name = "", .sql = "TRUNCATE claimd.job, " PLAIN};
static const struct pg_statement checkpoint = {.name = "", .sql = "CHECKPOINT"};
static const struct pg_statement set_hungry = {.name = "set_hungry",
                                               .sql = "UPDATE claimd.cluster SET hungry = $1",
                                               .types = bool_type,
                                               .type_count = 1};
static const struct pg_statement counts = {
    .name = "counts",
    .sql = "SELECT (SELECT count(*) FROM claimd.job), (SELECT count(*) FROM " PLAIN ")"};

/* Insert one job each. The last one is the baseline of the others. */
enum { ENQUEUE, INSERT, NOTIFIED, SINGLE_PLAIN, SINGLES };
static const struct single {
    const char *name;
    struct pg_statement insert;
    bool is_hungry; /* the scheduler is idle and wants a NOTIFY */
} singles[SINGLES] = {
    [ENQUEUE] = {.name = "enqueue",
                 .insert = {.name = "enqueue_one",
                            .sql = "SELECT claimd.enqueue('noop', '" ARGS "')"}},
    [INSERT] = {.name = "insert",
                .insert = {.name = "insert_one",
                           .sql = "INSERT INTO claimd.job (kind, args) VALUES ('noop', '" ARGS "')"
                                  " RETURNING id"}},
    [NOTIFIED] = {.name = "insert_notified",
                  .insert = {.name = "insert_notified",
                             .sql = "INSERT INTO claimd.job (kind, args) VALUES ('noop', '" ARGS
                                    "') RETURNING id"},
                  .is_hungry = true},
    [SINGLE_PLAIN] = {.name = "plain_insert",
                      .insert = {.name = "plain_one",
                                 .sql = "INSERT INTO " PLAIN " (kind, args) VALUES ('noop', '" ARGS
                                        "') RETURNING id"}},
};

enum { SELECTED, MANY, COPIED, PLAIN_SELECTED, PLAIN_COPIED, BULKS };
static const struct bulk {
    const char *name;
    struct pg_statement insert; /* $1: number of rows, or a list; none: COPY by psql */
    const char *table;
    size_t plain; /* its baseline */
} bulks[BULKS] = {
    [SELECTED] = {.name = "insert_select",
                  .insert = {.name = "insert_select",
                             .sql = "INSERT INTO claimd.job (kind, args) SELECT 'noop', '" ARGS
                                    "' FROM generate_series(1, $1)",
                             .types = number_type,
                             .type_count = 1},
                  .table = "claimd.job",
                  .plain = PLAIN_SELECTED},
    [MANY] = {.name = "enqueue_many",
              .insert = {.name = "enqueue_many",
                         .sql = "SELECT count(*) FROM claimd.enqueue_many($1::jsonb)",
                         .types = text_type,
                         .type_count = 1},
              .table = "claimd.job",
              .plain = PLAIN_SELECTED},
    [COPIED] = {.name = "copy", .table = "claimd.job", .plain = PLAIN_COPIED},
    [PLAIN_SELECTED] = {.name = "plain_insert_select",
                        .insert = {.name = "plain_select",
                                   .sql = "INSERT INTO " PLAIN " (kind, args) SELECT 'noop', '" ARGS
                                          "' FROM generate_series(1, $1)",
                                   .types = number_type,
                                   .type_count = 1},
                        .table = PLAIN,
                        .plain = PLAIN_SELECTED},
    [PLAIN_COPIED] = {.name = "plain_copy", .table = PLAIN, .plain = PLAIN_COPIED},
};

/* The measurement of one way in one round. */
struct figure {
    int64_t rows;
    int64_t us;
    int64_t postgres_us; /* CPU */
};

struct figures {
    struct figure singles[SINGLES][ROUNDS_MAX];
    struct figure bulks[BULKS][ROUNDS_MAX];
};

/* ---- one by one ---- */

static enum status insert_block(struct cluster *c, const struct single *way, int64_t rows,
                                struct figure *sum, struct err *err)
{
    struct pg_param hungry = pg_param_bool(way->is_hungry);
    enum status st = db_query(&c->db, &set_hungry, &hungry, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t cpu_us = cluster_cpu(c).postgres_us;
    int64_t begun_us = clock_boot_us();
    for (int64_t i = 0; i < rows; i++) {
        st = db_query(&c->db, &way->insert, NULL, 1, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    sum->rows += rows;
    sum->us += c->db.done_us - begun_us;
    sum->postgres_us += cluster_cpu(c).postgres_us - cpu_us;
    return STATUS_OK;
}

/* Checks that both tables have exactly the expected number of rows. */
static enum status reconcile(struct cluster *c, int64_t jobs, int64_t plain, struct err *err)
{
    enum status st = db_query(&c->db, &counts, NULL, 2, err);
    if (st != STATUS_OK) {
        return st;
    }
    return c->db.row[0] == jobs && c->db.row[1] == plain
               ? STATUS_OK
               : err_fail(err, STATUS_CONFLICT,
                          "%" PRId64 " jobs and %" PRId64 " plain rows, wanted %" PRId64
                          " and %" PRId64,
                          c->db.row[0], c->db.row[1], jobs, plain);
}

static enum status start_over(struct cluster *c, struct err *err)
{
    enum status st = db_query(&c->db, &empty, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    return db_query(&c->db, &checkpoint, NULL, 0, err);
}

static enum status one_by_one(struct cluster *c, size_t round, int64_t rows, struct figures *all,
                              struct err *err)
{
    int64_t block = rows < BLOCK ? rows : BLOCK;
    enum status st = start_over(c, err);
    for (int64_t n = 0; n < rows / block && st == STATUS_OK; n++) {
        for (size_t i = 0; i < SINGLES && st == STATUS_OK; i++) {
            size_t at = ((size_t)n + round + i) % SINGLES;
            st = insert_block(c, &singles[at], block, &all->singles[at][round], err);
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    int64_t plain = all->singles[SINGLE_PLAIN][round].rows;
    return reconcile(c, (SINGLES - 1) * plain, plain, err);
}

/* ---- in bulk ---- */

static enum status write_rows(const struct cluster *c, int64_t rows, struct err *err)
{
    char path[SERVER_PATH_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/rows", c->dir);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open %s", path);
    }
    int failed = 0;
    for (int64_t i = 0; i < rows; i++) {
        failed |= fputs("noop\t" ARGS "\n", f) < 0;
    }
    failed |= fchmod(fileno(f), 0644) != 0;
    failed |= fclose(f) != 0;
    return failed == 0 ? STATUS_OK : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}

/* Copies by psql, since our own sessions are in pipeline mode, which has no COPY. psql reports how
 * long it took. */
static enum status copy_rows(const struct cluster *c, const char *table, int64_t *ret_us,
                             struct err *err)
{
    char psql[SERVER_PATH_MAX];
    char copy[2 * SERVER_PATH_MAX];
    autobuf struct buf out = BUF_INIT(COPY_TEXT_MAX);
    int code = 0;
    enum status st = child_find_program("psql", psql, sizeof psql, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(copy, sizeof copy, "\\copy %s (kind, args) FROM '%s/rows'", table, c->dir);
    const char *const argv[] = {psql, "-Xq",       "-v", "ON_ERROR_STOP=1",
                                "-d", c->conninfo, "-c", "\\timing on",
                                "-c", copy,        NULL};
    static const char *const env[] = {"LC_ALL=C", NULL};
    st = program_run(argv, env, COPY_US, &out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *at = out.len > 0 ? strstr(buf_at(&out), "Time: ") : NULL;
    if (code != 0 || at == NULL) {
        return err_fail(err, STATUS_INTERNAL, "psql ended with %d: %s", code,
                        out.len > 0 ? buf_at(&out) : "");
    }
    *ret_us = (int64_t)(strtod(at + strlen("Time: "), NULL) * (double)US_PER_MS);
    return STATUS_OK;
}

/* Writes a JSON array of BULK_ROWS jobs. */
static enum status make_list(struct buf *list, struct err *err)
{
    enum status st = STATUS_OK;
    for (int i = 0; i < BULK_ROWS && st == STATUS_OK; i++) {
        st =
            buf_printf(list, err, "%s{\"kind\": \"noop\", \"args\": %s}", i == 0 ? "[" : ",", ARGS);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(list, "]", err);
}

static enum status statements(struct cluster *c, const struct pg_statement *insert, int64_t rows,
                              int64_t *ret_us, struct err *err)
{
    char storage[8];
    autobuf struct buf list = BUF_INIT(LIST_MAX);
    enum status st = make_list(&list, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct pg_param param = insert->types[0] == PG_TEXT ? pg_param_text(buf_at(&list))
                                                        : pg_param_i64(BULK_ROWS, storage);
    int64_t begun_us = clock_boot_us();
    for (int64_t done = 0; done < rows; done += BULK_ROWS) {
        st = db_query(&c->db, insert, &param, 0, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    *ret_us = c->db.done_us - begun_us;
    return STATUS_OK;
}

static enum status in_bulk(struct cluster *c, const struct bulk *way, int64_t rows,
                           struct figure *ret, struct err *err)
{
    enum status st = start_over(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t cpu_us = cluster_cpu(c).postgres_us;
    st = way->insert.sql != NULL ? statements(c, &way->insert, rows, &ret->us, err)
                                 : copy_rows(c, way->table, &ret->us, err);
    if (st != STATUS_OK) {
        err_prefix(err, "%s", way->name);
        return st;
    }
    /* Waits until the session of psql has ended, since its CPU time is counted only then. */
    st = cluster_wait(c, REAP_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret->rows = rows;
    ret->postgres_us = cluster_cpu(c).postgres_us - cpu_us;
    bool is_plain = strcmp(way->table, PLAIN) == 0;
    return reconcile(c, is_plain ? 0 : rows, is_plain ? rows : 0, err);
}

static enum status run_round(struct cluster *c, size_t round, const struct bench_options *options,
                             int64_t bulk_rows, struct figures *all, struct err *err)
{
    enum status st = one_by_one(c, round, options->samples, all, err);
    for (size_t i = 0; i < BULKS && st == STATUS_OK; i++) {
        size_t at = (i + round) % BULKS;
        st = in_bulk(c, &bulks[at], bulk_rows, &all->bulks[at][round], err);
    }
    return st;
}

/* ---- results ---- */

static double rate(const struct figure *f)
{
    return 1e6 * (double)f->rows / (double)(f->us + 1);
}

static double median_rate(const struct figure *rounds, size_t count)
{
    double rates[ROUNDS_MAX];
    for (size_t i = 0; i < count; i++) {
        rates[i] = rate(&rounds[i]);
    }
    return figures_median(rates, count);
}

/* Reports one way; returns the median of its ratios. */
static double report_way(json_t *list, const char *name, const struct figure *rounds,
                         const struct figure *plain, size_t count)
{
    double ratios[ROUNDS_MAX];
    double cpus[ROUNDS_MAX];
    for (size_t i = 0; i < count; i++) {
        ratios[i] = rate(&rounds[i]) / rate(&plain[i]);
        cpus[i] = (double)rounds[i].postgres_us / (double)rounds[i].rows;
    }
    double ratio = figures_median(ratios, count);
    (void)json_array_append_new(list,
                                json_pack("{s:s, s:f, s:f, s:f}", "way", name, "jobs_per_s",
                                          median_rate(rounds, count), "postgres_us_per_job",
                                          figures_median(cpus, count), "ratio_to_plain", ratio));
    return ratio;
}

static void report(json_t *result, const struct figures *all, size_t rounds)
{
    double ratios[SINGLES];
    json_t *one_by_one_list = json_array();
    json_t *bulk_list = json_array();
    for (size_t i = 0; i < SINGLES; i++) {
        ratios[i] = report_way(one_by_one_list, singles[i].name, all->singles[i],
                               all->singles[SINGLE_PLAIN], rounds);
    }
    for (size_t i = 0; i < BULKS; i++) {
        (void)report_way(bulk_list, bulks[i].name, all->bulks[i], all->bulks[bulks[i].plain],
                         rounds);
    }
    (void)json_object_set_new(result, "one_by_one", one_by_one_list);
    (void)json_object_set_new(result, "bulk", bulk_list);
    goal_add_ratio(result, GOAL_ENQUEUE_ONE, median_rate(all->singles[ENQUEUE], rounds),
                   ratios[ENQUEUE]);
    goal_add_ratio(result, GOAL_INSERT_ONE, median_rate(all->singles[INSERT], rounds),
                   ratios[INSERT]);
}

static void tell(const struct figures *all, size_t round)
{
    for (size_t i = 0; i < SINGLES; i++) {
        (void)fprintf(stderr, "bench: round %zu, %s: %.0f/s\n", round + 1, singles[i].name,
                      rate(&all->singles[i][round]));
    }
    for (size_t i = 0; i < BULKS; i++) {
        (void)fprintf(stderr, "bench: round %zu, %s: %.0f/s\n", round + 1, bulks[i].name,
                      rate(&all->bulks[i][round]));
    }
}

enum status enqueue_run(struct cluster *c, const struct bench_options *options, json_t *result,
                        struct err *err)
{
    static struct figures all;
    int64_t bulk_rows = (options->jobs + BULK_ROWS - 1) / BULK_ROWS * BULK_ROWS;
    (void)json_object_set_new(result, "samples", json_integer(options->samples));
    (void)json_object_set_new(result, "jobs", json_integer(bulk_rows));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    enum status st = db_query(&c->db, &make_schema, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &make_plain, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = write_rows(c, bulk_rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < (size_t)options->rounds; i++) {
        st = run_round(c, i, options, bulk_rows, &all, err);
        if (st != STATUS_OK) {
            return st;
        }
        tell(&all, i);
    }
    report(result, &all, (size_t)options->rounds);
    return STATUS_OK;
}
