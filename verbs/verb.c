/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verb.h"

#include "base/parse.h"
#include "sql/queries.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value of the parameter of that name; NULL if there is none or it has no value. */
static const char *param_value(const struct verb_call *call, const char *name)
{
    for (size_t i = 0; i < call->verb->param_count; i++) {
        if (strcmp(call->verb->params[i].name, name) == 0) {
            return call->params[i];
        }
    }
    return NULL;
}

/* Expands the text of a header: replaces {name} with a column of `row` or a parameter. */
static void expand(const struct verb_call *call, const char *text, const struct admin_rows *rows,
                   char *ret, size_t size)
{
    size_t at = 0;
    ret[0] = '\0';
    while (*text != '\0' && at + 1 < size) {
        char name[32] = "";
        char number[16];
        int len = 0;
        if (sscanf(text, "{%31[a-z_]}%n", name, &len) != 1 || len == 0) {
            ret[at++] = *text++;
            ret[at] = '\0';
            continue;
        }
        (void)snprintf(number, sizeof number, "%d", admin_row_count(rows));
        int column = admin_row_count(rows) == 1 ? admin_column(rows, name) : -1;
        const char *value = strcmp(name, "rows") == 0 ? number
                            : column >= 0             ? admin_value(rows, 0, column)
                                                      : param_value(call, name);
        (void)snprintf(ret + at, size - at, "%.80s", value == NULL ? "" : value);
        at += strlen(ret + at);
        text += len;
    }
}

enum status verb_now(struct admin *a, int64_t *ret_us, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_CLOCK, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = admin_value(rows, 0, 0);
    return parse_i64(text, strlen(text), 0, INT64_MAX, ret_us, err);
}

enum status verb_written(enum status st, struct err *err)
{
    bool is_lost = (st == STATUS_UNAVAILABLE || st == STATUS_TIMEOUT) && err->code[0] == '\0';
    if (is_lost) {
        err->status = STATUS_UNKNOWN;
        err_prefix(err, "it is unknown whether this was done; check before you repeat it");
    }
    return is_lost ? STATUS_UNKNOWN : st;
}

/* True if the verb shows times: as ages, they need PostgreSQL's clock. */
static bool has_times(const struct verb *verb)
{
    for (size_t i = 0; i < verb->column_count; i++) {
        if ((verb->columns[i].type & CELL_TYPE_MASK) == CELL_TIME) {
            return true;
        }
    }
    return false;
}

/* *now_us is read from PostgreSQL when a column first needs it; it is 0 until then. */
static enum status add_rows(const struct verb *verb, struct admin *a, const struct admin_rows *rows,
                            int64_t *now_us, struct table *ret, struct err *err)
{
    ret->columns = verb->columns;
    ret->column_count = verb->column_count;
    bool is_asking = has_times(verb) && *now_us == 0;
    enum status st = is_asking ? verb_now(a, now_us, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    ret->now_us = *now_us;
    return table_add_rows(ret, rows, err);
}

static enum status fill(const struct verb *verb, struct admin *a, const char *const *params,
                        int64_t *now_us, struct table *ret, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, verb->statement, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return add_rows(verb, a, rows, now_us, ret, err);
}

enum status verb_fill(const struct verb *verb, struct admin *a, const char *const *params,
                      struct table *ret, struct err *err)
{
    int64_t now_us = 0;
    return fill(verb, a, params, &now_us, ret, err);
}

/* Fills in the rows of another verb, whose parameters get the values of the parameters of the same
 * names. */
static enum status fill_other(const struct verb_call *call, const struct verb *other,
                              struct admin *a, int64_t *now_us, struct table *ret, struct err *err)
{
    const char *params[VERB_PARAMS_MAX] = {NULL};
    for (size_t i = 0; i < other->param_count; i++) {
        params[i] = param_value(call, other->params[i].name);
    }
    return fill(other, a, params, now_us, ret, err);
}

void answer_release(struct answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        table_release(&answer->tables[i]);
    }
}

static enum status fill_tables(const struct verb_call *call, struct admin *a,
                               const struct admin_rows *rows, struct answer *ret, struct err *err)
{
    const struct verb *verb = call->verb;
    int64_t now_us = 0;
    assert(verb->table_count <= VERB_TABLES_MAX);
    for (size_t i = 0; i < verb->table_count; i++) {
        const struct verb_table *shown = &verb->tables[i];
        struct table *table = &ret->tables[ret->count++];
        *table = (struct table){.name = shown->name, .is_record = shown->is_record};
        enum status st = shown->verb == verb
                             ? add_rows(verb, a, rows, &now_us, table, err)
                             : fill_other(call, shown->verb, a, &now_us, table, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (i == 0 && verb->none != NULL && table->row_count == 0) {
            char text[ERR_TEXT_MAX];
            expand(call, verb->none, rows, text, sizeof text);
            return err_fail(err, STATUS_NOT_FOUND, "%s", text);
        }
    }
    return STATUS_OK;
}

enum status verb_run(const struct verb_call *call, struct admin *a, struct answer *ret,
                     struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    *ret = (struct answer){.count = 0};
    enum status st = admin_query(a, call->verb->statement, call->params, &rows, err);
    st = call->verb->method != NULL ? verb_written(st, err) : st;
    if (st != STATUS_OK) {
        return st;
    }
    st = fill_tables(call, a, rows, ret, err);
    if (st == STATUS_OK && call->verb->says != NULL) {
        expand(call, call->verb->says, rows, ret->says, sizeof ret->says);
    }
    return st;
}

enum status verb_preview(const struct verb_call *call, struct admin *a, char *ret_text, size_t size,
                         struct err *err)
{
    struct verb_call dry = *call;
    auto_admin_rows struct admin_rows *rows = NULL;
    ret_text[0] = '\0';
    enum status st = verb_set(&dry, "dry_run", "dry_run", "t", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(a, call->verb->statement, dry.params, &rows, err);
    if (st == STATUS_OK && admin_row_count(rows) > 1) {
        expand(call, call->verb->preview, rows, ret_text, size);
    }
    return st;
}
