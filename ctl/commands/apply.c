/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl apply: sets queues, kinds, keys and schedules as a file describes them. */
#include "base/parse.h"
#include "ctl/commands/apply_file.h"
#include "ctl/commands/file_apply.h"
#include "ctl/commands/schedules.h"
#include "sql/queries.h"

#define BLANK_MAX 1024
#define SHOWN_MAX 1000 /* bytes of a value to show */

enum column { CHANGE, WHAT, NAME, FIELD, WAS, IS, COLUMNS };
static const struct table_column columns[COLUMNS] = {
    [CHANGE] = {"change", CELL_TEXT}, [WHAT] = {"what", CELL_TEXT}, [NAME] = {"name", CELL_TEXT},
    [FIELD] = {"field", CELL_TEXT},   [WAS] = {"was", CELL_TEXT},   [IS] = {"is", CELL_TEXT},
};

/* ---- queues, kinds, keys ---- */

/* Adds the differences between two results of admin_apply_values.sql to the table. */
static enum status add_changes(struct file_apply *p, enum apply_section section, const char *name,
                               const struct admin_rows *before, const struct admin_rows *after,
                               struct err *err)
{
    for (int i = 0; i < admin_row_count(before); i++) {
        const char *was = admin_value(before, i, 1);
        const char *is = admin_value(after, i, 1);
        if (was == NULL || is == NULL ? was == is : strcmp(was, is) == 0) {
            continue;
        }
        const char *row[COLUMNS] = {
            "change", apply_section_noun(section), name, admin_value(before, i, 0), was, is};
        enum status st = table_add(&p->table, row, err);
        if (st != STATUS_OK) {
            return st;
        }
        p->removed += is == NULL && p->is_pruning ? 1 : 0;
    }
    return STATUS_OK;
}

/* "patch.weight: must be…" of a function becomes "queues.mail.weight: must be…". */
static void name_place(enum apply_section section, const char *name, struct err *err)
{
    static const char patch[] = "patch.";
    const struct err said = *err;
    bool is_patch = strncmp(said.msg, patch, sizeof patch - 1) == 0;
    bool is_field = is_patch || strncmp(said.msg, "max_running:", 12) == 0; /* of a key */
    (void)snprintf(err->msg, sizeof err->msg, "%s.%.64s%s%.400s", apply_section_key(section), name,
                   is_field ? "." : ": ", said.msg + (is_patch ? sizeof patch - 1 : 0));
}

static enum status set_one(struct file_apply *p, enum apply_section section,
                           const char *const *item, struct err *err)
{
    static const struct pg_statement *const statements[] = {
        [APPLY_QUEUES] = &SQL_ADMIN_QUEUE_SET,
        [APPLY_KINDS] = &SQL_ADMIN_KIND_PATCH,
        [APPLY_KEYS] = &SQL_ADMIN_KEY_SET,
    };
    const char *const place[] = {apply_section_key(section), item[0]};
    auto_admin_rows struct admin_rows *before = NULL;
    auto_admin_rows struct admin_rows *set = NULL;
    auto_admin_rows struct admin_rows *after = NULL;
    enum status st = admin_query(p->a, &SQL_ADMIN_APPLY_VALUES, place, &before, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(p->a, statements[section], item, &set, err);
    if (st == STATUS_INVALID) {
        name_place(section, item[0], err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(p->a, &SQL_ADMIN_APPLY_VALUES, place, &after, err);
    if (st != STATUS_OK) {
        return st;
    }
    return add_changes(p, section, item[0], before, after, err);
}

static enum status write_section(struct file_apply *p, enum apply_section section, struct err *err)
{
    autobuf struct buf blank = BUF_INIT(BLANK_MAX);
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = apply_section_blank(section, &blank, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {p->text, apply_section_key(section),
                                  p->is_pruning ? buf_at(&blank) : NULL};
    st = admin_query(p->a, &SQL_ADMIN_APPLY_ITEMS, params, &rows, err);
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows); i++) {
        const char *const item[] = {admin_value(rows, i, 0), admin_value(rows, i, 1)};
        bool is_empty = strcmp(item[1], "{}") == 0;
        st = is_empty ? STATUS_OK : set_one(p, section, item, err);
    }
    return st;
}

/* ---- schedules ---- */

static enum status add_schedule(struct file_apply *p, const struct schedule_change *c,
                                struct err *err)
{
    if (c->before == NULL || c->after == NULL) {
        const char *row[COLUMNS] = {c->after == NULL ? "delete" : "add", "schedule", c->name};
        return table_add(&p->table, row, err);
    }
    const char *row[COLUMNS] = {"change", "schedule", c->name};
    for (int i = 0; i < SCHEDULE_FIELDS; i++) {
        row[FIELD] = schedule_field_key((enum schedule_field)i);
        if (!schedule_differs(c, (enum schedule_field)i, &row[WAS], &row[IS])) {
            continue;
        }
        enum status st = table_add(&p->table, row, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* ---- all sections ---- */

static enum status write_all(struct file_apply *p, struct err *err)
{
    for (size_t i = 0; i < APPLY_SECTIONS; i++) {
        enum status st = write_section(p, (enum apply_section)i, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return schedules_write(p, add_schedule, err);
}

/* Replaces control characters, which would garble the lines. */
static void put_text(FILE *out, const char *text)
{
    char shown[SHOWN_MAX];
    (void)utf8_clean(text, strlen(text), shown, sizeof shown);
    for (char *at = shown; *at != '\0'; at++) {
        (void)fputc((unsigned char)*at < ' ' || *at == '\x7f' ? '?' : *at, out);
    }
}

static void put_line(FILE *out, const struct table *t, size_t row)
{
    const char *was = table_cell(t, row, WAS);
    const char *is = table_cell(t, row, IS);
    (void)fprintf(out, "%s ", table_cell(t, row, WHAT));
    put_text(out, table_cell(t, row, NAME));
    if (table_cell(t, row, FIELD) == NULL) {
        bool is_added = strcmp(table_cell(t, row, CHANGE), "add") == 0;
        (void)fputs(is_added ? ": added\n" : ": deleted\n", out);
        return;
    }
    (void)fprintf(out, ": %s ", table_cell(t, row, FIELD));
    put_text(out, was == NULL ? "none" : was);
    (void)fputs(" → ", out);
    put_text(out, is == NULL ? "none" : is);
    (void)fputc('\n', out);
}

enum status apply(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_file_apply struct file_apply p = {.noun = "setting",
                                           .columns = columns,
                                           .column_count = COLUMNS,
                                           .check = apply_file_check,
                                           .write = write_all};
    enum status st = file_apply(ctl, args, &p, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl->is_json) {
        return table_print(&p.table, true, ctl->out, err);
    }
    for (size_t row = 0; row < p.table.row_count; row++) {
        put_line(ctl->out, &p.table, row);
    }
    if (p.table.row_count == 0) {
        (void)fputs("unchanged\n", ctl->out);
    }
    return STATUS_OK;
}
