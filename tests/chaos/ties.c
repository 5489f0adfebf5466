/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/ties.h"

#include <stdio.h>

#define FIRST_N 1000000000 /* in the books; the other part of the load counts from 1 */
#define TICKS_EACH 5
#define JOBS_MAX 6
#define TEXT_MAX 24

/* Jobs to insert with one statement. */
struct group {
    const char *tie;
    json_t *jobs; /* in the form of enqueue_many() */
    struct {
        int64_t n;
        const char *kind;
        const char *expect;
    } known[JOBS_MAX];
    size_t count;
};

static const char prepare_sql[] =
    "CREATE FUNCTION chaos.put_batch(jobs jsonb, follow_up jsonb) RETURNS SETOF bigint"
    " LANGUAGE plpgsql AS $$ "
    "DECLARE batch bigint := claimd.batch_open('chaos', follow_up);"
    " BEGIN"
    "  RETURN NEXT batch;"
    "  RETURN QUERY SELECT claimd.batch_add(batch, e.id) FROM claimd.enqueue_many(jobs) AS e(id);"
    "  PERFORM claimd.batch_close(batch);"
    " END $$;"
    "CREATE FUNCTION chaos.edit(id bigint, apply text, v bigint) RETURNS SETOF integer"
    " LANGUAGE sql AS $$"
    "  SELECT claimd.edit(j.id, jsonb_build_object('args', j.args || jsonb_build_object('v', v)),"
    "                     NULL, apply) FROM claimd.job j WHERE j.id = edit.id $$;";

enum status ties_prepare(struct session *sql, struct err *err)
{
    enum status st =
        session_do(sql, err,
                   "SELECT claimd.limit_queue('" TIES_QUEUE "', %d), claimd.limit_key('" TIES_KEY
                   "', %d), claimd.limit_key('" TIES_PATTERN
                   "', %d), claimd.limit_key_rate('" TIES_PATTERN "', 1000)",
                   TIES_PLACES, TIES_KEY_PLACES, TIES_CUSTOMER_PLACES);
    return st == STATUS_OK ? session_run(sql, prepare_sql, NULL, 0, NULL, err) : st;
}

void ties_init(struct ties *t, const struct world *w, struct journal *acked, struct session *sql,
               const char *ledger)
{
    *t = (struct ties){.world = w, .acked = acked, .sql = sql, .ledger = ledger, .next_n = FIRST_N};
    rand_seed(&t->rand, w->options->seed ^ UINT64_C(0x71e5));
}

/* ---- new jobs ---- */

/* Draws a job with its args; the caller adds what ties it to others. */
static json_t *draw(struct ties *t, struct group *g)
{
    static const struct {
        const char *kind;
        const char *does;
        int until;
        const char *expect;
        int ms_max;
    } parts[] = {
        {"c_short", "done", 0, "completed", 200}, {"c_short", "done", 0, "completed", 800},
        {"c_long", "done", 0, "completed", 4000}, {"c_retry", "retry", 3, "completed", 800},
        {"c_fail", "fail", 0, "discarded", 200},  {"c_once", "done", 0, "any", 800}};
    size_t part = (size_t)rand_below(&t->rand, ARRAY_COUNT(parts));
    int64_t ms = rand_below(&t->rand, parts[part].ms_max);
    g->known[g->count].n = t->next_n;
    g->known[g->count].kind = parts[part].kind;
    g->known[g->count].expect = parts[part].expect;
    g->count++;
    return json_pack("{s:s, s:{s:I, s:I, s:s, s:s, s:I, s:i, s:b}}", "kind", parts[part].kind,
                     "args", "n", (json_int_t)t->next_n++, "v", (json_int_t)t->next_v, "path",
                     t->ledger, "do", parts[part].does, "ms",
                     (json_int_t)((double)ms * t->world->options->time_scale), "until",
                     parts[part].until, "deaf", (int)rand_below(&t->rand, 2));
}

static void group_begin(struct group *g, const char *tie)
{
    *g = (struct group){.tie = tie, .jobs = json_array()};
}

