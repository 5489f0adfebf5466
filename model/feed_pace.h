/* SPDX-License-Identifier: Apache-2.0
 *
 * When to make the next pass, and whether to ask producers for a NOTIFY (INTERFACES rule 5). Pure;
 * BOOTTIME µs. */
#ifndef CLAIMD_MODEL_FEED_PACE_H
#define CLAIMD_MODEL_FEED_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define FEED_FED_ROWS 500 /* a pass that feeds this many ends hunger */

struct feed_pace {
    bool is_hungry;
    int passes;        /* since hunger began */
    int64_t full_us;   /* interval of passes while the hints are full */
    int64_t moved_us;  /* when they were last found to be fewer, or not full */
    int64_t next_us;   /* the next pass begins then */
    int64_t passed_us; /* the last pass began then */
};

struct feed_pass {
    int64_t begun_us;
    int64_t now_us;
    int rows;      /* fed */
    bool has_more; /* to read, and room */
    bool is_full;  /* more to read, no room */
    bool progress; /* there are fewer hints than at the last count */
};

/* Zero value: a pass is due at once. every_us: "each second". */
void feed_pace_passed(struct feed_pace *p, const struct feed_pass *pass, int64_t every_us);

/* When may a pass begin after a NOTIFY? In a stream of them, rows gather for 2 ms. */
int64_t feed_pace_woken_us(const struct feed_pace *p, int64_t now_us);

#endif
