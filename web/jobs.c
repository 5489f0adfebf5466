/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of jobs: the list, one job, and acts on one. */
#include "web/jobs.h"

#include "base/clock.h"
#include "base/parse.h"
#include "sql/queries.h"

#include <stdio.h>

#define LIMIT_MAX 500
#define LIMIT_STANDARD 50
#define LIST_US (150 * US_PER_MS) /* the page goes on by itself */
#define SEARCH_US US_PER_S
#define SEARCH_TEXT_MAX 200

/* ---- filters ---- */

enum status jobs_option(struct ctl_args *args, const char *name, const char *value, struct err *err)
{
    for (size_t i = 0; i < FILTER_OPTION_COUNT; i++) {
        if (strcmp(filter_options[i], name) != 0) {
            continue;
        }
        if (args->given_count == CTL_GIVEN_MAX) {
            return err_fail(err, STATUS_INVALID, "%s: more than %d values", name, CTL_GIVEN_MAX);
        }
        args->given[args->given_count].name = filter_options[i];
        args->given[args->given_count].value = value;
        args->given_count++;
        return STATUS_OK;
    }
    return err_fail(
        err, STATUS_INVALID,
        "%.40s: there is no such parameter; allowed: state, kind, queue, tag, worker, "
        "since, until, older-than, error, metadata, batch, owner, map, q, limit, after, columns",
        name);
}

enum status jobs_check_private(const struct web *w, const struct web_request *q,
                               const struct ctl_args *args, struct err *err)
{
    if (!web_shows_private(w, q) && ctl_value(args, "metadata") != NULL) {
        return err_fail(err, STATUS_INVALID, "metadata: only for operators, unless web.show_args");
    }
    return STATUS_OK;
}

