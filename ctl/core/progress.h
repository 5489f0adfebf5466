/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a long piece of work is, on standard error: a line that is drawn anew on a terminal, else
 * a line every ten seconds. Nothing of what is quickly done. */
#ifndef CLAIMD_CTL_PROGRESS_H
#define CLAIMD_CTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *verb; /* "sent"; borrowed */
    int64_t total;    /* 0 = unknown */
    int64_t start_us;
    int64_t shown_us; /* when it was shown last */
    bool is_quiet;
    bool is_terminal;
    bool is_drawn; /* a line stands there, to be wiped */
};

/* `total` counts whatever `done` counts below: bytes of a file, or jobs. */
void progress_start(struct progress *p, const char *verb, int64_t total, bool is_quiet);
/* Shows it, if it is time to. */
void progress_note(struct progress *p, int64_t jobs, int64_t done);
/* Wipes it: what follows begins on a line of its own. */
void progress_end(struct progress *p);

#endif
