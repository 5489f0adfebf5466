/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/load.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/rand.h"
#include "chaos/load_process.h"
#include "chaos/outages.h"
#include "chaos/ties.h"

#include <poll.h>
#include <stdio.h>

#define TICK_MS 50
#define BACKLOG_PER_SLOT 20
#define STATEMENT_US (5 * US_PER_S)
#define RATE_REAL 10.0 /* jobs per second */
#define RATE_SCALED 20.0
#define BATCH_MAX 200
#define RECENT_MAX 256
#define SQL_MAX ((size_t)1 << 20)
#define BURST_US (20 * US_PER_S)
#define SLOW_US (12 * US_PER_S)
#define SLOW_TASKS 4

struct batch {
    struct task tasks[BATCH_MAX];
    int count;
};

struct load {
    struct world *world;
    struct journal acked;
    struct session sql;
    struct session slow_sql;
    struct rand rand;
    char ledger[SERVER_PATH_MAX + 64];
    int64_t next_n;
    double credit; /* jobs that are due */
    double rate;
    int64_t look_us; /* when the backlog is read next */
    bool is_too_much;
    int64_t burst_us;
    int64_t recent[RECENT_MAX];
    size_t recent_count;
    struct ties ties;
    bool has_slow;
    struct batch slow;
    json_t *slow_ids; /* ids of an open transaction; NULL = there is none */
    int64_t slow_us;  /* when it commits, or when the next one begins */
};

/* ---- inserts ---- */

static void draw_batch(struct load *l, int count, struct batch *ret)
{
    ret->count = count < BATCH_MAX ? count : BATCH_MAX;
    for (int i = 0; i < ret->count; i++) {
        load_draw(&l->rand, l->world->options, l->next_n++, &ret->tasks[i]);
    }
}

static enum status put_args(struct buf *sql, const struct load *l, const struct task *t,
                            struct err *err)
{
    enum status st = buf_printf(sql, err,
                                "'{\"n\": %lld, \"path\": \"%s\", \"do\": \"%s\", \"ms\": %lld, "
                                "\"until\": %d, \"deaf\": %s}'"
                                "::jsonb",
                                (long long)t->n, l->ledger, t->does, (long long)t->ms, t->until,
                                t->is_deaf ? "true" : "false");
    if (st != STATUS_OK || t->pad_bytes == 0) {
        return st;
    }
    return buf_printf(sql, err, " || jsonb_build_object('pad', repeat('x', %d))", t->pad_bytes);
}