static void remember(struct ties *t, int64_t id)
{
    t->recent[t->recent_count++ % TIES_RECENT_MAX] = id;
}

static int64_t draw_known(struct ties *t)
{
    size_t count = t->recent_count < TIES_RECENT_MAX ? t->recent_count : TIES_RECENT_MAX;
    return count == 0 ? 0 : t->recent[rand_below(&t->rand, (int64_t)count)];
}

/* Records the group, with one line per job; jobs that were refused do not exist. `ids` has one row
 * per job, from `first` on. */
static void note_group(struct ties *t, const struct group *g, enum status st, const PGresult *ids,
                       int first, const struct err *why)
{
    for (size_t i = 0; i < g->count && st != STATUS_OK; i++) {
        const char *ph = st == STATUS_UNKNOWN ? "info" : "fail";
        const char *op = st == STATUS_UNKNOWN ? "enqueue" : "refused";
        journal_write(t->acked,
                      json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s}", "op", op, "ph", ph, "n",
                                (json_int_t)g->known[i].n, "kind", g->known[i].kind, "expect",
                                g->known[i].expect, "tie", g->tie, "code", why->code));
    }
    for (size_t i = 0; i < g->count && st == STATUS_OK; i++) {
        int64_t id = strtoll(PQgetvalue(ids, first + (int)i, 0), NULL, 10);
        journal_write(t->acked,
                      json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:s}", "op", "enqueue", "ph", "ok",
                                "job", (json_int_t)id, "n", (json_int_t)g->known[i].n, "kind",
                                g->known[i].kind, "expect", g->known[i].expect, "tie", g->tie));
        remember(t, id);
    }
}

static enum status run(struct ties *t, const char *sql, const json_t *one, const char *other,
                       PGresult **ret, struct err *err)
{
    char *text = json_dumps(one, JSON_COMPACT);
    const char *params[] = {text, other};
    enum status st = session_run(t->sql, sql, params, other != NULL ? 2 : 1, ret, err);
    free(text);
    return st;
}

static void put_group(struct ties *t, struct group *g)
{
    struct err why = {0};
    PGresult *r = NULL;
    enum status st = run(t, "SELECT claimd.enqueue_many($1)", g->jobs, NULL, &r, &why);
    note_group(t, g, st, r, 0, &why);
    PQclear(r);
    json_decref(g->jobs);
}

/* Adds a customer's key, or one that other jobs have as their first key. */
static void put_second(struct ties *t, json_t *job)
{
    int64_t n = rand_below(&t->rand, TIES_CUSTOMERS + 1);
    (void)json_object_set_new(job, "second_key",
                              n == TIES_CUSTOMERS ? json_string("another")
                                                  : json_sprintf("customer:%lld", (long long)n));
}

static void put_keyed(struct ties *t)
{
    static const char *const keys[] = {"one", "another", TIES_KEY, TIES_KEY};
    struct group g;
    group_begin(&g, "key");
    for (int64_t i = 1 + rand_below(&t->rand, 3); i > 0; i--) {
        json_t *job = draw(t, &g);
        (void)json_object_set_new(job, "exclusive_key",
                                  json_string(keys[rand_below(&t->rand, ARRAY_COUNT(keys))]));
        if (rand_below(&t->rand, 2) == 0) {
            put_second(t, job);
        }
        (void)json_array_append_new(g.jobs, job);
    }
    put_group(t, &g);
}

static void put_limited(struct ties *t)
{
    struct group g;
    group_begin(&g, "queue");
    for (int64_t i = 1 + rand_below(&t->rand, 4); i > 0; i--) {
        json_t *job = draw(t, &g);
        (void)json_object_set_new(job, "queue", json_string(TIES_QUEUE));
        (void)json_array_append_new(g.jobs, job);
    }
    put_group(t, &g);
}

