/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows the progress of long work on standard error: on a terminal, a line that is redrawn; else a
 * line every ten seconds. Shows nothing for work that is done quickly. */
#ifndef CLAIMD_CTL_PROGRESS_H
#define CLAIMD_CTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *verb; /* "sent"; borrowed */
    int64_t total;    /* 0 = unknown */
    int64_t start_us;
    int64_t shown_us; /* time of the last line */
    bool is_quiet;
    bool is_terminal;
    bool is_drawn; /* a line is on the terminal, and must be wiped */
};

/* `total` is in the unit of `done` below: bytes of a file, or jobs. */
void progress_start(struct progress *p, const char *verb, int64_t total, bool is_quiet);
/* Shows the progress if it is time to. */
void progress_note(struct progress *p, int64_t jobs, int64_t done);
/* Wipes the line, so that what follows begins on a line of its own. */
void progress_end(struct progress *p);

#endif
