/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/progress.h"

#include "base/clock.h"
#include "ctl/core/human.h"

#include <stdio.h>
#include <unistd.h>

#define DRAW_US (200 * US_PER_MS)
#define LINE_US (10 * US_PER_S)
#define BAR_WIDTH 24

void progress_start(struct progress *p, const char *verb, int64_t total, bool is_quiet)
{
    int64_t now_us = clock_boot_us();
    *p = (struct progress){.verb = verb,
                           .total = total,
                           .start_us = now_us,
                           .shown_us = now_us,
                           .is_quiet = is_quiet,
                           .is_terminal = isatty(STDERR_FILENO) == 1};
}

static void put_bar(double part)
{
    int full = (int)(part * BAR_WIDTH);
    (void)fputs(" [", stderr);
    for (int i = 0; i < BAR_WIDTH; i++) {
        (void)fputc(i < full ? '#' : '.', stderr);
    }
    (void)fputc(']', stderr);
}

void progress_note(struct progress *p, int64_t jobs, int64_t done)
{
    int64_t now_us = clock_boot_us();
    if (p->is_quiet || now_us - p->shown_us < (p->is_terminal ? DRAW_US : LINE_US)) {
        return;
    }
    double seconds = (double)(now_us - p->start_us) / US_PER_S;
    double part = p->total > 0 ? (double)done / (double)p->total : 0;
    part = part < 1 ? part : 1;
    p->shown_us = now_us;
    p->is_drawn = p->is_terminal;
    (void)fprintf(stderr, "%s%s %lld jobs, %.0f/s", p->is_terminal ? "\r" : "claimctl: ", p->verb,
                  (long long)jobs, (double)jobs / seconds);
    if (part > 0) {
        char left[HUMAN_MAX];
        human_duration(seconds / part - seconds, left);
        if (p->is_terminal) {
            put_bar(part);
        }
        (void)fprintf(stderr, " %.0f%%, %s left", part * 100, left);
    }
    (void)fputs(p->is_terminal ? "\x1b[K" : "\n", stderr);
    (void)fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->is_drawn) {
        (void)fputs("\r\x1b[K", stderr);
        p->is_drawn = false;
    }
}
