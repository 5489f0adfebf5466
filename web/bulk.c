/* SPDX-License-Identifier: Apache-2.0
 *
 * Acts on many jobs: on those of a list, or on those that a filter chooses. Each job is
 * independent. A filter is worked on for a bounded time; the same request then goes on. */
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/options/id_list.h"
#include "web/jobs.h"

#include <stdio.h>

#define IDS_MAX 1000
#define LIMIT_MAX 10000
#define SHOWN_MAX 100
#define BATCH 200
#define GATHER_US (5 * US_PER_S)
#define ACT_US (15 * US_PER_S)

struct bulk {
    struct web *w;
    struct admin *admin;
    const struct jobs_act *act;
    struct ctl_args args;
    char *values[CTL_GIVEN_MAX]; /* texts made from numbers */
    size_t value_count;
    bool is_dry_run;
    int64_t limit;
    int64_t matched;
    int64_t done;
    int64_t failed;
    bool is_cut;
    struct err broken;     /* why the session is of no use any more */
    struct table failures; /* some of them */
};

static const struct table_column failed_columns[] = {{"id", CELL_NUMBER}, {"error", CELL_TEXT}};
static const struct table_column one_columns[] = {
    {"id", CELL_NUMBER}, {"state", CELL_TEXT}, {"error", CELL_TEXT}};

/* After these the connection is of no use, or nobody may do this: the rest is not tried. */
static bool is_end(const struct err *why)
{
    return (why->status == STATUS_TIMEOUT && why->code[0] == '\0') ||
           (why->status == STATUS_INTERNAL && strcmp(why->code, "40P01") != 0) ||
           why->status == STATUS_UNAVAILABLE || why->status == STATUS_UNKNOWN;
}

/* ---- a list of ids ---- */

