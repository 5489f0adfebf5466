/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when to make the next pass, and whether to ask producers for a NOTIFY (INTERFACES rule
 * 5). Pure; BOOTTIME µs. */
#ifndef CLAIMD_MODEL_FEED_PACE_H
#define CLAIMD_MODEL_FEED_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define FEED_FED_ROWS 500 /* a pass that feeds at least this many ends hunger */

struct feed_pace {
    bool is_hungry;
    int passes;        /* since hunger began */
    int64_t full_us;   /* interval between passes while the hints are full */
    int64_t moved_us;  /* when the hints were last found to be fewer, or not full */
    int64_t next_us;   /* when the next pass begins */
    int64_t passed_us; /* when the last pass began */
};

struct feed_pass {
    int64_t begun_us;
    int64_t now_us;
    int rows;      /* number of rows fed */
    bool has_more; /* more rows to read, and room */
    bool is_full;  /* more to read, no room */
    bool progress; /* there are fewer hints than at the last count */
};

/* Takes the result of a pass. Zero value: a pass is due at once. every_us: one tick, 1 s scaled. */
void feed_pace_passed(struct feed_pace *p, const struct feed_pass *pass, int64_t every_us);

/* Returns when a pass may begin after a NOTIFY. In a stream of them, passes are at least 2 ms
 * apart. */
int64_t feed_pace_woken_us(const struct feed_pace *p, int64_t now_us);

#endif
