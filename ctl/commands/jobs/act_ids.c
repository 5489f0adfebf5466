/* SPDX-License-Identifier: Apache-2.0
 *
 * Acts on jobs named by id: each in a transaction of its own, and each is reported. */
#include "ctl/commands/jobs/act.h"
#include "ctl/commands/jobs/jobs.h"
#include "ctl/core/table_text.h"
#include "sql/queries.h"

struct acting {
    const struct act *act;
    struct table table;
    enum status worst;
    size_t failed;
    struct err last; /* a failure */
};

static enum status act_one(struct admin *a, const struct act *act, const char *id, char *ret_state,
                           size_t size, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    const char *params[1 + ACT_PARAMETERS_MAX];
    act_parameters(act, id, params);
    enum status st = verb_written(admin_query(a, act->one, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *state = admin_value(rows, 0, 0);
    if (state == NULL) {
        return err_fail(err, STATUS_NOT_FOUND, "job %s not found", id);
    }
    (void)snprintf(ret_state, size, "%s", state);
    return STATUS_OK;
}

static enum status act_all(struct admin *a, const struct ctl_args *args, struct acting *c,
                           struct err *err)
{
    bool is_over = false;
    for (size_t i = 0; i < args->word_count; i++) {
        char state[32] = "";
        struct err why = {0};
        enum status one =
            is_over ? err_fail(&why, c->worst, "not tried: the connection to PostgreSQL was lost")
                    : act_one(a, c->act, args->words[i], state, sizeof state, &why);
        const char *const values[] = {args->words[i], state[0] != '\0' ? state : NULL,
                                      one == STATUS_OK ? NULL : why.msg};
        enum status st = table_add(&c->table, values, err);
        if (st != STATUS_OK) {
            return st;
        }
        c->worst = act_worse(one, c->worst);
        c->failed += one != STATUS_OK;
        c->last = one != STATUS_OK && !is_over ? why : c->last;
        is_over = is_over || (one != STATUS_OK && act_is_end(&why));
    }
    return STATUS_OK;
}

/* Reports the present states, and changes nothing. */
static enum status look_at_one(struct admin *a, const char *id, struct acting *c, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    char list[32];
    const char *const params[] = {list};
    (void)snprintf(list, sizeof list, "{%s}", id);
    enum status st = admin_query(a, &SQL_ADMIN_JOBS_WATCH, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_there = admin_row_count(rows) > 0;
    const char *const values[] = {id, is_there ? admin_value(rows, 0, 2) : NULL,
                                  is_there ? NULL : "not found"};
    return table_add(&c->table, values, err);
}

static enum status look_at_all(struct ctl *ctl, struct admin *a, const struct ctl_args *args,
                               struct acting *c, struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < args->word_count; i++) {
        st = look_at_one(a, args->words[i], c, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return table_print(&c->table, ctl->is_json, ctl->out, err);
}

static enum status try_all(struct ctl *ctl, const struct ctl_args *args, struct acting *c,
                           struct err *err)
{
    auto_admin struct admin *a = NULL;
    for (size_t i = 0; i < args->word_count; i++) {
        enum status st = jobs_check_id(args->words[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl_value(args, "dry-run") != NULL) {
        return look_at_all(ctl, a, args, c, err);
    }
    st = act_all(a, args, c, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl->is_json || args->word_count > 1 || c->failed == 0) {
        st = table_print(&c->table, ctl->is_json, ctl->out, err);
    }
    if (st != STATUS_OK || c->failed == 0) {
        return st;
    }
    if (c->failed == 1) {
        return err_fail(err, c->worst, "%s", c->last.msg);
    }
    return err_fail(err, c->worst, "%zu of %zu jobs were not %s", c->failed, args->word_count,
                    c->act->past);
}

enum status act_on_ids(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                       struct err *err)
{
    static const struct table_column columns[] = {
        {"id", CELL_NUMBER}, {"state", CELL_TEXT}, {"error", CELL_TEXT | CELL_PROSE}};
    struct acting c = {.act = act, .table = TABLE("jobs", columns)};
    enum status st = try_all(ctl, args, &c, err);
    table_release(&c.table);
    return st;
}
