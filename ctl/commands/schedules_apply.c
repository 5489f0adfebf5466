/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl schedules apply, and the schedules section of claimctl apply. */
#include "ctl/commands/file_apply.h"
#include "ctl/commands/schedules.h"
#include "sql/queries.h"

#define DETAIL_MAX ((size_t)256 << 10)

/* ---- one schedule ---- */

static enum status set_one(struct file_apply *p, schedule_seen *seen, const char *const *values,
                           struct err *err)
{
    auto_admin_rows struct admin_rows *before = NULL;
    auto_admin_rows struct admin_rows *set = NULL;
    auto_admin_rows struct admin_rows *after = NULL;
    enum status st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_VALUES, values, &before, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_SET, values, &set, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_VALUES, values, &after, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct schedule_change change = {.name = values[SCHEDULE_NAME],
                                           .next_at = admin_value(set, 0, 1),
                                           .before = admin_row_count(before) > 0 ? before : NULL,
                                           .after = after};
    return seen(p, &change, err);
}

/* Converts the durations of claimctl, which schedule_file_check() has checked, to intervals of
 * PostgreSQL. */
static enum status set_row(struct file_apply *p, schedule_seen *seen, const struct admin_rows *rows,
                           int row, struct err *err)
{
    char intervals[SCHEDULE_FIELDS][SCHEDULE_INTERVAL_MAX];
    const char *values[SCHEDULE_FIELDS];
    enum status st = STATUS_OK;
    for (int i = 0; st == STATUS_OK && i < SCHEDULE_FIELDS; i++) {
        enum schedule_field field = (enum schedule_field)i;
        values[i] = admin_value(rows, row, i);
        if (values[i] != NULL && schedule_is_interval(field)) {
            st = schedule_interval(field, schedule_field_key(field), values[i], intervals[i], err);
            values[i] = intervals[i];
        }
    }
    if (st == STATUS_OK) {
        st = set_one(p, seen, values, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "schedules[%d] '%.64s'", row, values[SCHEDULE_NAME]);
    }
    return st;
}

/* ---- all of them ---- */

static enum status set_all(struct file_apply *p, schedule_seen *seen, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(p->a, &SQL_ADMIN_SCHEDULES_READ, &p->text, &rows, err);
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows); i++) {
        st = set_row(p, seen, rows, i, err);
    }
    return st;
}

static enum status prune(struct file_apply *p, schedule_seen *seen, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(p->a, &SQL_ADMIN_SCHEDULES_OTHERS, &p->text, &rows, err);
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows); i++) {
        const struct schedule_change change = {.name = admin_value(rows, i, 0)};
        auto_admin_rows struct admin_rows *gone = NULL;
        st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_DELETE, &change.name, &gone, err);
        if (st == STATUS_OK) {
            st = seen(p, &change, err);
        }
        p->removed++;
    }
    return st;
}

enum status schedules_write(struct file_apply *p, schedule_seen *seen, struct err *err)
{
    enum status st = set_all(p, seen, err);
    if (st != STATUS_OK || !p->is_pruning) {
        return st;
    }
    return prune(p, seen, err);
}

bool schedule_differs(const struct schedule_change *c, enum schedule_field field,
                      const char **ret_was, const char **ret_is)
{
    const char *was = admin_value(c->before, 0, (int)field);
    const char *is = admin_value(c->after, 0, (int)field);
    *ret_was = was == NULL ? "none" : was;
    *ret_is = is == NULL ? "none" : is;
    return was == NULL || is == NULL ? was != is : strcmp(was, is) != 0;
}

/* ---- the command ---- */

/* Describes the changes: "cron: 0 1 * * * -> 0 2 * * *; zone: …". */
static enum status describe(const struct schedule_change *c, struct buf *out, struct err *err)
{
    const char *was = NULL;
    const char *is = NULL;
    for (int i = 0; i < SCHEDULE_FIELDS; i++) {
        if (!schedule_differs(c, (enum schedule_field)i, &was, &is)) {
            continue;
        }
        enum status st = buf_printf(out, err, "%s%s: %.1000s -> %.1000s", out->len > 0 ? "; " : "",
                                    schedule_field_key((enum schedule_field)i), was, is);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status add_row(struct file_apply *p, const struct schedule_change *c, struct err *err)
{
    autobuf struct buf detail = BUF_INIT(DETAIL_MAX);
    bool is_both = c->before != NULL && c->after != NULL;
    enum status st = is_both ? describe(c, &detail, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    bool is_changed = detail.len > 0;
    const char *what = c->after == NULL    ? "delete"
                       : c->before == NULL ? "add"
                       : is_changed        ? "change"
                                           : "same";
    const char *row[] = {what, c->name, c->next_at, is_changed ? buf_at(&detail) : NULL};
    return table_add(&p->table, row, err);
}

static enum status write_all(struct file_apply *p, struct err *err)
{
    return schedules_write(p, add_row, err);
}

enum status schedules_apply(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"change", CELL_TEXT},
                                                  {"name", CELL_TEXT},
                                                  {"next_at", CELL_TEXT},
                                                  {"detail", CELL_TEXT | CELL_PROSE}};
    auto_file_apply struct file_apply p = {.noun = "schedule",
                                           .columns = columns,
                                           .column_count = ARRAY_COUNT(columns),
                                           .check = schedule_file_check,
                                           .write = write_all};
    enum status st = file_apply(ctl, args, &p, err);
    if (st != STATUS_OK) {
        return st;
    }
    return table_print(&p.table, ctl->is_json, ctl->out, err);
}
