/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/jobs_walk.h"

#include "base/clock.h"
#include "base/parse.h"
#include "sql/queries.h"

#define RANGE_FIRST 20000
#define RANGE_MAX 320000 /* if all of its ids exist, it is read in less than a second */
/* A step of a search sorts its range with the args, so the range stays small. */
#define SEARCH_FIRST 500
#define SEARCH_MOST 32000
#define SEARCH_STEP 50 /* jobs: each may have 1 MiB of args */
#define SEARCH_COLUMNS "{args,metadata,result,progress}"
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

/* After a search without a hit there is one row, without a job. */
static bool is_hit(const struct admin_rows *rows)
{
    return admin_row_count(rows) > 0 && admin_value(rows, 0, admin_column(rows, "id")) != NULL;
}

static enum status take_rows(struct walk *w, const struct admin_rows *rows, struct err *err)
{
    int count = is_hit(rows) ? admin_row_count(rows) : 0;
    const char *id = count > 0 ? admin_value(rows, count - 1, admin_column(rows, "id")) : NULL;
    if (id == NULL) {
        return STATUS_OK;
    }
    enum status st = table_add_rows(&w->table, rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return parse_i64(id, strlen(id), 1, INT64_MAX, &w->last_id, err);
}

/* Counts the jobs that were read. If there may be more of them in the range, the next range begins
 * below the last one: *low is that one. */
static enum status count_searched(struct walk *w, const struct admin_rows *rows, int64_t most,
                                  int64_t *low, struct err *err)
{
    int64_t count = 0;
    const char *read = admin_value(rows, 0, admin_column(rows, "read"));
    const char *lowest = admin_value(rows, 0, admin_column(rows, "lowest"));
    enum status st = parse_i64(read, strlen(read), 0, most, &count, err);
    w->searched += count;
    if (st != STATUS_OK || count < most) {
        return st;
    }
    return parse_i64(lowest, strlen(lowest), 1, INT64_MAX, low, err);
}

static const struct pg_statement *list_statement(const struct walk *w)
{
    if (w->search != NULL) {
        return &SQL_ADMIN_JOBS_SEARCH;
    }
    return w->is_rising ? &SQL_ADMIN_JOBS_OLDEST : VERB_JOBS_LIST.statement;
}

/* Reads the jobs from *low to `high`. *low becomes higher if a search did not read all of them. */
static enum status read_range(struct walk *w, int64_t *low, int64_t high, struct err *err)
{
    const struct filter *f = &w->filter;
    char lowest[24];
    char highest[24];
    char left[24];
    char most_text[24];
    int64_t most = WALK_SEARCH_MAX - w->searched;
    most = most < w->step ? most : w->step;
    (void)snprintf(most_text, sizeof most_text, "%lld", (long long)most);
    (void)snprintf(lowest, sizeof lowest, "%lld", (long long)*low);
    (void)snprintf(highest, sizeof highest, "%lld", (long long)high);
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
                                  w->search != NULL ? most_text
                                  : w->is_rising    ? NULL
                                                    : left,
                                  w->search != NULL ? SEARCH_COLUMNS : text_str(&w->wanted),
                                  f->metadata,
                                  f->batch,
                                  f->owner,
                                  f->map,
                                  w->is_rising ? left : w->search, /* not of jobs_list */
                                  left};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(w->admin, list_statement(w), params, &rows, err);
    if (st == STATUS_OK && w->search != NULL) {
        st = count_searched(w, rows, most, low, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return take_rows(w, rows, err);
}

/* Goes on to the next job that there is, so that a gap of ids costs nothing, and does not let the
 * ranges grow. */
static enum status skip_gap(struct walk *w, struct err *err)
{
    char next[24];
    (void)snprintf(next, sizeof next, "%lld", (long long)w->next);
    const char *const up[] = {next};
    const char *const down[] = {w->filter.is_open ? "t" : "f", w->filter.is_finished ? "t" : "f",
                                next};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = w->is_rising ? admin_query(w->admin, &SQL_ADMIN_JOBS_FIRST, up, &rows, err)
                                  : admin_query(w->admin, &SQL_ADMIN_JOBS_LAST, down, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = admin_value(rows, 0, 0);
    return parse_i64(text, strlen(text), 0, INT64_MAX, &w->next, err);
}

/* A step that took less time was fast. */
static int64_t fast_step_us(int64_t limit_us)
{
    int64_t part_us = limit_us / STEP_PARTS;
    return limit_us > 0 && part_us < STEP_FAST_US ? part_us : STEP_FAST_US;
}

/* How much the next step is to read, after one that took this long. */
static int64_t next_size(int64_t size, int64_t took_us, int64_t fast_us, int64_t least,
                         int64_t most)
{
    if (took_us < fast_us && size < most) {
        return 2 * size;
    }
    return took_us > SLOW_FACTOR * fast_us && size > least ? size / 2 : size;
}

/* True if a search has met statement_timeout, since there are more or longer jobs here than in the
 * range before. A later search begins with small steps. */
static bool is_too_much(const struct walk *w, enum status st, const struct err *err)
{
    return w->search != NULL && st == STATUS_TIMEOUT && err->code[0] != '\0';
}

/* Sets *ret_is_over if no more is to be read now. */
static enum status walk_step(struct walk *w, int64_t *range, int64_t fast_us, bool *ret_is_over,
                             struct err *err)
{
    int64_t start = w->next;
    int64_t start_us = clock_boot_us();
    enum status st = skip_gap(w, err);
    if (st != STATUS_OK || w->next == 0) {
        return st;
    }
    int64_t lowest = w->is_rising ? w->next : w->next > *range ? w->next - *range + 1 : 1;
    int64_t highest = w->is_rising ? w->next + *range - 1 : w->next;
    int64_t low = lowest;
    st = read_range(w, &low, highest, err);
    if (is_too_much(w, st, err) && start < w->first) {
        *err = (struct err){0};
        *ret_is_over = true;
        return STATUS_OK;
    }
    if (st != STATUS_OK) {
        return st;
    }
    int64_t took_us = clock_boot_us() - start_us;
    int64_t range_max = w->search != NULL ? SEARCH_MOST : RANGE_MAX;
    *range = low == lowest ? next_size(*range, took_us, fast_us, 1000, range_max) : *range;
    w->step = next_size(w->step, took_us, fast_us, 1, WALK_SEARCH_MAX);
    w->next = w->is_rising ? highest + 1 : low - 1;
    return STATUS_OK;
}

enum status walk_on(struct walk *w, int64_t limit_us, struct err *err)
{
    int64_t range = w->search != NULL ? SEARCH_FIRST : RANGE_FIRST;
    int64_t fast_us = fast_step_us(limit_us);
    int64_t end_us = clock_boot_us() + limit_us;
    w->first = w->next;
    w->step = SEARCH_STEP;
    bool is_over = false;
    while (w->next > 0 && (int64_t)w->table.row_count < w->limit && !is_over) {
        is_over = (limit_us > 0 && clock_boot_us() > end_us) || w->searched == WALK_SEARCH_MAX;
        enum status st = is_over ? STATUS_OK : walk_step(w, &range, fast_us, &is_over, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    w->is_cut = w->is_cut || is_over;
    if ((int64_t)w->table.row_count == w->limit) {
        w->next = w->is_rising ? w->last_id + 1 : w->last_id - 1;
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
    w->is_rising = w->filter.is_running && w->search == NULL;
    w->next = !w->is_rising ? after - 1 : after == INT64_MAX ? 1 : after + 1;
    return batch != NULL ? find_batch(w->admin, batch, err) : STATUS_OK;
}

int64_t walk_after(const struct walk *w)
{
    return w->is_rising ? w->next - 1 : w->next + 1;
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
