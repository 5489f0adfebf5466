/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl jobs list`: walks the ids from the newest down, range by range, until enough jobs fit.
 * A range grows while it is quickly read, so that tables of any size are looked at in bounded
 * steps; what is rare is found as far as LOOK_US allows, and then the way on is told. */
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/filter.h"
#include "ctl/jobs.h"
#include "ctl/table.h"
#include "sql/queries.h"

#define LIMIT_MAX 10000
#define RANGE_FIRST 20000
#define RANGE_MAX (INT64_C(1) << 40)
#define STEP_FAST_US (100 * US_PER_MS)
#define STEP_SLOW_US (500 * US_PER_MS)
#define LOOK_US (10 * US_PER_S)

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
};

struct listing {
    struct ctl *ctl;
    const struct ctl_args *args;
    struct admin *admin;
    struct filter filter;
    struct table_column columns[TABLE_COLUMNS_MAX];
    int sources[TABLE_COLUMNS_MAX]; /* of each column, its place in the result */
    struct buf wanted;              /* array literal of what is only read when asked for */
    struct table table;
    int64_t limit;
    int64_t next;    /* the highest id not looked at yet */
    int64_t last_id; /* of the last job found */
    bool is_cut;     /* the time was over */
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

static enum status add_column(struct listing *l, int source, struct err *err)
{
    struct table *t = &l->table;
    const char *name = all_columns[source].column.name;
    for (size_t i = 0; i < t->column_count; i++) {
        if (l->sources[i] == source) {
            return err_fail(err, STATUS_INVALID, "--columns: '%s' is given twice", name);
        }
    }
    l->columns[t->column_count] = all_columns[source].column;
    l->sources[t->column_count] = source;
    t->column_count++;
    return buf_printf(&l->wanted, err, "%s%s", l->wanted.len > 0 ? "," : "{", name);
}

static enum status choose_columns(struct listing *l, struct err *err)
{
    const char *at = ctl_value(l->args, "columns");
    for (size_t i = 0; at == NULL && i < ARRAY_COUNT(all_columns); i++) {
        enum status st = all_columns[i].is_standard ? add_column(l, (int)i, err) : STATUS_OK;
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
        enum status st = add_column(l, source, err);
        if (st != STATUS_OK) {
            return st;
        }
        l->columns[l->table.column_count - 1].type &= ~CELL_WIDE; /* asked for by name */
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    l->table.columns = l->columns;
    return buf_append_text(&l->wanted, "}", err);
}

/* ---- looking ---- */

static enum status take_rows(struct listing *l, const struct admin_rows *rows, struct err *err)
{
    for (int row = 0; row < admin_row_count(rows); row++) {
        const char *values[TABLE_COLUMNS_MAX];
        const char *id = admin_value(rows, row, 0);
        for (size_t i = 0; i < l->table.column_count; i++) {
            values[i] = admin_value(rows, row, l->sources[i]);
        }
        enum status st = parse_i64(id, strlen(id), 1, INT64_MAX, &l->last_id, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = table_add(&l->table, values, err);
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

static enum status look(struct listing *l, int64_t low, struct err *err)
{
    const struct filter *f = &l->filter;
    char lowest[24];
    char highest[24];
    char left[24];
    (void)snprintf(lowest, sizeof lowest, "%lld", (long long)low);
    (void)snprintf(highest, sizeof highest, "%lld", (long long)l->next);
    (void)snprintf(left, sizeof left, "%lld", (long long)l->limit - (long long)l->table.row_count);
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
                                  list_of(&l->wanted)};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(l->admin, &SQL_ADMIN_JOBS_LIST, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return take_rows(l, rows, err);
}

static enum status look_around(struct listing *l, struct err *err)
{
    int64_t range = RANGE_FIRST;
    int64_t end_us = clock_boot_us() + LOOK_US;
    while (l->next > 0 && (int64_t)l->table.row_count < l->limit) {
        int64_t start_us = clock_boot_us();
        if (start_us > end_us) {
            l->is_cut = true;
            break;
        }
        int64_t low = l->next > range ? l->next - range + 1 : 1;
        enum status st = look(l, low, err);
        if (st != STATUS_OK) {
            return st;
        }
        int64_t took_us = clock_boot_us() - start_us;
        range = took_us < STEP_FAST_US && range < RANGE_MAX ? 2 * range
                : took_us > STEP_SLOW_US && range > 1000    ? range / 2
                                                            : range;
        l->next = low - 1;
    }
    if ((int64_t)l->table.row_count == l->limit) {
        l->next = l->last_id - 1;
    }
    return STATUS_OK;
}

/* ---- saying ---- */

static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:=,@%+-";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        (void)fputs(word, out);
        return;
    }
    (void)fputc('\'', out);
    for (const char *p = word; *p != '\0'; p++) {
        (void)fputs(*p == '\'' ? "'\\'" : "", out);
        (void)fputc(*p, out);
    }
    (void)fputc('\'', out);
}

/* The same command, from where this one ended. */
static void say_next(const struct listing *l)
{
    FILE *out = stderr;
    (void)fprintf(out, "claimctl");
    if (l->ctl->config_from == CTL_CONFIG_OPTION) {
        (void)fprintf(out, " --config ");
        put_word(out, l->ctl->config_path);
    }
    (void)fprintf(out, " jobs list");
    for (size_t i = 0; i < l->args->given_count; i++) {
        if (strcmp(l->args->given[i].name, "after") != 0) {
            (void)fprintf(out, " --%s ", l->args->given[i].name);
            put_word(out, l->args->given[i].value);
        }
    }
    (void)fprintf(out, " --after %lld\n", (long long)l->next + 1);
}

static enum status print_listing(struct listing *l, struct err *err)
{
    static const struct table_column page_columns[] = {{"next_after", CELL_NUMBER}};
    char next[24];
    const char *const values[] = {l->next > 0 ? next : NULL};
    auto_table struct table page = TABLE("page", page_columns);
    page.is_record = true;
    (void)snprintf(next, sizeof next, "%lld", (long long)l->next + 1);
    const struct table *const tables[] = {&l->table, &page};
    enum status st = table_add(&page, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = tables_print(tables, l->ctl->is_json ? 2 : 1, l->ctl->is_json, l->ctl->out, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_told = l->is_cut || isatty(STDERR_FILENO) == 1;
    if (l->next > 0 && is_told) {
        (void)fflush(l->ctl->out);
        (void)fprintf(stderr,
                      l->is_cut ? "claimctl: stopped after 10 s; there may be more: " : "next: ");
        say_next(l);
    }
    return STATUS_OK;
}

/* ---- the command ---- */

static enum status read_number(const struct ctl_args *args, const char *name, int64_t min,
                               int64_t max, int64_t *ret, struct err *err)
{
    const char *text = ctl_value(args, name);
    if (text == NULL) {
        return STATUS_OK;
    }
    enum status st = parse_i64(text, strlen(text), min, max, ret, err);
    if (st != STATUS_OK) {
        err_prefix(err, "--%s", name);
    }
    return st;
}

static enum status find_start(struct listing *l, struct err *err)
{
    int64_t after = INT64_MAX;
    int64_t last = 0;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = read_number(l->args, "after", 1, INT64_MAX, &after, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(l->admin, &SQL_ADMIN_JOBS_LAST, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = admin_value(rows, 0, 0);
    st = parse_i64(text, strlen(text), 0, INT64_MAX, &last, err);
    if (st != STATUS_OK) {
        return st;
    }
    l->next = after <= last ? after - 1 : last;
    return STATUS_OK;
}

/* What needs no server comes first: a wrong option is told without one. */
static enum status check_options(struct listing *l, struct err *err)
{
    int64_t after = 0;
    enum status st = filter_read(&l->filter, l->args, 0, err);
    filter_release(&l->filter);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_number(l->args, "limit", 1, LIMIT_MAX, &l->limit, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_number(l->args, "after", 1, INT64_MAX, &after, err);
    if (st != STATUS_OK) {
        return st;
    }
    return choose_columns(l, err);
}

/* All that match, from where --after says. */
static enum status walk(struct listing *l, struct err *err)
{
    enum status st = find_start(l, err);
    if (st != STATUS_OK) {
        return st;
    }
    return look_around(l, err);
}

static enum status list_jobs(struct listing *l, struct err *err)
{
    auto_admin struct admin *a = NULL;
    enum status st = check_options(l, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(l->ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    l->admin = a;
    st = ctl_now(a, &l->table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_read(&l->filter, l->args, l->table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = walk(l, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_listing(l, err);
}

enum status jobs_list(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct listing l = {.ctl = ctl,
                        .args = args,
                        .table = {.name = "jobs"},
                        .wanted = BUF_INIT(FILTER_LIST_MAX),
                        .limit = 50};
    enum status st = list_jobs(&l, err);
    filter_release(&l.filter);
    buf_release(&l.wanted);
    table_release(&l.table);
    return st;
}

static enum status find_jobs(struct listing *l, struct err *err)
{
    int64_t now_us = 0;
    enum status st = add_column(l, find_column("id", 2), err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append_text(&l->wanted, "}", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(l->admin, &now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_read(&l->filter, l->args, now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    l->filter.is_finished = l->filter.is_finished && ctl_value(l->args, "state") != NULL;
    return walk(l, err);
}

/* The same walk for those who only want to know which: the open ones unless states are asked
 * for. */
enum status jobs_find(struct ctl *ctl, const struct ctl_args *args, struct admin *a, int64_t limit,
                      struct table *ret_ids, struct err *err)
{
    struct listing l = {.ctl = ctl,
                        .args = args,
                        .admin = a,
                        .table = {.name = "jobs"},
                        .wanted = BUF_INIT(FILTER_LIST_MAX),
                        .limit = limit};
    enum status st = find_jobs(&l, err);
    *ret_ids = l.table;
    ret_ids->columns = &all_columns[0].column;
    filter_release(&l.filter);
    buf_release(&l.wanted);
    return st;
}
