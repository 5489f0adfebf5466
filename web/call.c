/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes that are verbs: parameters from path, query and body, and the answer as JSON. */
#include "web/api.h"

#include <stdio.h>

/* ---- private values ---- */

bool web_is_private(const char *column)
{
    static const char *const names[] = {"args",   "metadata", "result",  "checkpoint",
                                        "before", "after",    "command", "query"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], column) == 0) {
            return true;
        }
    }
    return false;
}

bool web_shows_private(const struct web *w, const struct web_request *q)
{
    return q->caller.role == WEB_OPERATOR || w->config->web.shows_args;
}

/* `after` is private as JSON only: that of an edit. In a batch it is a list of ids. */
void web_hide(const struct web *w, const struct web_request *q, struct table *t)
{
    if (web_shows_private(w, q)) {
        return;
    }
    for (size_t i = 0; i < t->column_count; i++) {
        bool is_text = (t->columns[i].type & CELL_TYPE_MASK) != CELL_JSON;
        bool is_hidden = web_is_private(t->columns[i].name) &&
                         !(is_text && strcmp(t->columns[i].name, "after") == 0);
        for (size_t row = 0; row < t->row_count && is_hidden; row++) {
            free(t->cells[row * t->column_count + i]);
            t->cells[row * t->column_count + i] = NULL;
        }
    }
}

/* ---- parameters ---- */

void web_texts_release(struct web_texts *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->list[i]);
    }
    t->count = 0;
}

static const char *keep(struct web_texts *texts, char *text, struct err *err)
{
    if (text == NULL || texts->count == ARRAY_COUNT(texts->list)) {
        free(text);
        err_set(err, STATUS_NOMEM, 0, "out of memory");
        return NULL;
    }
    texts->list[texts->count++] = text;
    return text;
}

enum status web_put_array(const char *label, const json_t *array, struct text *out, struct err *err)
{
    size_t i = 0;
    const json_t *item = NULL;
    text_put(out, "{");
    json_array_foreach(array, i, item)
    {
        text_put(out, "%s", i > 0 ? "," : "");
        if (json_is_string(item)) {
            text_put(out, "\"");
            text_put_escaped(out, json_string_value(item), json_string_length(item), "\"\\");
            text_put(out, "\"");
        } else if (json_is_integer(item)) {
            text_put(out, "%lld", (long long)json_integer_value(item));
        } else {
            return err_fail(err, STATUS_INVALID, "%s: must have texts or numbers only", label);
        }
    }
    text_put(out, "}");
    return text_end(out, err);
}

static const char *array_text(const char *label, const json_t *value, struct web_texts *texts,
                              struct err *err)
{
    autotext struct text out = TEXT_INIT(WEB_BODY_MAX * 2);
    if (web_put_array(label, value, &out, err) != STATUS_OK) {
        return NULL;
    }
    return keep(texts, strdup(text_str(&out)), err);
}

/* Parameters that are themselves JSON take any value. */
static bool takes_json(const char *name)
{
    return strcmp(name, "args") == 0 || strcmp(name, "metadata") == 0;
}

/* Returns the value as text; NULL: not given, or refused. */
static const char *text_of(const char *name, bool is_array, const json_t *value,
                           struct web_texts *texts, struct err *err)
{
    char number[32];
    if (json_is_null(value)) {
        return NULL;
    }
    if (takes_json(name)) {
        return keep(texts, json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT), err);
    }
    if (is_array != json_is_array(value)) {
        err_set(err, STATUS_INVALID, 0, "%s: must be %s", name,
                is_array ? "an array" : "a text or number");
        return NULL;
    }
    if (is_array) {
        return array_text(name, value, texts, err);
    }
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_boolean(value)) {
        return json_is_true(value) ? "t" : "f";
    }
    if (json_is_integer(value)) {
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        return keep(texts, strdup(number), err);
    }
    err_set(err, STATUS_INVALID, 0, "%s: must be a text or number", name);
    return NULL;
}

static bool is_flag(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "t") == 0 ||
           strcmp(text, "f") == 0;
}

static enum status set_param(struct verb_call *call, const struct verb_param *p, const char *text,
                             struct err *err)
{
    if (p->form == PARAM_FLAG && text != NULL && !is_flag(text)) {
        return err_fail(err, STATUS_INVALID, "%s: must be true or false", p->name);
    }
    if (p->form == PARAM_FLAG && text != NULL) {
        text = text[0] == 't' ? "t" : "f";
    }
    return verb_set(call, p->name, p->name, text, err);
}

