/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/jobs_walk.h"

#include "base/clock.h"
#include "base/parse.h"
#include "sql/queries.h"

#define RANGE_FIRST 20000
#define RANGE_MAX 320000 /* if all of its ids exist, it is read in less than a second */
#define STEP_FAST_US (100 * US_PER_MS)
#define STEP_PARTS 8  /* a step that takes a longer part of the time than this is not fast … */
#define SLOW_FACTOR 5 /* … and a slow one takes so many times as long */

/* ---- columns ---- */

static const struct table_column *find_column(const char *name, size_t len)
{
    for (size_t i = 0; i < VERB_JOBS_LIST.column_count; i++) {
        const char *known = VERB_JOBS_LIST.columns[i].name;
        if (strlen(known) == len && strncmp(known, name, len) == 0) {
            return &VERB_JOBS_LIST.columns[i];
        }
    }
    return NULL;
}

static enum status add_column(struct walk *w, struct table_column column, struct err *err)
{
    struct table *t = &w->table;
    for (size_t i = 0; i < t->column_count; i++) {
        if (strcmp(w->columns[i].name, column.name) == 0) {
            return err_fail(err, STATUS_INVALID, "--columns: '%s' is given twice", column.name);
        }
    }
    w->columns[t->column_count++] = column;
    text_put(&w->wanted, "%s%s", t->column_count > 1 ? "," : "{", column.name);
    return STATUS_OK;
}

static enum status choose_columns(struct walk *w, const char *list, struct err *err)
{
    size_t len = 0;
    for (const char *at = list; at != NULL; at = at[len] == ',' ? at + len + 1 : NULL) {
        len = strcspn(at, ",");
        const struct table_column *found = find_column(at, len);
        if (found == NULL) {
            return err_fail(err, STATUS_INVALID,
                            "--columns: unknown column '%.*s'; see claimctl jobs list --help",
                            (int)(len < 40 ? len : 40), at);
        }
        struct table_column column = {found->name, found->type & ~CELL_WIDE}; /* never left out */
        enum status st = add_column(w, column, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status walk_columns(struct walk *w, const char *list, struct err *err)
{
    enum status st = choose_columns(w, list, err);
    for (size_t i = 0; st == STATUS_OK && list == NULL && i < VERB_JOBS_LIST.column_count; i++) {
        bool is_extra = (VERB_JOBS_LIST.columns[i].type & CELL_EXTRA) != 0;
        st = is_extra ? STATUS_OK : add_column(w, VERB_JOBS_LIST.columns[i], err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    w->table.columns = w->columns;
    text_put(&w->wanted, "}");
    return text_end(&w->wanted, err);
}

/* ---- reading ---- */

static enum status take_rows(struct walk *w, const struct admin_rows *rows, struct err *err)
{
    int count = admin_row_count(rows);
    const char *id = count > 0 ? admin_value(rows, count - 1, admin_column(rows, "id")) : NULL;
    enum status st = table_add_rows(&w->table, rows, err);
    if (st != STATUS_OK || id == NULL) {
        return st;
    }
    return parse_i64(id, strlen(id), 1, INT64_MAX, &w->last_id, err);
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
                                  f->states,
                                  f->kinds,
                                  f->queues,
                                  f->tags,
                                  f->worker,
                                  f->error,
                                  left,
                                  text_str(&w->wanted),
                                  f->metadata,
                                  f->batch,
                                  f->owner,
                                  f->map};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(w->admin, VERB_JOBS_LIST.statement, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return take_rows(w, rows, err);
}

/* Goes down to the next job that there is, so that a gap of ids costs nothing, and does not let the
 * ranges grow. */
static enum status skip_gap(struct walk *w, struct err *err)
{
    char highest[24];
    (void)snprintf(highest, sizeof highest, "%lld", (long long)w->next);
    const char *const params[] = {w->filter.is_open ? "t" : "f", w->filter.is_finished ? "t" : "f",
                                  highest};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(w->admin, &SQL_ADMIN_JOBS_LAST, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = admin_value(rows, 0, 0);
    return parse_i64(text, strlen(text), 0, INT64_MAX, &w->next, err);
}

/* Returns how many ids to read next, after as many as `range` took this long. */
static int64_t next_range(int64_t range, int64_t took_us, int64_t limit_us)
{
    int64_t part_us = limit_us / STEP_PARTS;
    int64_t fast_us = limit_us > 0 && part_us < STEP_FAST_US ? part_us : STEP_FAST_US;
    if (took_us < fast_us && range < RANGE_MAX) {
        return 2 * range;
    }
    return took_us > SLOW_FACTOR * fast_us && range > 1000 ? range / 2 : range;
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
        enum status st = skip_gap(w, err);
        if (st != STATUS_OK || w->next == 0) {
            return st;
        }
        int64_t low = w->next > range ? w->next - range + 1 : 1;
        st = read_range(w, low, err);
        if (st != STATUS_OK) {
            return st;
        }
        range = next_range(range, clock_boot_us() - start_us, limit_us);
        w->next = low - 1;
    }
    if ((int64_t)w->table.row_count == w->limit) {
        w->next = w->last_id - 1;
    }
    return STATUS_OK;
}

static enum status find_batch(struct admin *a, const char *id, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_BATCH_FIND, &id, &rows, err);
    if (st == STATUS_OK && admin_row_count(rows) == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "batch %s not found", id);
    }
    return st;
}

enum status walk_start(struct walk *w, int64_t after, struct err *err)
{
    const char *batch = w->filter.batch;
    w->next = after - 1;
    return batch != NULL ? find_batch(w->admin, batch, err) : STATUS_OK;
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
    text_release(&w->wanted);
    table_release(&w->table);
}
