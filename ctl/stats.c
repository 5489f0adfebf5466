/* SPDX-License-Identifier: Apache-2.0
 *
 * `stats` and `top`: one look, or one look after the other. */
#include "base/clock.h"
#include "ctl/overview.h"
#include "ctl/screen.h"

#include <time.h>

#define EVERY_STANDARD_US (2 * US_PER_S)

struct watch {
    const struct ctl *ctl;
    struct config config;
    struct admin *admin; /* NULL = lost, or not there yet */
};

/* Draws anew with a session of its own, made again after it was lost. */
typedef enum status look(struct admin *a, const struct ctl *ctl, const struct screen_size *size,
                         FILE *out, struct err *err);

static enum status with_session(struct watch *w, look *look_once, const struct screen_size *size,
                                FILE *out, struct err *err)
{
    enum status st = w->admin == NULL ? ctl_connect(&w->config, false, &w->admin, err) : STATUS_OK;
    if (st == STATUS_OK) {
        st = look_once(w->admin, w->ctl, size, out, err);
    }
    if (st != STATUS_OK) {
        admin_close(w->admin);
        w->admin = NULL;
    }
    return st;
}

/* ---- stats ---- */

static enum status look_stats(struct admin *a, const struct ctl *ctl,
                              const struct screen_size *size, FILE *out, struct err *err)
{
    auto_table struct table queues_table = {0};
    auto_table struct table finished = {0};
    const struct table *const tables[] = {&queues_table, &finished};
    enum status st = overview_depths(a, &queues_table, err);
    if (st == STATUS_OK) {
        st = overview_finished(a, &finished, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return ctl->is_json ? tables_print(tables, 2, true, out, err)
                        : tables_print_text(tables, 2, &size->style, out, err);
}

static enum status draw_stats(void *ctx, const struct screen_size *size, FILE *out, struct err *err)
{
    return with_session(ctx, look_stats, size, out, err);
}

/* To a pipe: one look below the other, until somebody ends us. */
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

enum status stats(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *every = ctl_value(args, "watch");
    int64_t every_us = 0;
    struct watch w = {.ctl = ctl};
    const struct screen_size size = {.style = table_style_of(ctl->out)};
    enum status st = ctl_interval(args, "watch", EVERY_STANDARD_US, &every_us, err);
    if (st == STATUS_OK) {
        st = ctl_load_config(ctl, &w.config, err);
    }
    if (st == STATUS_OK && every == NULL) {
        st = draw_stats(&w, &size, ctl->out, err);
    } else if (st == STATUS_OK && !ctl->is_json && screen_is_there()) {
        st = screen_run(every_us, draw_stats, &w, err);
    } else if (st == STATUS_OK) {
        st = stream_stats(&w, every_us, err);
    }
    admin_close(w.admin);
    return st;
}

/* ---- top ---- */

/* The table below its heading, at most `rows` of them. */
static enum status put_part(struct table *t, size_t rows, const struct table_style *style,
                            FILE *out, struct err *err)
{
    size_t all = t->row_count;
    const struct table *const tables[] = {t};
    if (all == 0) {
        (void)fprintf(out, "no %s\n", t->name);
        return STATUS_OK;
    }
    if (style->is_terminal) {
        (void)fputc(SCREEN_HEADING, out);
    }
    t->row_count = all < rows ? all : rows;
    enum status st = tables_print_text(tables, 1, style, out, err);
    t->row_count = all;
    if (st == STATUS_OK && all > rows) {
        (void)fprintf(out, "and %zu more\n", all - rows);
    }
    return st;
}

/* Sums a column of numbers over the rows. */
static long long sum(const struct table *t, size_t column)
{
    long long total = 0;
    for (size_t row = 0; row < t->row_count; row++) {
        const char *text = table_cell(t, row, column);
        total += text == NULL ? 0 : strtoll(text, NULL, 10);
    }
    return total;
}

static void put_title(const struct table *workers_table, const struct table *finished, FILE *out)
{
    enum { RUNNING = 4, SLOTS = 5, PER_S = 4 };
    char clock[16] = "";
    struct tm tm = {0};
    time_t now = (time_t)(workers_table->now_us / US_PER_S);
    (void)gmtime_r(&now, &tm);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    (void)fprintf(out, "claimd %sZ  %zu worker%s, %lld/%lld slots  ended/s", clock,
                  workers_table->row_count, workers_table->row_count == 1 ? "" : "s",
                  sum(workers_table, RUNNING), sum(workers_table, SLOTS));
    for (size_t row = 0; row < finished->row_count; row++) {
        (void)fprintf(out, " %s", table_cell(finished, row, PER_S));
    }
    (void)fprintf(out, " (1/5/15 min)\n\n");
}

static enum status look_top(struct admin *a, const struct ctl *ctl, const struct screen_size *size,
                            FILE *out, struct err *err)
{
    enum { OTHER_ROWS = 7 }; /* title, headings, gaps, "more" */
    auto_table struct table queues_table = {0};
    auto_table struct table workers_table = {0};
    auto_table struct table finished = {0};
    const struct table *const tables[] = {&queues_table, &workers_table, &finished};
    enum status st = overview_queues(a, &queues_table, err);
    if (st == STATUS_OK) {
        st = overview_workers(a, false, &workers_table, err);
    }
    if (st == STATUS_OK) {
        st = overview_finished(a, &finished, err);
    }
    if (st == STATUS_OK && ctl->is_json) {
        return tables_print(tables, ARRAY_COUNT(tables), true, out, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    size_t rows = size->rows == 0               ? SIZE_MAX
                  : size->rows > OTHER_ROWS + 2 ? size->rows - OTHER_ROWS
                                                : 2;
    size_t half = rows == SIZE_MAX ? SIZE_MAX : rows / 2;
    size_t for_queues = workers_table.row_count < half ? rows - workers_table.row_count : half;
    size_t shown = queues_table.row_count < for_queues ? queues_table.row_count : for_queues;
    put_title(&workers_table, &finished, out);
    st = put_part(&queues_table, for_queues, &size->style, out, err);
    (void)fputc('\n', out);
    return st == STATUS_OK ? put_part(&workers_table, rows - shown, &size->style, out, err) : st;
}

static enum status draw_top(void *ctx, const struct screen_size *size, FILE *out, struct err *err)
{
    return with_session(ctx, look_top, size, out, err);
}

enum status top(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    int64_t every_us = 0;
    struct watch w = {.ctl = ctl};
    const struct screen_size once = {.style = {.is_terminal = false}};
    enum status st = ctl_interval(args, "every", EVERY_STANDARD_US, &every_us, err);
    if (st == STATUS_OK) {
        st = ctl_load_config(ctl, &w.config, err);
    }
    if (st == STATUS_OK && !ctl->is_json && screen_is_there()) {
        st = screen_run(every_us, draw_top, &w, err);
    } else if (st == STATUS_OK) {
        st = draw_top(&w, &once, ctl->out, err);
    }
    admin_close(w.admin);
    return st;
}