static bool is_in_path(const struct web_request *q, const char *name)
{
    for (size_t i = 0; i < q->in_path_count; i++) {
        if (strcmp(q->in_path[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_in_list(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0'; at += strspn(at, ",")) {
        size_t item = strcspn(at, ",");
        if (item == len && strncmp(at, name, len) == 0) {
            return true;
        }
        at += item;
    }
    return false;
}

/* True if a query or body may have this parameter of the verb. */
static bool is_asked(const struct web_route *route, const struct web_request *q, const char *name)
{
    bool is_fixed = route->fixed.param != NULL && strcmp(route->fixed.param, name) == 0;
    return !is_fixed && !is_in_path(q, name) && !is_in_list(route->not_asked, name);
}

static size_t find_param(const struct web_route *route, const struct verb *verb,
                         const struct web_request *q, const char *name)
{
    size_t i = 0;
    while (i < verb->param_count &&
           (strcmp(verb->params[i].name, name) != 0 || !is_asked(route, q, name))) {
        i++;
    }
    return i;
}

static enum status refuse_name(const struct web_route *route, const struct verb *verb,
                               const struct web_request *q, const char *name, struct err *err)
{
    char known[400] = "";
    for (size_t i = 0; i < verb->param_count; i++) {
        size_t len = strlen(known);
        if (is_asked(route, q, verb->params[i].name)) {
            (void)snprintf(known + len, sizeof known - len, "%s%s", len > 0 ? ", " : "",
                           verb->params[i].name);
        }
    }
    return err_fail(err, STATUS_INVALID, "%.40s: there is no such parameter; allowed: %s", name,
                    known[0] == '\0' ? "none" : known);
}

static bool is_array_type(const struct verb *verb, size_t param)
{
    unsigned type = verb->statement->types[param];
    return type == PG_TEXT_ARRAY || type == PG_INT8_ARRAY || type == PG_INT4_ARRAY;
}

static enum status set_from_query(const struct web_route *route, const struct web_request *q,
                                  struct verb_call *call, struct err *err)
{
    const struct verb *verb = call->verb;
    for (size_t i = 0; i < q->query_count; i++) {
        size_t param = find_param(route, verb, q, q->query[i].name);
        if (param == verb->param_count) {
            return refuse_name(route, verb, q, q->query[i].name, err);
        }
        enum status st = set_param(call, &verb->params[param], q->query[i].value, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status set_from_body(const struct web_route *route, const struct web_request *q,
                                 struct verb_call *call, struct web_texts *texts, struct err *err)
{
    const struct verb *verb = call->verb;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(q->json, name, value)
    {
        size_t param = find_param(route, verb, q, name);
        if (param == verb->param_count) {
            return refuse_name(route, verb, q, name, err);
        }
        const char *text = text_of(name, is_array_type(verb, param), value, texts, err);
        if (err->status != STATUS_OK) {
            return err->status;
        }
        enum status st = set_param(call, &verb->params[param], text, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status web_call(const struct web_route *route, const struct verb *verb,
                     const struct web_request *q, struct verb_call *ret, struct web_texts *texts,
                     struct err *err)
{
    *ret = (struct verb_call){.verb = verb};
    for (size_t i = 0; i < q->in_path_count; i++) {
        const char *name = q->in_path[i].name;
        bool has = false;
        for (size_t p = 0; p < verb->param_count; p++) {
            has = has || strcmp(verb->params[p].name, name) == 0;
        }
        enum status st = has ? verb_set(ret, name, name, q->in_path[i].value, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (route->fixed.param != NULL) {
        verb_put(ret, route->fixed.param, route->fixed.value);
    }
    enum status st = set_from_query(route, q, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    return set_from_body(route, q, ret, texts, err);
}

/* ---- running ---- */

static enum status run_once(struct web *w, const struct verb_call *call, struct answer *ret,
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

void web_run_call(struct web *w, const struct web_request *q, const struct verb_call *call,
                  struct web_reply *r)
{
    struct err err = {0};
    auto_answer struct answer answer = {.count = 0};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    const struct table *tables[VERB_TABLES_MAX];
    enum status st = run_once(w, call, &answer, &err);
    if (st == STATUS_UNAVAILABLE && call->verb->method == NULL) {
        /* The session may have ended while nobody used it. */
        answer_release(&answer);
        err = (struct err){0};
        st = run_once(w, call, &answer, &err);
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    for (size_t i = 0; i < answer.count; i++) {
        web_hide(w, q, &answer.tables[i]);
        tables[i] = &answer.tables[i];
    }
    tables_put_json(tables, answer.count, &text);
    reply_json(r, &text);
}