static enum status act_on_ids(struct bulk *b, const json_t *ids, struct text *out, struct err *err)
{
    size_t i = 0;
    const json_t *item = NULL;
    auto_table struct table t = TABLE("jobs", one_columns);
    const struct table *const tables[] = {&t};
    bool is_over = false;
    json_array_foreach(ids, i, item)
    {
        char id[24];
        char state[32] = "";
        struct err why = {0};
        (void)snprintf(id, sizeof id, "%lld", (long long)json_integer_value(item));
        enum status one = STATUS_UNAVAILABLE;
        if (is_over) {
            err_set(&why, one, 0, "not tried: the session of PostgreSQL was lost");
        } else {
            one = jobs_act_one(b->admin, b->act, id, "t", state, &why);
        }
        const char *const values[] = {id, one == STATUS_OK ? state : NULL,
                                      one == STATUS_OK ? NULL : why.msg};
        enum status st = table_add(&t, values, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (one != STATUS_OK && is_end(&why)) {
            is_over = true;
            b->broken = why;
        }
    }
    tables_put_json(tables, 1, out);
    return text_end(out, err);
}

static enum status check_ids(const json_t *ids, struct err *err)
{
    size_t i = 0;
    const json_t *item = NULL;
    if (json_array_size(ids) == 0 || json_array_size(ids) > IDS_MAX) {
        return err_fail(err, STATUS_INVALID, "ids: must be an array of 1 to %d ids", IDS_MAX);
    }
    json_array_foreach(ids, i, item)
    {
        if (!json_is_integer(item) || json_integer_value(item) < 1) {
            return err_fail(err, STATUS_INVALID, "ids: must be numbers above 0");
        }
    }
    return STATUS_OK;
}

/* ---- a filter ---- */

static enum status note_failure(struct bulk *b, const char *id, const struct err *why,
                                struct err *err)
{
    const char *const values[] = {id, why->msg};
    b->failed++;
    return b->failures.row_count < SHOWN_MAX ? table_add(&b->failures, values, err) : STATUS_OK;
}

static enum status do_singly(struct bulk *b, const struct table *t, size_t from, size_t count,
                             struct err *err)
{
    for (size_t row = from; row < from + count; row++) {
        char state[32];
        struct err why = {0};
        const char *id = table_value(t, row, "id");
        enum status one = jobs_act_one(b->admin, b->act, id, "t", state, &why);
        if (one != STATUS_OK && is_end(&why)) {
            *err = why;
            return one;
        }
        enum status st = one == STATUS_OK ? STATUS_OK : note_failure(b, id, &why, err);
        b->done += one == STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status do_batch(struct bulk *b, const struct table *t, size_t from, size_t count,
                            struct err *err)
{
    struct err why = {0};
    autotext struct text ids = TEXT_INIT((size_t)BATCH * 24);
    auto_admin_rows struct admin_rows *rows = NULL;
    for (size_t row = from; row < from + count; row++) {
        id_list_add(&ids, strtoll(table_value(t, row, "id"), NULL, 10));
    }
    id_list_end(&ids);
    const char *const params[] = {text_str(&ids), "t"};
    enum status st = text_end(&ids, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_written(admin_query(b->admin, b->act->many, params, &rows, &why), &why);
    if (st == STATUS_OK) {
        b->done += (int64_t)count;
        return STATUS_OK;
    }
    if (is_end(&why)) {
        *err = why;
        return st;
    }
    return do_singly(b, t, from, count, err);
}

static enum status do_all(struct bulk *b, const struct table *t, struct err *err)
{
    int64_t end_us = clock_boot_us() + ACT_US;
    for (size_t from = 0; from < t->row_count; from += BATCH) {
        size_t count = t->row_count - from < BATCH ? t->row_count - from : BATCH;
        if (clock_boot_us() > end_us) {
            b->is_cut = true;
            break;
        }
        enum status st = do_batch(b, t, from, count, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%lld of %lld jobs were done, then", (long long)b->done,
                       (long long)b->matched);
            return st;
        }
    }
    return STATUS_OK;
}

static enum status put_summary(struct bulk *b, struct table *rows, struct text *out,
                               struct err *err)
{
    static const struct table_column columns[] = {{"matched", CELL_NUMBER},
                                                  {"done", CELL_NUMBER},
                                                  {"failed", CELL_NUMBER},
                                                  {"is_dry_run", CELL_BOOL},
                                                  {"is_cut", CELL_BOOL}};
    char numbers[3][24];
    const char *const values[] = {numbers[0], numbers[1], numbers[2], b->is_dry_run ? "t" : "f",
                                  b->is_cut ? "t" : "f"};
    auto_table struct table summary = TABLE("summary", columns);
    const struct table *const tables[] = {rows, &summary};
    summary.is_record = true;
    (void)snprintf(numbers[0], sizeof numbers[0], "%lld", (long long)b->matched);
    (void)snprintf(numbers[1], sizeof numbers[1], "%lld", (long long)b->done);
    (void)snprintf(numbers[2], sizeof numbers[2], "%lld", (long long)b->failed);
    enum status st = table_add(&summary, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    tables_put_json(tables, 2, out);
    return text_end(out, err);
}

static enum status gather(struct bulk *b, struct walk *walk, struct err *err)
{
    enum status st = walk_columns(walk, "id,kind,queue,state,error", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = jobs_filter(walk, &b->args, err);
    if (st == STATUS_OK && ctl_value(&b->args, "state") == NULL) {
        st = filter_states(&walk->filter, b->act->states);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = walk_start(walk, INT64_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = walk_on(walk, GATHER_US, err);
    b->matched = (int64_t)walk->table.row_count;
    b->is_cut = walk->next > 0;
    return st;
}

static enum status act_on_filter(struct bulk *b, struct text *out, struct err *err)
{
    struct walk walk = WALK(b->admin, b->limit);
    enum status st = gather(b, &walk, err);
    if (st == STATUS_OK && !b->is_dry_run) {
        st = do_all(b, &walk.table, err);
    }
    if (st == STATUS_OK) {
        struct table shown = walk.table; /* borrows the cells */
        shown.row_count = shown.row_count < SHOWN_MAX ? shown.row_count : SHOWN_MAX;
        st = put_summary(b, b->is_dry_run ? &shown : &b->failures, out, err);
    }
    walk_release(&walk);
    return st;
}

/* ---- the body ---- */

static enum status add_option(struct bulk *b, const char *name, const json_t *value,
                              struct err *err)
{
    if (json_is_string(value)) {
        return jobs_option(&b->args, name, json_string_value(value), err);
    }
    bool is_metadata = json_is_object(value) && strcmp(name, "metadata") == 0;
    char *text = json_is_integer(value) || is_metadata ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (text == NULL || b->value_count == CTL_GIVEN_MAX) {
        free(text);
        return err_fail(err, STATUS_INVALID, "filter.%.40s: must be a text, or an array of texts",
                        name);
    }
    b->values[b->value_count++] = text;
    return jobs_option(&b->args, name, text, err);
}

static enum status read_filter(struct bulk *b, const json_t *filter, struct err *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    if (!json_is_object(filter) || json_object_size(filter) == 0) {
        return err_fail(err, STATUS_INVALID,
                        "filter: must be an object that chooses by something; or name the ids");
    }
    json_object_foreach((json_t *)(uintptr_t)filter, name, value)
    {
        enum status st = json_is_array(value) ? STATUS_OK : add_option(b, name, value, err);
        for (size_t i = 0; st == STATUS_OK && i < json_array_size(value); i++) {
            st = add_option(b, name, json_array_get(value, i), err);
        }
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status check_names(const json_t *body, struct err *err)
{
    static const char *const known[] = {"act", "ids", "filter", "dry_run", "limit"};
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)body, name, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
            is_known = is_known || strcmp(known[i], name) == 0;
        }
        if (!is_known) {
            return err_fail(err, STATUS_INVALID,
                            "%.40s: there is no such parameter; allowed: act, ids, filter, "
                            "dry_run, limit",
                            name);
        }
    }
    return STATUS_OK;
}

static enum status read_body(struct bulk *b, const json_t *body, struct err *err)
{
    const char *act = json_string_value(json_object_get(body, "act"));
    const json_t *ids = json_object_get(body, "ids");
    const json_t *filter = json_object_get(body, "filter");
    const json_t *limit = json_object_get(body, "limit");
    enum status st = check_names(body, err);
    if (st != STATUS_OK) {
        return st;
    }
    b->act = act == NULL ? NULL : jobs_act_find(act);
    b->is_dry_run = json_is_true(json_object_get(body, "dry_run"));
    b->limit = limit == NULL ? LIMIT_MAX : json_integer_value(limit);
    if (b->act == NULL) {
        return err_fail(err, STATUS_INVALID, "act: must be retry, cancel or delete");
    }
    if ((ids == NULL) == (filter == NULL)) {
        return err_fail(err, STATUS_INVALID, "body: must have either ids or filter");
    }
    if (b->limit < 1 || b->limit > LIMIT_MAX) {
        return err_fail(err, STATUS_INVALID, "limit: must be 1 to %d", LIMIT_MAX);
    }
    if (ids != NULL && (b->is_dry_run || limit != NULL)) {
        return err_fail(err, STATUS_INVALID, "dry_run and limit go with filter");
    }
    return ids != NULL ? check_ids(ids, err) : read_filter(b, filter, err);
}

static enum status run(struct bulk *b, const json_t *body, struct text *out, struct err *err)
{
    const json_t *ids = json_object_get(body, "ids");
    enum status st = read_body(b, body, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = backends_take(b->w->backends, &b->admin, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ids != NULL ? act_on_ids(b, ids, out, err) : act_on_filter(b, out, err);
    backends_give(b->w->backends, b->admin, b->broken.status != STATUS_OK ? &b->broken : err);
    return st;
}

void web_bulk(struct web *w, const struct web_route *route, struct web_request *q,
              struct web_reply *r)
{
    struct err err = {0};
    struct bulk b = {.w = w, .failures = TABLE("failed", failed_columns)};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    (void)route;
    enum status st = run(&b, q->json, &text, &err);
    for (size_t i = 0; i < b.value_count; i++) {
        free(b.values[i]);
    }
    table_release(&b.failures);
    if (st == STATUS_OK) {
        reply_json(r, &text);
    } else {
        reply_failure(r, st, &err);
    }
}
