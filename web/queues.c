/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes whose counts are those of a shared answer, or of the minutes that are kept: one queue, and
 * the series of the overview. */
#include "base/clock.h"
#include "web/api.h"

#include <stdio.h>

/* ---- one queue ---- */

/* Returns the row of a queue in the answer that lists all; NULL = there is none. */
static json_t *find_row(const json_t *all, const char *name)
{
    size_t i = 0;
    json_t *row = NULL;
    json_array_foreach(json_object_get(all, "queues"), i, row)
    {
        const char *found = json_string_value(json_object_get(row, "queue"));
        if (found != NULL && strcmp(found, name) == 0) {
            return row;
        }
    }
    return NULL;
}

/* Reads the tables of the verb but for the first, which counts all queues. */
static enum status read_rest(struct admin *a, const struct verb *verb, const char *name,
                             struct text *out, struct err *err)
{
    auto_answer struct answer answer = {.count = 0};
    const struct table *tables[VERB_TABLES_MAX];
    const char *const params[] = {name};
    for (size_t i = 1; i < verb->table_count; i++) {
        struct table *t = &answer.tables[answer.count];
        *t = (struct table){.name = verb->tables[i].name, .is_record = verb->tables[i].is_record};
        tables[answer.count++] = t;
        enum status st = verb_fill(verb->tables[i].verb, a, params, t, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    tables_put_json(tables, answer.count, out);
    return text_end(out, err);
}

static enum status put_queue(struct web *w, const struct verb *verb, const char *name,
                             const json_t *row, struct text *out, struct err *err)
{
    struct admin *a = NULL;
    autotext struct text rest = TEXT_INIT(WEB_ANSWER_MAX);
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_rest(a, verb, name, &rest, err);
    backends_give(w->backends, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    json_auto_t *root = json_loadb(text_str(&rest), rest.buf.len, 0, NULL);
    json_auto_t *copy = json_copy((json_t *)(uintptr_t)row);
    if (root == NULL || json_object_set(root, "queue", copy) != 0) {
        return err_fail(err, STATUS_INTERNAL, "the answer is no JSON");
    }
    autofree char *text = json_dumps(root, JSON_REAL_PRECISION(WEB_PRECISION));
    text_put(out, "%s\n", text == NULL ? "" : text);
    return text_end(out, err);
}

void web_queue_show(struct web *w, const struct web_route *route, struct web_request *q,
                    struct web_reply *r)
{
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    autotext struct text all = TEXT_INIT(WEB_ANSWER_MAX);
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    const char *name = request_in_path(q, "name");
    enum status st = web_call(route, route->verb, q, &call, &texts, &err);
    if (st == STATUS_OK) {
        st = shared_get(w->shared, web_route_of(&VERB_QUEUES), &all, &err);
    }
    json_auto_t *root = json_loadb(text_str(&all), all.buf.len, 0, NULL);
    const json_t *row = st == STATUS_OK ? find_row(root, name) : NULL;
    if (st == STATUS_OK && row == NULL) {
        reply_error(r, WEB_NOT_FOUND, NULL,
                    "queue %s not found: it has no open job, no worker and no setting", name);
        return;
    }
    if (st == STATUS_OK) {
        st = put_queue(w, route->verb, name, row, &text, &err);
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    reply_json(r, &text);
}

/* ---- the series ---- */

static double number(const struct table *t, const char *column)
{
    const char *text = table_value(t, 0, column);
    return text == NULL ? -1 : strtod(text, NULL);
}

enum status web_look_at_minute(struct web *w, struct err *err)
{
    struct admin *a = NULL;
    auto_table struct table t = {.name = "minute"};
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_fill(&VERB_MINUTE, a, NULL, &t, err);
    backends_give(w->backends, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *estimated = table_value(&t, 0, "estimated");
    const struct series_minute minute = {.at_us = clock_wall_us(),
                                         .completed = number(&t, "completed"),
                                         .discarded = number(&t, "discarded"),
                                         .cancelled = number(&t, "cancelled"),
                                         .wait_p95_s = number(&t, "wait_p95_s"),
                                         .run_p95_s = number(&t, "run_p95_s"),
                                         .is_estimated = estimated != NULL && estimated[0] == 't'};
    series_add(w->series, &minute);
    return STATUS_OK;
}

void web_series(struct web *w, const struct web_route *route, struct web_request *q,
                struct web_reply *r)
{
    struct err err = {0};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    bool is_asked = q->query_count == 1 && strcmp(q->query[0].name, "period") == 0;
    (void)route;
    if (q->query_count > 0 && !is_asked) {
        reply_error(r, WEB_INVALID, NULL, "query: allowed: period");
        return;
    }
    enum status st =
        series_put(w->series, is_asked ? q->query[0].value : "15m", clock_wall_us(), &text, &err);
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    reply_json(r, &text);
}
