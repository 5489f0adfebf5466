/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/drawn_load.h"

#include "base/clock.h"
#include "base/rand.h"
#include "chaos/load_process.h"

#include <poll.h>
#include <stdio.h>

#define TICK_MS 50
#define STATEMENT_US (5 * US_PER_S)
#define JOBS_MAX 100 /* per statement */
#define DELAY_MAX_MS 5000
#define BURST_S 3

/* Inserts a group of jobs. A job with "delay_ms" is delayed by it; one with "wide" gets a number
 * that is long when written out. */
static const char put_sql[] =
    "SELECT claimd.enqueue_many((SELECT jsonb_agg(j - '{delay_ms,wide}'::text[]"
    " || CASE WHEN j ? 'delay_ms' THEN jsonb_build_object('scheduled_at', clock_timestamp() +"
    " (j ->> 'delay_ms')::int * interval '1 ms') ELSE '{}'::jsonb END"
    " || CASE WHEN j ? 'wide' THEN '{\"metadata\": {\"wide\": -1e60000}}'::jsonb ELSE '{}' END"
    " ORDER BY at)"
    " FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS jobs(j, at)))";

struct source {
    const struct drawn_queue *queue;
    double credit; /* jobs of the trickle that are due */
    int64_t burst_us;
};

struct drawn_load {
    const struct world *world;
    const struct drawn *drawn;
    struct journal acked;
    struct session sql;
    struct rand rand;
    char ledger[SERVER_PATH_MAX + 64];
    int64_t next_n;
    bool is_refused; /* a job or a part of one was refused */
    struct source sources[DRAWN_QUEUES_MAX];
};

struct group {
    json_t *jobs;  /* in the form of enqueue_many() */
    json_t *books; /* what is recorded about each */
};

/* ---- one job ---- */

static const struct {
    int percent;
    const char *does;
    int until;
    const char *expect;
} fates[] = {{89, "done", 0, "completed"}, {1, "scribble", 2, "completed"},
             {4, "retry", 2, "completed"}, {3, "snooze", 0, "completed"},
             {2, "fail", 0, "discarded"},  {1, "segv", 2, "completed"}};

static size_t draw_fate(struct rand *r)
{
    int64_t at = rand_below(r, 100);
    size_t i = 0;
    while (at >= fates[i].percent && i + 1 < ARRAY_COUNT(fates)) {
        at -= fates[i++].percent;
    }
    return i;
}

static void set_text(json_t *job, const char *name, const char *prefix, int64_t number)
{
    (void)json_object_set_new(job, name, json_sprintf("%s-%lld", prefix, (long long)number));
}

/* Adds keys. Returns the tie to record: the reason why the job may wait for jobs other than those
 * before it. */
static const char *add_ties(struct drawn_load *l, const struct drawn_queue *q, json_t *job)
{
    const char *tie = q->running > 0 || q->rate > 0 ? "limit" : NULL;
    if (q->tenants > 0) {
        set_text(job, "share_key", "t", rand_below(&l->rand, q->tenants));
    }
    if (json_object_get(job, "share_key") != NULL) {
        tie = "tenant";
    }
    if (q->key_places > 0 && rand_below(&l->rand, 3) == 0) {
        set_text(job, "exclusive_key", q->name, rand_below(&l->rand, DRAWN_KEYS));
        tie = "key";
    }
    return tie;
}

/* ---- rows at the limits of sizes (interfaces.md) ---- */

#define BOUND_EVERY 50 /* one job out of this many */
#define DEPTH 1000     /* depth of nested arrays */
#define LONG_TEXT 60000
/* Below 1 MiB: leaves room for the other args and for escapes. */
#define LONGEST_TEXT ((1 << 20) - 1024)
#define KEY_MAX 512

/* Returns random characters, which PostgreSQL cannot compress. */
static json_t *long_text(struct drawn_load *l, size_t len)
{
    static char text[LONGEST_TEXT];
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)('A' + rand_below(&l->rand, 'z' - 'A' + 1));
        text[i] = text[i] == '\\' ? '/' : text[i];
    }
    return json_stringn(text, len);
}