/* An insert that finds the key taken stores nothing. */
static void put_unique(struct ties *t)
{
    struct err why = {0};
    PGresult *r = NULL;
    struct group g;
    char key[TEXT_MAX];
    group_begin(&g, "unique");
    json_t *job = draw(t, &g);
    (void)snprintf(key, sizeof key, "u%d", (int)rand_below(&t->rand, 4));
    enum status st = run(t,
                         "SELECT id FROM claimd.enqueue_unique($1::jsonb ->> 'kind',"
                         " $1::jsonb -> 'args', unique_key => $2) WHERE inserted",
                         job, key, &r, &why);
    if (st != STATUS_OK || PQntuples(r) == 1) {
        note_group(t, &g, st, r, 0, &why);
    }
    PQclear(r);
    json_decref(job);
    json_decref(g.jobs);
}

static void put_after(struct ties *t)
{
    struct group g;
    group_begin(&g, "after");
    json_t *job = draw(t, &g);
    json_t *before = json_array();
    for (int64_t i = 1 + rand_below(&t->rand, 2); i > 0; i--) {
        (void)json_array_append_new(before, json_integer(draw_known(t)));
    }
    bool runs = rand_below(&t->rand, 2) == 0;
    (void)json_object_set_new(job, "if_dead", json_string(runs ? "run" : "cancel"));
    (void)json_object_set(job, "after", before);
    (void)json_array_append_new(g.jobs, job);
    g.known[0].expect = runs ? g.known[0].expect : "any";
    size_t known = t->recent_count;
    put_group(t, &g);
    if (t->recent_count > known) {
        journal_write(t->acked,
                      json_pack("{s:s, s:s, s:I, s:O}", "op", "after", "ph", "ok", "job",
                                (json_int_t)t->recent[known % TIES_RECENT_MAX], "after", before));
    }
    json_decref(before);
}

static void note_batch(struct ties *t, const PGresult *r, int64_t follow_n)
{
    json_t *ids = json_array();
    for (int i = 1; i < PQntuples(r); i++) {
        (void)json_array_append_new(ids, json_integer(strtoll(PQgetvalue(r, i, 0), NULL, 10)));
    }
    journal_write(t->acked, json_pack("{s:s, s:s, s:I, s:o, s:I}", "op", "batch", "ph", "ok",
                                      "batch", (json_int_t)strtoll(PQgetvalue(r, 0, 0), NULL, 10),
                                      "jobs", ids, "follow_n", (json_int_t)follow_n));
}

/* The id of the follow-up is not returned, so it is recorded like an insert without an answer. */
static void put_batch(struct ties *t)
{
    struct err why = {0};
    PGresult *r = NULL;
    struct group follow;
    struct group g;
    group_begin(&follow, "batch");
    group_begin(&g, "batch");
    json_t *follow_up = draw(t, &follow);
    for (int64_t i = 2 + rand_below(&t->rand, JOBS_MAX - 2); i > 0; i--) {
        json_t *job = draw(t, &g);
        if (rand_below(&t->rand, 3) == 0) {
            (void)json_object_set_new(job, "exclusive_key", json_string(TIES_KEY));
        }
        (void)json_array_append_new(g.jobs, job);
    }
    char *text = json_dumps(follow_up, JSON_COMPACT);
    enum status st = run(t, "SELECT chaos.put_batch($1, $2)", g.jobs, text, &r, &why);
    note_group(t, &g, st, r, 1, &why);
    if (st == STATUS_OK) {
        note_batch(t, r, follow.known[0].n);
    }
    if (st == STATUS_OK || st == STATUS_UNKNOWN) {
        note_group(t, &follow, STATUS_UNKNOWN, NULL, 0, &why);
    }
    PQclear(r);
    free(text);
    json_decref(follow_up);
    json_decref(follow.jobs);
    json_decref(g.jobs);
}

/* ---- acts on these jobs ---- */

static const char *phase_of(enum status st, const PGresult *r)
{
    bool is_done = st == STATUS_OK && PQntuples(r) > 0;
    return is_done ? "ok" : st == STATUS_UNKNOWN ? "info" : "fail";
}

