/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/jobs_walk.h"

#include "base/clock.h"
#include "base/parse.h"
#include "ctl/commands/batches.h"
#include "sql/queries.h"

#define RANGE_FIRST 20000
#define RANGE_MAX (INT64_C(1) << 40)
#define STEP_FAST_US (100 * US_PER_MS)
#define STEP_SLOW_US (500 * US_PER_MS)

/* In the order of admin_jobs_list. Those of `is_standard` are shown when nobody chooses. */
static const struct {
    struct table_column column;
    bool is_standard;
} all_columns[] = {
    {{"id", CELL_NUMBER}, true},
    {{"kind", CELL_TEXT}, true},
    {{"queue", CELL_TEXT}, true},
    {{"state", CELL_TEXT}, true},
    {{"priority", CELL_NUMBER | CELL_WIDE}, true},
    {{"attempt", CELL_NUMBER}, true},
    {{"created_at", CELL_TIME}, false},
    {{"ready_at", CELL_TIME}, true},
    {{"attempted_at", CELL_TIME}, false},
    {{"finalized_at", CELL_TIME}, true},
    {{"worker", CELL_TEXT}, false},
    {{"worker_id", CELL_TEXT}, false},
    {{"tags", CELL_TEXT | CELL_LONG}, false},
    {{"args", CELL_JSON | CELL_LONG}, false},
    {{"metadata", CELL_JSON | CELL_LONG}, false},
    {{"result", CELL_JSON | CELL_LONG}, false},
    {{"error", CELL_TEXT | CELL_LONG}, true},
    {{"progress", CELL_TEXT | CELL_LONG}, false},
    {{"owner", CELL_TEXT}, false},
};

/* ---- columns ---- */

static int find_column(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_COUNT(all_columns); i++) {
        const char *known = all_columns[i].column.name;
        if (strlen(known) == len && strncmp(known, name, len) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static enum status add_column(struct walk *w, int source, struct err *err)
{
    struct table *t = &w->table;
    const char *name = all_columns[source].column.name;
    for (size_t i = 0; i < t->column_count; i++) {
        if (w->sources[i] == source) {
            return err_fail(err, STATUS_INVALID, "--columns: '%s' is given twice", name);
        }
    }
    w->columns[t->column_count] = all_columns[source].column;
    w->sources[t->column_count] = source;
    t->column_count++;
    return buf_printf(&w->wanted, err, "%s%s", w->wanted.len > 0 ? "," : "{", name);
}

enum status walk_columns(struct walk *w, const char *list, struct err *err)
{
    const char *at = list;
    for (size_t i = 0; at == NULL && i < ARRAY_COUNT(all_columns); i++) {
        enum status st = all_columns[i].is_standard ? add_column(w, (int)i, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
    }
    while (at != NULL) {
        size_t len = strcspn(at, ",");
        int source = find_column(at, len);
        if (source < 0) {
            return err_fail(err, STATUS_INVALID,
                            "--columns: unknown column '%.*s'; see claimctl jobs list --help",
                            (int)(len < 40 ? len : 40), at);
        }
        enum status st = add_column(w, source, err);
        if (st != STATUS_OK) {
            return st;
        }
        w->columns[w->table.column_count - 1].type &= ~CELL_WIDE; /* asked for by name */
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    w->table.columns = w->columns;
    return buf_append_text(&w->wanted, "}", err);
}

/* ---- looking ---- */

static enum status take_rows(struct walk *w, const struct admin_rows *rows, struct err *err)
{
    for (int row = 0; row < admin_row_count(rows); row++) {
        const char *values[TABLE_COLUMNS_MAX];
        const char *id = admin_value(rows, row, 0);
        for (size_t i = 0; i < w->table.column_count; i++) {
            values[i] = admin_value(rows, row, w->sources[i]);
        }
        enum status st = parse_i64(id, strlen(id), 1, INT64_MAX, &w->last_id, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = table_add(&w->table, values, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static const char *list_of(const struct buf *b)
{
    return b->len > 0 ? buf_at(b) : NULL;
}

static enum status read_range(struct walk *w, int64_t low, struct err *err)
{
    const struct filter *f = &w->filter;
    char lowest[24];
    char highest[24];
    char left[24];
    (void)snprintf(lowest, sizeof lowest, "%lld", (long long)low);
    (void)snprintf(highest, sizeof highest, "%lld", (long long)w->next);
    (void)snprintf(left, sizeof left, "%lld", (long long)w->limit - (long long)w->table.row_count);
    const char *const params[] = {f->is_open ? "t" : "f",
                                  f->is_finished ? "t" : "f",
                                  lowest,
                                  highest,
                                  f->since[0] != '\0' ? f->since : NULL,
                                  f->until[0] != '\0' ? f->until : NULL,
                                  list_of(&f->states),
                                  list_of(&f->kinds),
                                  list_of(&f->queues),
                                  list_of(&f->tags),
                                  f->worker,
                                  f->error,
                                  left,
                                  list_of(&w->wanted),
                                  f->metadata,
                                  f->batch,
                                  f->owner};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(w->admin, &SQL_ADMIN_JOBS_LIST, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return take_rows(w, rows, err);
}

enum status walk_on(struct walk *w, int64_t limit_us, struct err *err)
{
    int64_t range = RANGE_FIRST;
    int64_t end_us = clock_boot_us() + limit_us;
    while (w->next > 0 && (int64_t)w->table.row_count < w->limit) {
        int64_t start_us = clock_boot_us();
        if (limit_us > 0 && start_us > end_us) {
            w->is_cut = true;
            break;
        }
        int64_t low = w->next > range ? w->next - range + 1 : 1;
        enum status st = read_range(w, low, err);
        if (st != STATUS_OK) {
            return st;
        }
        int64_t took_us = clock_boot_us() - start_us;
        range = took_us < STEP_FAST_US && range < RANGE_MAX ? 2 * range
                : took_us > STEP_SLOW_US && range > 1000    ? range / 2
                                                            : range;
        w->next = low - 1;
    }
    if ((int64_t)w->table.row_count == w->limit) {
        w->next = w->last_id - 1;
    }
    return STATUS_OK;
}

enum status walk_start(struct walk *w, int64_t after, struct err *err)
{
    int64_t last = 0;
    auto_admin_rows struct admin_rows *rows = NULL;
    const char *batch = w->filter.batch;
    enum status st = batch != NULL ? batches_find(w->admin, batch, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(w->admin, &SQL_ADMIN_JOBS_LAST, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = admin_value(rows, 0, 0);
    st = parse_i64(text, strlen(text), 0, INT64_MAX, &last, err);
    if (st != STATUS_OK) {
        return st;
    }
    w->next = after <= last ? after - 1 : last;
    return STATUS_OK;
}

/* ---- the walk itself ---- */

struct table walk_take(struct walk *w)
{
    struct table found = w->table;
    w->table.cells = NULL;
    w->table.row_count = 0;
    w->table.row_room = 0;
    return found;
}

void walk_release(struct walk *w)
{
    filter_release(&w->filter);
    buf_release(&w->wanted);
    table_release(&w->table);
}
