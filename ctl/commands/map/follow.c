/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows the progress of a map on standard error: on a terminal as a line that is redrawn, otherwise
 * as a new line every ten seconds. */
#include "base/clock.h"
#include "ctl/commands/map/map.h"
#include "ctl/core/human.h"
#include "sql/queries.h"

#include <stdio.h>
#include <unistd.h>

#define DRAW_US (500 * US_PER_MS)
#define LINE_US (10 * US_PER_S)
#define LOOK_US (250 * US_PER_MS)

volatile sig_atomic_t map_interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    map_interrupted = 1;
}

/* Catches the first Ctrl-C only: a second one ends claimctl at once. */
void map_catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
}

void map_progress_start(struct map_progress *p, const struct map *m)
{
    *p = (struct map_progress){.is_quiet = ctl_value(m->args, "quiet") != NULL,
                               .is_terminal = isatty(STDERR_FILENO) == 1,
                               .start_us = clock_boot_us()};
    p->shown_us = p->start_us;
}

static int64_t number(const struct map *m, const char *column)
{
    return strtoll(admin_value(m->row, 0, admin_column(m->row, column)), NULL, 10);
}

static void put_line(struct map_progress *p, const struct map *m, int64_t now_us)
{
    int64_t open = number(m, "open");
    int64_t ended = number(m, "rows") - open;
    double seconds = (double)(now_us - p->start_us) / US_PER_S;
    double rate = seconds > 0 ? (double)(ended - p->start_ended) / seconds : 0;
    (void)fprintf(stderr, "%smap %s: %lld loaded%s, %lld running, %lld done, %lld failed, %.*f/s",
                  p->is_terminal ? "\r" : "claimctl: ", m->name, (long long)number(m, "rows"),
                  m->is_loaded ? "" : " so far", (long long)number(m, "running"),
                  (long long)number(m, "completed"), (long long)number(m, "failed"),
                  rate < 10 ? 1 : 0, rate);
    if (m->is_loaded && rate > 0 && open > 0) {
        char left[HUMAN_MAX];
        human_duration((double)open / rate, left);
        (void)fprintf(stderr, ", %s left", left);
    }
    (void)fputs(p->is_terminal ? "\x1b[K" : "\n", stderr);
    (void)fflush(stderr);
}

enum status map_progress_show(struct map_progress *p, struct map *m, bool force, bool *ret_over,
                              struct err *err)
{
    int64_t now_us = clock_boot_us();
    bool is_due = !p->is_quiet && now_us - p->shown_us >= (p->is_terminal ? DRAW_US : LINE_US);
    if (!is_due && !force) {
        return STATUS_OK;
    }
    enum status st = map_read(m, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!p->has_begun) {
        p->has_begun = true;
        p->start_ended = number(m, "rows") - number(m, "open");
    }
    p->failed = number(m, "failed");
    const char *state = admin_value(m->row, 0, admin_column(m->row, "state"));
    *ret_over =
        strcmp(state, "done") == 0 || (strcmp(state, "cancelled") == 0 && number(m, "open") == 0);
    if (is_due) {
        p->shown_us = now_us;
        p->is_drawn = p->is_terminal;
        put_line(p, m, now_us);
    }
    return STATUS_OK;
}

void map_progress_end(struct map_progress *p)
{
    if (p->is_drawn) {
        (void)fputs("\r\x1b[K", stderr);
        p->is_drawn = false;
    }
}

enum status map_follow(struct map *m, struct err *err)
{
    struct map_progress progress;
    bool is_over = false;
    map_progress_start(&progress, m);
    enum status st = map_progress_show(&progress, m, true, &is_over, err);
    while (st == STATUS_OK && !is_over && map_interrupted == 0) {
        ctl_rest(LOOK_US);
        st = map_progress_show(&progress, m, true, &is_over, err);
    }
    map_progress_end(&progress);
    if (st != STATUS_OK) {
        err_prefix(err, "map %s continues without claimctl, but", m->name);
        return st;
    }
    if (!is_over) {
        (void)fprintf(stderr, "claimctl: map %s continues; to follow it: claimctl map attach %s\n",
                      m->name, m->name);
    } else if (progress.failed > 0) {
        return err_fail(err, STATUS_INTERNAL,
                        "map %s: %lld rows failed; claimctl map show --failed %s", m->name,
                        (long long)progress.failed, m->name);
    }
    return STATUS_OK;
}