static void note_change(struct ties *t, const char *op, int64_t id, const char *what,
                        const char *ph, const struct err *why)
{
    journal_write(t->acked,
                  json_pack("{s:s, s:s, s:I, s:s, s:s, s:I}", "op", op, "ph", ph, "job",
                            (json_int_t)id, "what", what, "code", why->code, "v",
                            strcmp(what, "args") == 0 ? (json_int_t)t->next_v : (json_int_t)0));
}

/* Edits the args, or in every fourth case a key or the queue. */
static void edit(struct ties *t)
{
    static const char *const patches[] = {
        "{\"exclusive_key\": \"one\"}",     "{\"exclusive_key\": null}",
        "{\"second_key\": \"customer:0\"}", "{\"second_key\": null}",
        "{\"queue\": \"" TIES_QUEUE "\"}",  "{\"queue\": \"default\"}"};
    struct err why = {0};
    PGresult *r = NULL;
    char id_text[TEXT_MAX];
    char v_text[TEXT_MAX];
    int64_t id = draw_known(t);
    const char *apply = rand_below(&t->rand, 2) == 0 ? "now" : "next";
    bool is_args = rand_below(&t->rand, 4) > 0;
    const char *patch = patches[rand_below(&t->rand, ARRAY_COUNT(patches))];
    t->next_v++;
    (void)snprintf(id_text, sizeof id_text, "%lld", (long long)id);
    (void)snprintf(v_text, sizeof v_text, "%lld", (long long)t->next_v);
    const char *params[] = {id_text, apply, is_args ? v_text : patch};
    enum status st = session_run(t->sql,
                                 is_args ? "SELECT chaos.edit($1, $2, $3)"
                                         : "SELECT claimd.edit($1, patch => $3, apply => $2)",
                                 params, ARRAY_COUNT(params), &r, &why);
    note_change(t, "edit", id, is_args ? "args" : "limit", phase_of(st, r), &why);
    PQclear(r);
}

static void cancel(struct ties *t)
{
    struct err why = {0};
    PGresult *r = NULL;
    char id_text[TEXT_MAX];
    int64_t id = draw_known(t);
    const char *params[] = {id_text};
    (void)snprintf(id_text, sizeof id_text, "%lld", (long long)id);
    enum status st = session_run(t->sql, "SELECT claimd.cancel($1)", params, 1, &r, &why);
    bool is_asked = st == STATUS_OK && strcmp(PQgetvalue(r, 0, 0), "cancelling") == 0;
    note_change(t, "cancel", id, "", is_asked ? "asked" : phase_of(st, r), &why);
    PQclear(r);
}

/* Retries a job that has failed permanently, whichever part of the load inserted it. */
static void retry(struct ties *t)
{
    struct err why = {0};
    PGresult *r = NULL;
    char id_text[TEXT_MAX];
    int64_t id = 0;
    const char *params[] = {id_text};
    if (session_i64(t->sql, &id, &why,
                    "SELECT id FROM claimd.job_history WHERE state = 'discarded' AND retried_at IS"
                    " NULL AND generation < 2 AND kind IN ('c_fail', 'c_tired', 'c_poison')"
                    " ORDER BY random() LIMIT 1") != STATUS_OK) {
        return;
    }
    (void)snprintf(id_text, sizeof id_text, "%lld", (long long)id);
    enum status st = session_run(t->sql, "SELECT claimd.retry($1)", params, 1, &r, &why);
    note_change(t, "retry", id, "", phase_of(st, r), &why);
    PQclear(r);
}

void ties_tick(struct ties *t, bool may_put)
{
    static void (*const puts[])(struct ties *) = {put_keyed, put_limited, put_unique, put_after,
                                                  put_batch};
    static void (*const changes[])(struct ties *) = {edit, edit, edit, edit, cancel, retry};
    if (rand_below(&t->rand, TICKS_EACH) != 0) {
        return;
    }
    size_t which = (size_t)rand_below(&t->rand, ARRAY_COUNT(puts));
    size_t change = (size_t)rand_below(&t->rand, ARRAY_COUNT(changes));
    if (may_put && (t->recent_count > 0 || puts[which] != put_after)) {
        puts[which](t);
    }
    if (t->recent_count > 0) {
        changes[change](t);
    }
}