static json_t *deep_arrays(void)
{
    json_t *deep = json_array();
    for (int i = 0; i < DEPTH; i++) {
        deep = json_pack("[o]", deep);
    }
    return deep;
}

static json_t *odd_values(void)
{
    return json_pack("[I, I, f, s, s]", (json_int_t)INT64_MAX, (json_int_t)INT64_MIN, 1e-300,
                     "\x01\"\\\n", "\xf4\x8f\xbf\xbf \xc3\xa4");
}

static void add_bound(struct drawn_load *l, json_t *job)
{
    json_t *args = json_object_get(job, "args");
    switch (rand_below(&l->rand, 12)) {
    case 0:
        (void)json_object_set_new(args, "text", long_text(l, LONGEST_TEXT));
        break;
    case 1:
    case 2:
    case 3:
        (void)json_object_set_new(args, "text", long_text(l, LONG_TEXT));
        break;
    case 4:
    case 5:
        (void)json_object_set_new(args, "deep", deep_arrays());
        break;
    case 6:
    case 7:
        (void)json_object_set_new(job, "wide", json_true());
        break;
    case 8:
    case 9:
        (void)json_object_set_new(job, "share_key", long_text(l, KEY_MAX));
        break;
    default:
        (void)json_object_set_new(args, "odd", odd_values());
        break;
    }
}

static void add_job(struct drawn_load *l, const struct drawn_queue *q, size_t kind, struct group *g)
{
    size_t fate = draw_fate(&l->rand);
    const char *name = l->drawn->kinds[kind].name;
    int64_t delay_ms = rand_below(&l->rand, 10) == 0 ? rand_below(&l->rand, DELAY_MAX_MS) : 0;
    json_int_t n = (json_int_t)l->next_n++;
    json_t *job = json_pack("{s:s, s:s, s:{s:I, s:s, s:s, s:i, s:i, s:b}}", "kind", name, "queue",
                            q->name, "args", "n", n, "path", l->ledger, "do", fates[fate].does,
                            "ms", l->drawn->kinds[kind].ms, "until", fates[fate].until, "deaf",
                            (int)rand_below(&l->rand, 2));
    if (q->has_priorities) {
        (void)json_object_set_new(job, "priority", json_integer(rand_below(&l->rand, 10)));
    }
    if (delay_ms > 0) {
        (void)json_object_set_new(job, "delay_ms", json_integer(delay_ms));
    }
    json_t *book = json_pack("{s:s, s:I, s:s, s:s, s:I}", "op", "enqueue", "n", n, "kind", name,
                             "expect", fates[fate].expect, "delay_ms", (json_int_t)delay_ms);
    if (rand_below(&l->rand, BOUND_EVERY) == 0) {
        add_bound(l, job);
    }
    const char *tie = add_ties(l, q, job);
    if (tie != NULL) {
        (void)json_object_set_new(book, "tie", json_string(tie));
    }
    (void)json_array_append_new(g->jobs, job);
    (void)json_array_append_new(g->books, book);
}

/* ---- a group ---- */

/* Records the group. Refused jobs do not exist, and are not recorded. */
static void write_down(struct drawn_load *l, const struct group *g, enum status st,
                       const PGresult *ids)
{
    size_t i = 0;
    json_t *book = NULL;
    json_array_foreach(g->books, i, book)
    {
        if (st == STATUS_OK) {
            json_int_t id = strtoll(PQgetvalue(ids, (int)i, 0), NULL, 10);
            (void)json_object_set_new(book, "job", json_integer(id));
        }
        (void)json_object_set_new(book, "ph", json_string(st == STATUS_OK ? "ok" : "info"));
        journal_write(&l->acked, json_incref(book));
    }
}

/* True if the SQLSTATE blames the data, not the state of the servers. */
static bool is_of_data(const char *code)
{
    return strncmp(code, "22", 2) == 0 || strncmp(code, "23", 2) == 0 ||
           strncmp(code, "CL", 2) == 0;
}

