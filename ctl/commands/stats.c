/* SPDX-License-Identifier: Apache-2.0
 *
 * `stats` and `top`: once, or repeatedly. */
#include "base/clock.h"
#include "ctl/core/ctl.h"
#include "ctl/core/screen.h"
#include "ctl/core/wrap.h"

#include <time.h>

#define EVERY_STANDARD_US (2 * US_PER_S)

struct watch {
    const struct ctl *ctl;
    struct config config;
    struct admin *admin; /* NULL = not connected */
};

/* Draws once. The session is kept between draws, and opened again after it was lost. */
typedef enum status show_fn(struct admin *a, const struct ctl *ctl, const struct screen_size *size,
                            FILE *out, struct err *err);

static enum status with_session(struct watch *w, show_fn *show, const struct screen_size *size,
                                FILE *out, struct err *err)
{
    if (w->admin == NULL) {
        enum status st = ctl_connect(&w->config, false, &w->admin, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    enum status st = show(w->admin, w->ctl, size, out, err);
    if (st != STATUS_OK) {
        admin_close(w->admin);
        w->admin = NULL;
    }
    return st;
}

/* ---- a table that fits the lines ---- */

/* Renders the heading and the first `rows` rows of the table. The caller frees *ret_text. */
static enum status render(struct table *t, size_t rows, const struct screen_size *size,
                          char **ret_text, size_t *ret_lines, struct err *err)
{
    size_t all = t->row_count;
    size_t len = 0;
    const struct table *const tables[] = {t};
    FILE *out = open_memstream(ret_text, &len);
    if (out == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    if (all == 0) {
        (void)fprintf(out, "no %s\n", t->name);
    } else if (size->rows > 0) {
        (void)fputc(SCREEN_HEADING, out);
    }
    t->row_count = rows;
    enum status st = tables_print_text(tables, 1, &size->style, out, err);
    t->row_count = all;
    if (rows < all) {
        (void)fprintf(out, "and %zu more\n", all - rows);
    }
    if (fclose(out) != 0 && st == STATUS_OK) {
        st = err_fail(err, STATUS_NOMEM, "out of memory");
    }
    *ret_lines = 0;
    for (const char *p = *ret_text; p != NULL && (p = strchr(p, '\n')) != NULL; p++) {
        ++*ret_lines;
    }
    return st;
}

static enum status part_lines(struct table *t, const struct screen_size *size, size_t *ret_lines,
                              struct err *err)
{
    char *text = NULL;
    enum status st = render(t, t->row_count, size, &text, ret_lines, err);
    free(text);
    return st;
}

/* Prints as many rows as fit into the lines, at least one. */
static enum status put_part(struct table *t, size_t lines, const struct screen_size *size,
                            FILE *out, struct err *err)
{
    enum status st = STATUS_OK;
    size_t low = t->row_count > 0 ? 1 : 0;
    size_t high = t->row_count;
    size_t rows = high;
    for (;;) {
        autofree char *text = NULL;
        size_t used = 0;
        st = render(t, rows, size, &text, &used, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (rows == low && (used <= lines || high == low)) {
            (void)fputs(text, out);
            return STATUS_OK;
        }
        if (used <= lines) {
            low = rows;
        } else {
            high = rows - 1 > low ? rows - 1 : low;
        }
        rows = low + (high - low + 1) / 2;
    }
}

/* ---- stats ---- */

static enum status show_stats_once(struct admin *a, const struct ctl *ctl,
                                   const struct screen_size *size, FILE *out, struct err *err)
{
    auto_table struct table queues_table = {.name = "queues"};
    auto_table struct table finished = {.name = "finished"};
    const struct table *const tables[] = {&queues_table, &finished};
    enum status st = verb_fill(&VERB_STATS, a, NULL, &queues_table, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_fill(&VERB_STATS_FINISHED, a, NULL, &finished, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl->is_json || size->rows == 0) {
        return ctl->is_json ? tables_print(tables, 2, true, out, err)
                            : tables_print_text(tables, 2, &size->style, out, err);
    }
    size_t lines = 0;
    st = part_lines(&finished, size, &lines, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_part(&queues_table, size->rows > lines + 1 ? size->rows - lines - 1 : 1, size, out,
                  err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)fputc('\n', out);
    return put_part(&finished, lines, size, out, err);
}

static enum status draw_stats(void *ctx, const struct screen_size *size, FILE *out, struct err *err)
{
    return with_session(ctx, show_stats_once, size, out, err);
}

/* Prints one report below the other to a pipe, until the program is ended. */
static enum status stream_stats(struct watch *w, int64_t every_us, struct err *err)
{
    const struct screen_size size = {.style = table_style_of(w->ctl->out)};
    for (;;) {
        enum status st = draw_stats(w, &size, w->ctl->out, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (!w->ctl->is_json) {
            (void)fputc('\n', w->ctl->out);
        }
        if (fflush(w->ctl->out) != 0) {
            return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
        }
        ctl_rest(every_us);
    }
}

static enum status show_stats(struct watch *w, bool is_watched, int64_t every_us, struct err *err)
{
    const struct screen_size size = {.style = table_style_of(w->ctl->out)};
    if (!is_watched) {
        return draw_stats(w, &size, w->ctl->out, err);
    }
    if (!w->ctl->is_json && screen_is_there()) {
        return screen_run(every_us, draw_stats, w, err);
    }
    return stream_stats(w, every_us, err);
}

enum status stats(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    int64_t every_us = 0;
    struct watch w = {.ctl = ctl};
    enum status st = ctl_interval(args, "watch", EVERY_STANDARD_US, &every_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_load_config(ctl, &w.config, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = show_stats(&w, ctl_value(args, "watch") != NULL, every_us, err);
    admin_close(w.admin);
    return st;
}

/* ---- top ---- */

/* Returns the sum of a column of numbers over all rows. */
static long long sum(const struct table *t, const char *column)
{
    long long total = 0;
    for (size_t row = 0; row < t->row_count; row++) {
        const char *text = table_value(t, row, column);
        total += text == NULL ? 0 : strtoll(text, NULL, 10);
    }
    return total;
}

/* Indexes of the tables of VERB_HEALTH. */
enum { QUEUES, WORKERS, FINISHED, HEALTH };

struct overview {
    struct answer answer;
    struct table_column queue_columns[TABLE_COLUMNS_MAX]; /* columns of the brief tables */
    struct table_column worker_columns[TABLE_COLUMNS_MAX];
};

static void overview_release(struct overview *o)
{
    answer_release(&o->answer);
}

/* Returns how many lines it has printed. */
static size_t put_title(const struct overview *o, const struct screen_size *size, FILE *out)
{
    const struct table *workers = &o->answer.tables[WORKERS];
    char clock[16] = "";
    char first[160];
    char ended[160] = "ended/s";
    struct tm tm = {0};
    time_t now = (time_t)(workers->now_us / US_PER_S);
    const struct table *f = &o->answer.tables[FINISHED];
    (void)gmtime_r(&now, &tm);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    (void)snprintf(first, sizeof first, "claimd %sZ  %zu worker%s, %lld/%lld slots", clock,
                   workers->row_count, workers->row_count == 1 ? "" : "s", sum(workers, "running"),
                   sum(workers, "slots"));
    for (size_t row = 0; row < f->row_count; row++) {
        size_t len = strlen(ended);
        (void)snprintf(ended + len, sizeof ended - len, " %s", table_value(f, row, "per_s"));
    }
    bool is_two = size->style.is_terminal &&
                  strlen(first) + strlen(ended) + strlen("   (1/5/15 min)") > size->style.width;
    (void)fprintf(out, "%s%s%s (1/5/15 min)\n", first, is_two ? "\n" : "  ", ended);
    const char *trouble = table_value(&o->answer.tables[HEALTH], 0, "trouble");
    size_t width = size->style.is_terminal ? size->style.width : SIZE_MAX;
    size_t lines = trouble == NULL ? 0 : wrap_print(out, trouble, width, 0);
    (void)fputc('\n', out);
    return (is_two ? 3 : 2) + lines;
}

static bool is_long_list(const struct table *t, size_t column, size_t width)
{
    bool is_list = (t->columns[column].type & CELL_LIST) != 0;
    for (size_t row = 0; is_list && row < t->row_count; row++) {
        const char *text = table_cell(t, row, column);
        if (text != NULL && wrap_text_width(text) > width) {
            return true;
        }
    }
    return false;
}

/* On a screen, lists may be left out in favour of the other columns, with a note about it. Returns
 * the number of lines. */
static enum status make_brief(struct table *t, struct table_column columns[TABLE_COLUMNS_MAX],
                              const struct screen_size *size, size_t *ret_lines, struct err *err)
{
    for (size_t i = 0; i < t->column_count; i++) {
        columns[i] = t->columns[i];
        columns[i].type |= (columns[i].type & CELL_LIST) != 0 ? CELL_WIDE : 0;
    }
    t->columns = columns;
    return part_lines(t, size, ret_lines, err);
}

/* If some rows take several lines, leaves out their long lists so that more rows fit. */
static enum status make_briefer(struct table *t, struct table_column columns[TABLE_COLUMNS_MAX],
                                const struct screen_size *size, size_t *lines, struct err *err)
{
    enum { HEADING_AND_NOTE = 2, PART = 3 };
    if (*lines <= t->row_count + HEADING_AND_NOTE) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < t->column_count; i++) {
        columns[i].type |= is_long_list(t, i, size->style.width / PART) ? CELL_OUT : 0;
    }
    return part_lines(t, size, lines, err);
}

struct list_lines {
    size_t queues;
    size_t workers;
};

static bool have_room(const struct list_lines *l, size_t room)
{
    return l->queues < room && l->workers <= room - l->queues;
}

static enum status make_lists(struct overview *o, const struct screen_size *size, size_t room,
                              struct list_lines *ret, struct err *err)
{
    enum status st =
        make_brief(&o->answer.tables[QUEUES], o->queue_columns, size, &ret->queues, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = make_brief(&o->answer.tables[WORKERS], o->worker_columns, size, &ret->workers, err);
    if (st != STATUS_OK || have_room(ret, room)) {
        return st;
    }
    st = make_briefer(&o->answer.tables[QUEUES], o->queue_columns, size, &ret->queues, err);
    if (st != STATUS_OK) {
        return st;
    }
    return make_briefer(&o->answer.tables[WORKERS], o->worker_columns, size, &ret->workers, err);
}

/* Shares the remaining lines between two lists; lines that one does not need go to the other. */
static enum status put_lists(struct overview *o, const struct screen_size *size, size_t used,
                             FILE *out, struct err *err)
{
    enum { LEAST = 8 };
    struct list_lines l = {0};
    size_t room = size->rows == 0             ? SIZE_MAX
                  : size->rows > used + LEAST ? size->rows - used - 1 /* the gap */
                                              : LEAST;
    enum status st = make_lists(o, size, room, &l, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t for_queues = have_room(&l, room)    ? l.queues
                        : l.workers < room / 2 ? room - l.workers
                        : l.queues < room / 2  ? l.queues
                                               : room / 2;
    st = put_part(&o->answer.tables[QUEUES], for_queues, size, out, err);
    (void)fputc('\n', out);
    if (st != STATUS_OK) {
        return st;
    }
    return put_part(&o->answer.tables[WORKERS], room - for_queues, size, out, err);
}

static enum status put_overview(struct overview *o, bool is_json, const struct screen_size *size,
                                FILE *out, struct err *err)
{
    if (is_json) {
        return answer_print(&o->answer, true, out, err);
    }
    size_t used = put_title(o, size, out);
    return put_lists(o, size, used, out, err);
}

static enum status show_top_once(struct admin *a, const struct ctl *ctl,
                                 const struct screen_size *size, FILE *out, struct err *err)
{
    CLEANUP(overview_release) struct overview o = {0};
    const struct verb_call call = {.verb = &VERB_HEALTH};
    enum status st = verb_run(&call, a, &o.answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    return put_overview(&o, ctl->is_json, size, out, err);
}

static enum status draw_top(void *ctx, const struct screen_size *size, FILE *out, struct err *err)
{
    return with_session(ctx, show_top_once, size, out, err);
}

enum status top(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    int64_t every_us = 0;
    struct watch w = {.ctl = ctl};
    const struct screen_size once = {.style = {.is_terminal = false}};
    enum status st = ctl_interval(args, "every", EVERY_STANDARD_US, &every_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_load_config(ctl, &w.config, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_screen = !ctl->is_json && screen_is_there();
    st = is_screen ? screen_run(every_us, draw_top, &w, err) : draw_top(&w, &once, ctl->out, err);
    admin_close(w.admin);
    return st;
}