static enum status put_task(struct buf *sql, const struct load *l, const struct task *t,
                            const char *before, struct err *err)
{
    enum status st = buf_printf(sql, err, "%s('%s', ", before, t->kind);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_args(sql, l, t, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_printf(sql, err, ", '%s', %d, %d, clock_timestamp() + %lld * interval '1 ms')",
                      t->queue, t->priority, t->share, (long long)t->delay_ms);
}

static enum status put_insert(struct buf *sql, const struct load *l, const struct batch *b,
                              struct err *err)
{
    enum status st = buf_append_text(
        sql, "INSERT INTO claimd.job (kind, args, queue, priority, share, scheduled_at) VALUES ",
        err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < b->count; i++) {
        st = put_task(sql, l, &b->tasks[i], i == 0 ? "" : ", ", err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return buf_append_text(sql, " RETURNING id", err);
}

/* Runs one statement, which returns the ids in the order of the tasks. */
static enum status insert(struct load *l, struct session *on, const struct batch *b, json_t *ids,
                          struct err *err)
{
    autobuf struct buf sql = BUF_INIT(SQL_MAX);
    PGresult *r = NULL;
    enum status st = put_insert(&sql, l, b, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = session_run(on, buf_at(&sql), NULL, 0, &r, err);
    for (int i = 0; st == STATUS_OK && i < PQntuples(r); i++) {
        (void)json_array_append_new(ids, json_integer(strtoll(PQgetvalue(r, i, 0), NULL, 10)));
    }
    PQclear(r);
    return st;
}

static void remember(struct load *l, int64_t id)
{
    l->recent[l->recent_count++ % RECENT_MAX] = id;
}

static void note_acked(struct load *l, const struct batch *b, const json_t *ids)
{
    for (int i = 0; i < b->count; i++) {
        const struct task *t = &b->tasks[i];
        json_int_t id = json_integer_value(json_array_get(ids, (size_t)i));
        journal_write(&l->acked,
                      json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:I}", "op", "enqueue", "ph", "ok",
                                "job", id, "n", (json_int_t)t->n, "kind", t->kind, "expect",
                                t->expect, "delay_ms", (json_int_t)t->delay_ms));
        remember(l, id);
    }
}

/* It is unknown whether these jobs exist: those that do must run, and it is no loss if they do
 * not. */
static void note_unknown(struct load *l, const struct batch *b)
{
    for (int i = 0; i < b->count; i++) {
        journal_write(&l->acked, json_pack("{s:s, s:s, s:I, s:s, s:s}", "op", "enqueue", "ph",
                                           "info", "n", (json_int_t)b->tasks[i].n, "kind",
                                           b->tasks[i].kind, "expect", b->tasks[i].expect));
    }
}

static void put_in(struct load *l, const struct batch *b)
{
    struct err why = {0};
    json_t *ids = json_array();
    enum status st = insert(l, &l->sql, b, ids, &why);
    if (st == STATUS_OK) {
        note_acked(l, b, ids);
    } else if (st == STATUS_UNKNOWN) {
        note_unknown(l, b);
    }
    json_decref(ids);
}

/* ---- transactions that stay open ---- */

static enum status slow_insert(struct load *l, json_t *ids, struct err *err)
{
    enum status st = session_do(&l->slow_sql, err, "BEGIN");
    if (st != STATUS_OK) {
        return st;
    }
    return insert(l, &l->slow_sql, &l->slow, ids, err);
}

static void slow_begin(struct load *l, int64_t now_us)
{
    struct err why = {0};
    json_t *ids = json_array();
    draw_batch(l, 1 + (int)rand_below(&l->rand, SLOW_TASKS), &l->slow);
    if (slow_insert(l, ids, &why) == STATUS_OK) {
        l->slow_ids = ids;
        l->slow_us = now_us + world_scaled(l->world, rand_below(&l->rand, SLOW_US));
        return;
    }
    json_decref(ids); /* not committed, so they do not exist */
    session_close(&l->slow_sql);
    l->slow_us = now_us + US_PER_S;
}

static void slow_end(struct load *l, int64_t now_us)
{
    struct err why = {0};
    enum status st = session_do(&l->slow_sql, &why, "COMMIT");
    if (st == STATUS_OK) {
        note_acked(l, &l->slow, l->slow_ids);
    } else if (st == STATUS_UNKNOWN) {
        note_unknown(l, &l->slow);
    }
    json_decref(l->slow_ids);
    l->slow_ids = NULL;
    l->slow_us = now_us + world_scaled(l->world, rand_below(&l->rand, SLOW_US / 4));
}

static void slow_tick(struct load *l, int64_t now_us)
{
    if (!l->has_slow || now_us < l->slow_us) {
        return;
    }
    if (l->slow_ids != NULL) {
        slow_end(l, now_us);
    } else {
        slow_begin(l, now_us);
    }
}

/* ---- cancels, edits ---- */

/* A cancel only asks a running job to end. */
static const char *phase_of(enum status st, const PGresult *r)
{
    if (st != STATUS_OK || PQntuples(r) == 0) {
        return st == STATUS_UNKNOWN ? "info" : "fail";
    }
    return strcmp(PQgetvalue(r, 0, 0), "cancelling") == 0 ? "asked" : "ok";
}

static void note_change(struct load *l, const char *op, const char *ph, int64_t id,
                        const char *what, const struct err *why)
{
    journal_write(&l->acked, json_pack("{s:s, s:s, s:I, s:s, s:s}", "op", op, "ph", ph, "job",
                                       (json_int_t)id, "what", what, "code", why->code));
}

/* The first one is claimd's own cancel; the others are SQL of a user who may write the table. */
static void change_one(struct load *l)
{
    static const struct {
        const char *op;
        const char *what;
        const char *sql;
    } changes[] = {
        {"cancel", "", "SELECT claimd.cancel($1)"},
        {"edit", "priority",
         "UPDATE claimd.job SET priority = (id % 10)::smallint"
         " WHERE id = $1 AND state = 'available' RETURNING id"},
        {"edit", "earlier",
         "UPDATE claimd.job SET scheduled_at = scheduled_at - interval '1 minute'"
         " WHERE id = $1 AND state = 'available' RETURNING id"},
        {"edit", "later",
         "UPDATE claimd.job SET scheduled_at = clock_timestamp() + interval '2 s'"
         " WHERE id = $1 AND state = 'available' RETURNING id"},
        {"edit", "queue",
         "UPDATE claimd.job SET queue = 'chaos_a'"
         " WHERE id = $1 AND state = 'available' RETURNING id"},
        {"edit", "args",
         "UPDATE claimd.job SET args = args || '{\"edited\": true}'"
         " WHERE id = $1 AND state = 'available' RETURNING id"},
        {"delete", "", "DELETE FROM claimd.job WHERE id = $1 AND state = 'available' RETURNING id"},
    };
    size_t known = l->recent_count < RECENT_MAX ? l->recent_count : RECENT_MAX;
    if (known == 0) {
        return;
    }
    char id_text[24];
    struct err why = {0};
    PGresult *r = NULL;
    int64_t id = l->recent[rand_below(&l->rand, (int64_t)known)];
    size_t which = (size_t)rand_below(&l->rand, ARRAY_COUNT(changes));
    const char *const params[] = {id_text};
    (void)snprintf(id_text, sizeof id_text, "%lld", (long long)id);
    enum status st = session_run(&l->sql, changes[which].sql, params, 1, &r, &why);
    note_change(l, changes[which].op, phase_of(st, r), id, changes[which].what, &why);
    PQclear(r);
}

/* ---- the process ---- */

/* Faults reduce capacity: a backlog that grows during the whole run would prove nothing about
 * claimd, and delay jobs of low priority until the end. */
static void look_at_backlog(struct load *l, int64_t now_us)
{
    struct err why = {0};
    int64_t open = 0;
    const struct options *o = l->world->options;
    if (now_us >= l->look_us) {
        l->look_us = now_us + US_PER_S;
        if (session_i64(
                &l->sql, &open, &why,
                "SELECT count(*) FROM claimd.job WHERE scheduled_at <> claimd.job_waits()") ==
            STATUS_OK) {
            l->is_too_much = open > BACKLOG_PER_SLOT * o->workers * o->slots;
        }
    }
}

static void tick(struct load *l, int64_t now_us, double past_s)
{
    struct batch b;
    look_at_backlog(l, now_us);
    if (now_us >= l->burst_us && !l->world->options->is_outages) {
        l->burst_us = now_us + world_scaled(l->world, rand_jitter(&l->rand, BURST_US, 50));
        l->credit += (double)(20 + rand_below(&l->rand, 180)) * l->world->options->time_scale * 2;
    }
    l->credit += past_s * l->rate;
    l->credit = l->credit < BATCH_MAX ? l->credit : BATCH_MAX;
    l->credit = l->is_too_much ? 0 : l->credit;
    while (l->credit >= 1 && !load_process_must_end()) {
        int most = l->credit < BATCH_MAX ? (int)l->credit : BATCH_MAX;
        int count = rand_below(&l->rand, 3) == 0 ? most : 1;
        draw_batch(l, count, &b);
        l->credit -= count;
        put_in(l, &b);
    }
    if (rand_below(&l->rand, 10) == 0) {
        change_one(l);
    }
    if (!l->world->options->is_outages) {
        ties_tick(&l->ties, !l->is_too_much);
    }
    slow_tick(l, now_us);
}

static void run(struct load *l)
{
    int64_t last_us = clock_boot_us();
    while (!load_process_must_end()) {
        (void)poll(NULL, 0, TICK_MS);
        int64_t now_us = clock_boot_us();
        tick(l, now_us, (double)(now_us - last_us) / (double)US_PER_S);
        last_us = now_us;
    }
    if (l->slow_ids != NULL) {
        slow_end(l, clock_boot_us());
    }
    journal_write(&l->acked, json_pack("{s:s, s:I}", "op", "end", "n", (json_int_t)l->next_n));
}

static int load_main(void *ctx)
{
    struct load *l = ctx;
    struct world *w = l->world;
    struct err why = {0};
    l->next_n = 1;
    l->burst_us = clock_boot_us();
    l->rate = w->options->rate > 0          ? w->options->rate
              : w->options->is_outages      ? OUTAGES_RATE
              : w->options->time_scale >= 1 ? RATE_REAL
                                            : RATE_SCALED;
    rand_seed(&l->rand, w->options->seed ^ UINT64_C(0x10ad));
    session_init(&l->sql, w->conninfo, STATEMENT_US);
    session_init(&l->slow_sql, w->conninfo, STATEMENT_US);
    folder_at(&w->folder, "ledger/effects.jsonl", l->ledger, sizeof l->ledger);
    if (journal_open(&w->folder, "acked.jsonl", &l->acked, &why) != STATUS_OK) {
        (void)fprintf(stderr, "claimd-chaos: %s\n", why.msg);
        return 1;
    }
    ties_init(&l->ties, w, &l->acked, &l->sql, l->ledger);
    run(l);
    return 0;
}

enum status load_start(struct world *w, bool has_slow, pid_t *ret_pid, struct err *err)
{
    static struct load l;
    l = (struct load){.world = w, .has_slow = has_slow};
    return load_process_start(load_main, &l, ret_pid, err);
}