enum status jobs_filter(struct walk *walk, const struct ctl_args *args, struct err *err)
{
    enum status st = verb_now(walk->admin, &walk->table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    return filter_read(&walk->filter, args, walk->table.now_us, err);
}

/* ---- the list ---- */

struct page {
    struct ctl_args args;
    int64_t limit;
    int64_t after;
    const char *columns;
    const char *search; /* a text within the args; NULL = any */
};

static enum status check_search(const char *text, struct err *err)
{
    size_t len = strlen(text);
    return len > 0 && len <= SEARCH_TEXT_MAX
               ? STATUS_OK
               : err_fail(err, STATUS_INVALID, "must have 1 to %d bytes", SEARCH_TEXT_MAX);
}

static enum status read_page(const struct web_request *q, struct page *ret, struct err *err)
{
    *ret = (struct page){.limit = LIMIT_STANDARD, .after = INT64_MAX};
    for (size_t i = 0; i < q->query_count; i++) {
        const char *name = q->query[i].name;
        const char *value = q->query[i].value;
        enum status st = STATUS_OK;
        if (strcmp(name, "limit") == 0) {
            st = parse_i64(value, strlen(value), 1, LIMIT_MAX, &ret->limit, err);
        } else if (strcmp(name, "after") == 0) {
            st = parse_i64(value, strlen(value), 1, INT64_MAX, &ret->after, err);
        } else if (strcmp(name, "columns") == 0) {
            ret->columns = value;
        } else if (strcmp(name, "q") == 0) {
            ret->search = value;
            st = check_search(value, err);
        } else {
            st = jobs_option(&ret->args, name, value, err);
        }
        if (st != STATUS_OK) {
            err_prefix(err, "%.20s", name);
            return st;
        }
    }
    return STATUS_OK;
}

const struct table_column jobs_page_columns[JOBS_PAGE_COLUMNS] = {
    {"next_after", CELL_NUMBER}, {"searched", CELL_NUMBER}, {"is_cut", CELL_BOOL}};

static enum status put_page(const struct web *w, const struct web_request *q, struct walk *walk,
                            struct text *out, struct err *err)
{
    char next[24];
    char searched[24];
    const char *const values[] = {walk->next > 0 ? next : NULL,
                                  walk->search != NULL ? searched : NULL,
                                  walk->is_cut && walk->next > 0 ? "t" : "f"};
    auto_table struct table page = TABLE("page", jobs_page_columns);
    const struct table *const tables[] = {&walk->table, &page};
    page.is_record = true;
    (void)snprintf(next, sizeof next, "%lld", (long long)walk_after(walk));
    (void)snprintf(searched, sizeof searched, "%lld", (long long)walk->searched);
    enum status st = table_add(&page, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    web_hide(w, q, &walk->table);
    tables_put_json(tables, 2, out);
    return text_end(out, err);
}

static enum status list(struct web *w, const struct web_request *q, struct walk *walk,
                        const struct page *page, struct text *out, struct err *err)
{
    enum status st = walk_columns(walk, page->columns, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = jobs_filter(walk, &page->args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = walk_start(walk, page->after, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = walk_on(walk, walk->search != NULL ? SEARCH_US : LIST_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    return put_page(w, q, walk, out, err);
}

static enum status list_once(struct web *w, const struct web_request *q, const struct page *page,
                             struct text *out, struct err *err)
{
    struct admin *a = NULL;
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct walk walk = WALK(a, page->limit);
    walk.search = page->search;
    st = list(w, q, &walk, page, out, err);
    walk_release(&walk);
    backends_give(w->backends, a, err);
    return st;
}

void web_jobs_list(struct web *w, const struct web_route *route, struct web_request *q,
                   struct web_reply *r)
{
    struct page page;
    struct err err = {0};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    (void)route;
    enum status st = read_page(q, &page, &err);
    if (st == STATUS_OK && page.search != NULL && !web_shows_private(w, q)) {
        reply_error(r, WEB_FORBIDDEN, NULL,
                    "q: only operators may search in args, unless web.show_args");
        return;
    }
    if (st == STATUS_OK) {
        st = jobs_check_private(w, q, &page.args, &err);
    }
    if (st == STATUS_OK) {
        st = list_once(w, q, &page, &text, &err);
    }
    if (st == STATUS_UNAVAILABLE) { /* the session may have ended while nobody used it */
        err = (struct err){0};
        text_release(&text);
        st = list_once(w, q, &page, &text, &err);
    }
    if (st == STATUS_OK) {
        reply_json(r, &text);
    } else {
        reply_failure(r, st, &err);
    }
}

/* ---- one job ---- */

/* Reads the version that follows "version": in our own JSON. */
static void set_etag(struct web_reply *r)
{
    json_auto_t *root = json_loadb(text_str(&r->text), r->text.buf.len, 0, NULL);
    const json_t *version = json_object_get(json_object_get(root, "job"), "version");
    if (json_is_integer(version)) {
        (void)snprintf(r->etag, sizeof r->etag, "\"%lld\"", (long long)json_integer_value(version));
    }
}

void web_job_show(struct web *w, const struct web_route *route, struct web_request *q,
                  struct web_reply *r)
{
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    enum status st = web_call(route, route->verb, q, &call, &texts, &err);
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    web_run_call(w, q, &call, r);
    if (r->status != 200) {
        return;
    }
    set_etag(r);
    if (r->etag[0] == '\0') {
        reply_error(r, WEB_NOT_FOUND, NULL, "job %.24s not found", request_in_path(q, "id"));
    }
}

/* ---- acts on one job ---- */

static const struct jobs_act acts[] = {
    {"retry", &SQL_ADMIN_RETRY, &SQL_ADMIN_RETRY_MANY, "discarded", .has_even_completed = true},
    {"cancel", &SQL_ADMIN_CANCEL, &SQL_ADMIN_CANCEL_MANY,
     "waiting,scheduled,retryable,available,running", .has_even_completed = false},
    {"delete", &SQL_ADMIN_DELETE, &SQL_ADMIN_DELETE_MANY, "completed,cancelled,discarded",
     .has_even_completed = false}};

const struct jobs_act *jobs_act_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(acts); i++) {
        if (strcmp(acts[i].name, name) == 0) {
            return &acts[i];
        }
    }
    return NULL;
}

enum status jobs_act_one(struct admin *a, const struct jobs_act *act, const char *id,
                         const char *even_completed, char ret_state[32], struct err *err)
{
    const char *const params[] = {id, even_completed};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = verb_written(admin_query(a, act->one, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *state = admin_value(rows, 0, 0);
    if (state == NULL) {
        return err_fail(err, STATUS_NOT_FOUND, "job %s not found", id);
    }
    (void)snprintf(ret_state, 32, "%s", state);
    return STATUS_OK;
}

static void put_acted(const struct web_route *route, const char *id, const char *state,
                      struct web_reply *r)
{
    struct err err = {0};
    const char *const values[] = {id, state};
    auto_table struct table t = {.name = "job", .is_record = true};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    const struct table *const tables[] = {&t};
    t.columns = route->shapes[0].columns;
    t.column_count = route->shapes[0].column_count;
    enum status st = table_add(&t, values, &err);
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    tables_put_json(tables, 1, &text);
    reply_json(r, &text);
}

/* The act is the last segment of the path, or the method. */
static const struct jobs_act *act_of(const struct web_route *route)
{
    return strcmp(route->method, "DELETE") == 0 ? jobs_act_find("delete")
                                                : jobs_act_find(strrchr(route->path, '/') + 1);
}

static enum status read_retry(const struct web_request *q, const struct jobs_act *act,
                              const char **ret_even_completed, struct err *err)
{
    int64_t id = 0;
    const char *text = request_in_path(q, "id");
    const json_t *even = json_object_get(q->json, "even_completed");
    size_t known = act->has_even_completed && even != NULL ? 1 : 0;
    *ret_even_completed = json_is_true(even) ? "t" : "f";
    if (json_object_size(q->json) != known || (known == 1 && !json_is_boolean(even))) {
        return err_fail(err, STATUS_INVALID, "body: allowed: %s",
                        act->has_even_completed ? "even_completed, true or false" : "{}");
    }
    enum status st = parse_i64(text, strlen(text), 1, INT64_MAX, &id, err);
    if (st != STATUS_OK) {
        err_prefix(err, "id");
    }
    return st;
}

void web_job_act(struct web *w, const struct web_route *route, struct web_request *q,
                 struct web_reply *r)
{
    struct err err = {0};
    struct admin *a = NULL;
    char state[32] = "";
    const char *even_completed = NULL;
    const char *id = request_in_path(q, "id");
    const struct jobs_act *act = act_of(route);
    enum status st = read_retry(q, act, &even_completed, &err);
    if (st == STATUS_OK) {
        st = backends_take(w->backends, &a, &err);
    }
    if (st == STATUS_OK) {
        st = jobs_act_one(a, act, id, even_completed, state, &err);
        backends_give(w->backends, a, &err);
    }
    if (st == STATUS_OK) {
        put_acted(route, id, state, r);
    } else {
        reply_failure(r, st, &err);
    }
}
