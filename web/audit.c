/* SPDX-License-Identifier: Apache-2.0
 *
 * Records each act in claimd.web_audit: who, from where, what, and how it was answered. */
#include "base/log.h"
#include "base/parse.h"
#include "sql/queries.h"
#include "web/api.h"

#include <stdio.h>

#define BODY_SHOWN 2000
#define AUDIT_PAGE 100 /* the limit of admin_audit.sql */

/* Writes the body without what may be private. */
static void put_body(const struct web_request *q, char ret[BODY_SHOWN])
{
    static const char *const left_out[] = {"args", "metadata", "jobs"};
    json_auto_t *copy = q->json == NULL ? json_object() : json_copy(q->json);
    for (size_t i = 0; copy != NULL && i < ARRAY_COUNT(left_out); i++) {
        if (json_object_get(copy, left_out[i]) != NULL) {
            (void)json_object_set_new(copy, left_out[i], json_string("…"));
        }
    }
    autofree char *text = copy == NULL ? NULL : json_dumps(copy, JSON_COMPACT);
    (void)utf8_clean(text == NULL ? "" : text, text == NULL ? 0 : strlen(text), ret, BODY_SHOWN);
}

enum status audit_begin(struct web *w, const struct web_request *q, int64_t *ret_id,
                        struct err *err)
{
    char body[BODY_SHOWN];
    char path[512];
    struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    put_body(q, body);
    (void)utf8_clean(q->path, strlen(q->path), path, sizeof path);
    const char *const params[] = {q->caller.who,
                                  q->caller.role == WEB_OPERATOR ? "operator" : "reader",
                                  q->caller.address,
                                  q->method,
                                  path,
                                  body};
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(a, &SQL_ADMIN_AUDIT_BEGIN, params, &rows, err);
    backends_give(w->backends, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *id = admin_value(rows, 0, 0);
    log_info("act", LOG_TEXT("who", q->caller.who), LOG_TEXT("address", q->caller.address),
             LOG_TEXT("method", q->method), LOG_TEXT("path", path), LOG_TEXT("audit", id));
    return parse_i64(id, strlen(id), 1, INT64_MAX, ret_id, err);
}

void audit_end(struct web *w, int64_t id, unsigned status)
{
    struct err err = {0};
    struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    char texts[2][24];
    const char *const params[] = {texts[0], texts[1]};
    (void)snprintf(texts[0], sizeof texts[0], "%lld", (long long)id);
    (void)snprintf(texts[1], sizeof texts[1], "%u", status);
    enum status st = backends_take(w->backends, &a, &err);
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_AUDIT_END, params, &rows, &err);
        backends_give(w->backends, a, &err);
    }
    if (st != STATUS_OK) {
        log_warn("audit_open", LOG_I64("audit", id), LOG_TEXT("err", err.msg),
                 LOG_TEXT("action", "its status stays unknown"));
    }
}

void audit_trim(struct web *w)
{
    struct err err = {0};
    struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = backends_take(w->backends, &a, &err);
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_AUDIT_TRIM, NULL, &rows, &err);
        backends_give(w->backends, a, &err);
    }
    if (st != STATUS_OK) {
        log_warn("audit_trim_failed", LOG_TEXT("err", err.msg),
                 LOG_TEXT("action", "tries again in an hour"));
    }
}

static enum status list(struct web *w, const struct verb_call *call, struct answer *ret,
                        struct err *err)
{
    struct admin *a = NULL;
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_run(call, a, ret, err);
    backends_give(w->backends, a, err);
    return st;
}

static enum status put_list(const struct web_route *route, const struct table *list_table,
                            struct text *out, struct err *err)
{
    auto_table struct table page = {.name = "page", .is_record = true};
    bool is_full = list_table->row_count == AUDIT_PAGE;
    const char *const values[] = {is_full ? table_value(list_table, AUDIT_PAGE - 1, "id") : NULL};
    const struct table *const tables[] = {list_table, &page};
    page.columns = route->shapes[0].columns;
    page.column_count = route->shapes[0].column_count;
    enum status st = table_add(&page, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    tables_put_json(tables, 2, out);
    return text_end(out, err);
}

void web_audit_list(struct web *w, const struct web_route *route, struct web_request *q,
                    struct web_reply *r)
{
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    auto_answer struct answer answer = {.count = 0};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    enum status st = web_call(route, route->verb, q, &call, &texts, &err);
    if (st == STATUS_OK) {
        st = list(w, &call, &answer, &err);
    }
    if (st == STATUS_OK) {
        st = put_list(route, &answer.tables[0], &text, &err);
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    reply_json(r, &text);
}
