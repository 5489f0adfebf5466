/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes that write jobs: edit and enqueue. */
#include "base/parse.h"
#include "sql/queries.h"
#include "web/jobs.h"

#include <stdio.h>

#define MANY_MAX 1000

/* ---- edit ---- */

/* Reads the version from If-Match: "7". */
static bool read_version(const char *header, char ret[16])
{
    int64_t version = 0;
    size_t len = header == NULL ? 0 : strlen(header);
    if (len < 3 || len > 12 || header[0] != '"' || header[len - 1] != '"' ||
        parse_i64(header + 1, len - 2, 0, INT32_MAX, &version, NULL) != STATUS_OK) {
        return false;
    }
    (void)snprintf(ret, 16, "%lld", (long long)version);
    return true;
}

/* Tells a lost race from other conflicts: the version is not the one that was edited. */
static bool is_other_version(struct web *w, const struct web_request *q, const char *expected)
{
    struct err err = {0};
    struct admin *a = NULL;
    struct verb_call call = {.verb = &VERB_JOB_SHOW};
    auto_answer struct answer answer = {.count = 0};
    verb_put(&call, "id", request_in_path(q, "id"));
    if (backends_take(w->backends, &a, &err) != STATUS_OK) {
        return false;
    }
    enum status st = verb_run(&call, a, &answer, &err);
    backends_give(w->backends, a, &err);
    if (st != STATUS_OK || answer.tables[0].row_count == 0) {
        return false;
    }
    const char *found = table_value(&answer.tables[0], 0, "version");
    return found != NULL && strcmp(found, expected) != 0;
}

static void edit(struct web *w, const struct web_request *q, struct verb_call *call,
                 const char *version, struct web_reply *r)
{
    struct err err = {0};
    struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    enum status st = backends_take(w->backends, &a, &err);
    if (st == STATUS_OK) {
        st = verb_run(call, a, &answer, &err);
        backends_give(w->backends, a, &err);
    }
    if (st == STATUS_CONFLICT && is_other_version(w, q, version)) {
        reply_error(r, WEB_VERSION, "read it again", "job %s has changed since: %s",
                    request_in_path(q, "id"), err.msg);
        return;
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    if (answer.tables[0].row_count == 0) {
        reply_error(r, WEB_NOT_FOUND, NULL, "job %s not found", request_in_path(q, "id"));
        return;
    }
    const struct table *const tables[] = {&answer.tables[0]};
    tables_put_json(tables, 1, &text);
    reply_json(r, &text);
}

void web_job_edit(struct web *w, const struct web_route *route, struct web_request *q,
                  struct web_reply *r)
{
    char version[16];
    char ids[32];
    int64_t id = 0;
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    const char *text = request_in_path(q, "id");
    if (q->heads.if_match == NULL) {
        reply_error(r, WEB_NO_VERSION, "GET the job: its ETag is the version",
                    "If-Match: is needed, with the version that was read");
        return;
    }
    if (!read_version(q->heads.if_match, version)) {
        reply_error(r, WEB_INVALID, NULL, "If-Match: must be a version in quotes, such as \"1\"");
        return;
    }
    enum status st = parse_i64(text, strlen(text), 1, INT64_MAX, &id, &err);
    if (st != STATUS_OK) {
        err_prefix(&err, "id");
    }
    if (st == STATUS_OK) {
        st = web_call(route, route->verb, q, &call, &texts, &err);
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    if (json_object_size(q->json) == 0) {
        reply_error(r, WEB_INVALID, NULL, "body: names nothing to change");
        return;
    }
    (void)snprintf(ids, sizeof ids, "{%lld}", (long long)id);
    verb_put(&call, "ids", ids);
    verb_put(&call, "expect", version);
    verb_put(&call, "all", "f");
    edit(w, q, &call, version, r);
}

/* ---- enqueue ---- */

static bool is_unique(const struct web_request *q)
{
    return json_object_get(q->json, "unique") != NULL ||
           json_object_get(q->json, "unique_by") != NULL;
}

static enum status add_job(struct web *w, const struct verb_call *call, char ret_id[24],
                           char ret_inserted[4], struct err *err)
{
    struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_run(call, a, &answer, err);
    backends_give(w->backends, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *t = &answer.tables[0];
    (void)snprintf(ret_id, 24, "%s", table_value(t, 0, "id"));
    (void)snprintf(ret_inserted, 4, "%s",
                   call->verb == &VERB_ENQUEUE ? "t" : table_value(t, 0, "inserted"));
    return STATUS_OK;
}

void web_enqueue(struct web *w, const struct web_route *route, struct web_request *q,
                 struct web_reply *r)
{
    char id[24];
    char inserted[4];
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    if (!json_is_string(json_object_get(q->json, "kind"))) {
        reply_error(r, WEB_INVALID, NULL, "kind: is needed");
        return;
    }
    const struct verb *verb = is_unique(q) ? &VERB_ENQUEUE_UNIQUE : &VERB_ENQUEUE;
    enum status st = web_call(route, verb, q, &call, &texts, &err);
    if (st == STATUS_OK) {
        st = add_job(w, &call, id, inserted, &err);
    }
    const char *const values[] = {id, inserted};
    auto_table struct table t = {.name = "job", .is_record = true};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    const struct table *const tables[] = {&t};
    t.columns = route->shapes[0].columns;
    t.column_count = route->shapes[0].column_count;
    if (st == STATUS_OK) {
        st = table_add(&t, values, &err);
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    tables_put_json(tables, 1, &text);
    reply_json(r, &text);
}

static enum status enqueue_many(struct web *w, const json_t *jobs, struct text *out,
                                struct err *err)
{
    struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    autofree char *array = json_dumps(jobs, JSON_COMPACT);
    const char *const params[] = {array, NULL};
    if (array == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_written(admin_query(a, &SQL_ADMIN_ENQUEUE_MANY, params, &rows, err), err);
    backends_give(w->backends, a, err);
    if (st == STATUS_OK) {
        text_put(out, "{\"enqueued\": {\"jobs\": %s}}\n", admin_value(rows, 0, 0));
    }
    return st;
}

void web_enqueue_many(struct web *w, const struct web_route *route, struct web_request *q,
                      struct web_reply *r)
{
    struct err err = {0};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    const json_t *jobs = json_object_get(q->json, "jobs");
    size_t count = json_array_size(jobs);
    (void)route;
    if (json_object_size(q->json) != 1 || count == 0 || count > MANY_MAX) {
        reply_error(r, WEB_INVALID, NULL, "body: must be {\"jobs\": […]} with 1 to %d jobs",
                    MANY_MAX);
        return;
    }
    enum status st = enqueue_many(w, jobs, &text, &err);
    if (st == STATUS_OK) {
        reply_json(r, &text);
    } else {
        reply_failure(r, st, &err);
    }
}