static void put(struct drawn_load *l, const struct group *g)
{
    struct err why = {0};
    PGresult *ids = NULL;
    char *text = json_dumps(g->jobs, JSON_COMPACT);
    const char *const params[] = {text};
    enum status st = session_run(&l->sql, put_sql, params, 1, &ids, &why);
    if (st == STATUS_OK || st == STATUS_UNKNOWN) {
        write_down(l, g, st, ids);
    } else if (st != STATUS_UNAVAILABLE) {
        (void)printf("load: %s\n", why.msg);
        l->is_refused = l->is_refused || is_of_data(why.code);
    }
    PQclear(ids);
    free(text);
}

static void put_jobs(struct drawn_load *l, const struct drawn_queue *q, int64_t count,
                     bool is_one_kind)
{
    struct group g = {.jobs = json_array(), .books = json_array()};
    size_t kind = q->kinds[rand_below(&l->rand, (int64_t)q->kind_count)];
    for (int64_t i = 0; i < count; i++) {
        add_job(l, q, kind, &g);
        if (!is_one_kind) {
            kind = q->kinds[rand_below(&l->rand, (int64_t)q->kind_count)];
        }
    }
    put(l, &g);
    json_decref(g.jobs);
    json_decref(g.books);
}

/* Inserts at most as many jobs as the queue can complete in BURST_S. */
static void put_burst(struct drawn_load *l, const struct drawn_queue *q)
{
    size_t kind = q->kinds[rand_below(&l->rand, (int64_t)q->kind_count)];
    int64_t most = 1 + (int64_t)(drawn_pace(l->drawn, q, kind) * BURST_S);
    int64_t count = 1 + rand_below(&l->rand, q->burst);
    struct drawn_queue one = *q;
    one.kinds[0] = kind;
    one.kind_count = 1;
    put_jobs(l, &one, count < most ? count : most, true);
}

/* ---- the process ---- */

static void tick(struct drawn_load *l, struct source *s, int64_t now_us, double past_s)
{
    const struct drawn_queue *q = s->queue;
    s->credit += past_s * q->trickle;
    if (s->credit >= 1) {
        int64_t count = (int64_t)s->credit;
        put_jobs(l, q, count < JOBS_MAX ? count : JOBS_MAX, false);
        s->credit -= (double)count;
    }
    if (q->burst > 0 && now_us >= s->burst_us) {
        put_burst(l, q);
        s->burst_us = now_us + rand_jitter(&l->rand, q->burst_ms * US_PER_MS, 50);
    }
}

static void run(struct drawn_load *l)
{
    int64_t last_us = clock_boot_us();
    while (!load_process_must_end()) {
        (void)poll(NULL, 0, TICK_MS);
        int64_t now_us = clock_boot_us();
        for (size_t i = 0; i < l->drawn->queue_count && !load_process_must_end(); i++) {
            tick(l, &l->sources[i], now_us, (double)(now_us - last_us) / (double)US_PER_S);
        }
        last_us = now_us;
    }
    journal_write(&l->acked, json_pack("{s:s, s:I}", "op", "end", "n", (json_int_t)l->next_n));
}

static int load_main(void *ctx)
{
    struct drawn_load *l = ctx;
    const struct world *w = l->world;
    const struct drawn *d = l->drawn;
    struct err why = {0};
    l->next_n = 1;
    rand_seed(&l->rand, d->number ^ UINT64_C(0x10ad));
    session_init(&l->sql, w->conninfo, STATEMENT_US);
    folder_at(&w->folder, "ledger/effects.jsonl", l->ledger, sizeof l->ledger);
    if (journal_open(&w->folder, "acked.jsonl", &l->acked, &why) != STATUS_OK) {
        (void)fprintf(stderr, "claimd-chaos: %s\n", why.msg);
        return 1;
    }
    for (size_t i = 0; i < d->queue_count; i++) {
        int64_t wait_us = rand_below(&l->rand, d->queues[i].burst_ms) * US_PER_MS;
        l->sources[i] =
            (struct source){.queue = &d->queues[i], .burst_us = clock_boot_us() + wait_us};
    }
    run(l);
    return l->is_refused ? 1 : 0;
}

enum status drawn_load_start(struct world *w, const struct drawn *d, pid_t *ret_pid,
                             struct err *err)
{
    static struct drawn_load l;
    l = (struct drawn_load){.world = w, .drawn = d};
    return load_process_start(load_main, &l, ret_pid, err);
}
