/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes that enqueue jobs: one, or many. With an Idempotency-Key, the jobs and the answer are
 * written in one transaction, so that a repetition is answered like the first request. */
#include "sql/queries.h"
#include "web/api.h"

#include <stdio.h>

#define MANY_MAX 1000
#define KEY_MAX 200

/* What a request enqueues: a job by a verb, or an array of jobs. */
struct adding {
    const struct web_route *route;
    const struct verb_call *call; /* NULL: `jobs` */
    const json_t *jobs;
};

/* What became of a key that was known. */
struct known {
    bool is_known; /* the answer is in `out`, unless is_other */
    bool is_other; /* it was used with another request */
};

/* ---- enqueuing ---- */

static enum status add_job(struct admin *a, const struct adding *adding, struct text *out,
                           struct err *err)
{
    auto_answer struct answer answer = {.count = 0};
    auto_table struct table t = {.name = "job", .is_record = true};
    const struct table *const tables[] = {&t};
    bool is_plain = adding->call->verb == &VERB_ENQUEUE;
    t.columns = adding->route->shapes[0].columns;
    t.column_count = adding->route->shapes[0].column_count;
    enum status st = verb_run(adding->call, a, &answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *made = &answer.tables[0];
    const char *const values[] = {table_value(made, 0, "id"),
                                  is_plain ? "t" : table_value(made, 0, "inserted")};
    st = table_add(&t, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    tables_put_json(tables, 1, out);
    return text_end(out, err);
}

static enum status add_jobs(struct admin *a, const json_t *jobs, struct text *out, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autofree char *array = json_dumps(jobs, JSON_COMPACT);
    const char *const params[] = {array, NULL};
    if (array == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = verb_written(admin_query(a, &SQL_ADMIN_ENQUEUE_MANY, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    text_put(out, "{\"enqueued\": {\"jobs\": %s}}\n", admin_value(rows, 0, 0));
    return text_end(out, err);
}

static enum status add(struct admin *a, const struct adding *adding, struct text *out,
                       struct err *err)
{
    return adding->call != NULL ? add_job(a, adding, out, err)
                                : add_jobs(a, adding->jobs, out, err);
}

/* ---- once per key ---- */

/* Returns the request as a text that is the same for the same request. Owned by the caller; NULL:
 * no memory. */
static char *put_request(const struct web_request *q)
{
    autotext struct text text = TEXT_INIT(2 * WEB_BODY_MAX);
    autofree char *body = json_dumps(q->json, JSON_COMPACT | JSON_SORT_KEYS);
    text_put(&text, "%s %s", q->method, q->path);
    for (size_t i = 0; i < q->query_count; i++) {
        text_put(&text, "&%s=%s", q->query[i].name, q->query[i].value);
    }
    text_put(&text, "\n%s", body == NULL ? "" : body);
    return body == NULL || text.err.status != STATUS_OK ? NULL : strdup(text_str(&text));
}

static enum status take_key(struct admin *a, const struct web_request *q, struct text *out,
                            struct known *ret, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autofree char *request = put_request(q);
    const char *const params[] = {q->caller.who, q->heads.idempotency_key, request};
    if (request == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = admin_query(a, &SQL_ADMIN_WEB_KEY_TAKE, params, &rows, err);
    if (st != STATUS_OK || admin_row_count(rows) == 0) {
        return st;
    }
    const char *answer = admin_value(rows, 0, 1);
    ret->is_known = true;
    ret->is_other = admin_value(rows, 0, 0)[0] == 't';
    text_put(out, "%s", ret->is_other || answer == NULL ? "" : answer);
    return text_end(out, err);
}

static enum status keep_answer(struct admin *a, const struct web_request *q, struct text *out,
                               struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    const char *const params[] = {q->caller.who, q->heads.idempotency_key, text_str(out)};
    return admin_query(a, &SQL_ADMIN_WEB_KEY_KEEP, params, &rows, err);
}

/* Leaves the transaction open if it fails. */
static enum status add_in_transaction(struct admin *a, const struct web_request *q,
                                      const struct adding *adding, struct text *out,
                                      struct known *ret, struct err *err)
{
    enum status st = admin_exec(a, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = take_key(a, q, out, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!ret->is_known) {
        st = add(a, adding, out, err);
    }
    if (st == STATUS_OK && !ret->is_known) {
        st = keep_answer(a, q, out, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return verb_written(admin_exec(a, "COMMIT", err), err);
}

/* After a failure nothing is enqueued, and the key is free again. */
static enum status add_once(struct admin *a, const struct web_request *q,
                            const struct adding *adding, struct text *out, struct known *ret,
                            struct err *err)
{
    struct err why = {0};
    enum status st = add_in_transaction(a, q, adding, out, ret, err);
    if (st != STATUS_OK && admin_exec(a, "ROLLBACK", &why) != STATUS_OK && err->code[0] != '\0') {
        *err = why; /* the session must be closed */
        return err->status;
    }
    return st;
}

/* ---- routes ---- */

static bool key_is_valid(const char *key)
{
    size_t len = 0;
    while (key[len] > ' ' && key[len] <= '~') {
        len++;
    }
    return key[len] == '\0' && len > 0 && len <= KEY_MAX;
}

static enum status run(struct web *w, const struct web_request *q, const struct adding *adding,
                       struct text *out, struct known *ret, struct err *err)
{
    struct admin *a = NULL;
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = q->heads.idempotency_key != NULL ? add_once(a, q, adding, out, ret, err)
                                          : add(a, adding, out, err);
    backends_give(w->backends, a, err);
    return st;
}

static void enqueue(struct web *w, const struct web_request *q, const struct adding *adding,
                    struct web_reply *r)
{
    struct err err = {0};
    struct known known = {.is_known = false};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    const char *key = q->heads.idempotency_key;
    if (key != NULL && !key_is_valid(key)) {
        reply_error(r, WEB_INVALID, NULL,
                    "Idempotency-Key: must be 1 to %d visible characters of ASCII", KEY_MAX);
        return;
    }
    enum status st = run(w, q, adding, &text, &known, &err);
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    if (known.is_other) {
        reply_error(r, WEB_KEY_USED, "a new request needs a new key",
                    "Idempotency-Key: this key was used with another request");
        return;
    }
    r->is_replayed = known.is_known;
    reply_json(r, &text);
}

static bool is_unique(const struct web_request *q)
{
    return json_object_get(q->json, "unique") != NULL ||
           json_object_get(q->json, "unique_by") != NULL;
}

void web_enqueue(struct web *w, const struct web_route *route, struct web_request *q,
                 struct web_reply *r)
{
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    const struct adding adding = {.route = route, .call = &call};
    if (!json_is_string(json_object_get(q->json, "kind"))) {
        reply_error(r, WEB_INVALID, NULL, "kind: is needed");
        return;
    }
    const struct verb *verb = is_unique(q) ? &VERB_ENQUEUE_UNIQUE : &VERB_ENQUEUE;
    enum status st = web_call(route, verb, q, &call, &texts, &err);
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    enqueue(w, q, &adding, r);
}

void web_enqueue_many(struct web *w, const struct web_route *route, struct web_request *q,
                      struct web_reply *r)
{
    const struct adding adding = {.route = route, .jobs = json_object_get(q->json, "jobs")};
    size_t count = json_array_size(adding.jobs);
    if (json_object_size(q->json) != 1 || count == 0 || count > MANY_MAX) {
        reply_error(r, WEB_INVALID, NULL, "body: must be {\"jobs\": […]} with 1 to %d jobs",
                    MANY_MAX);
        return;
    }
    enqueue(w, q, &adding, r);
}
