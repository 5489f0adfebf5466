/* SPDX-License-Identifier: Apache-2.0
 *
 * When to vacuum the table of open jobs: by the number of dead rows that are new since the last
 * time, so that at a steady trickle there are never more than those of a second or two; never for
 * more than a small part of the time; and less often while a transaction that stays open keeps dead
 * rows from being removed. Pure; BOOTTIME µs. */
#ifndef CLAIMD_MODEL_VACUUM_PACE_H
#define CLAIMD_MODEL_VACUUM_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct vacuum_pace {
    uint64_t fed;          /* jobs fed before the last check of the statistics */
    int64_t left;          /* dead rows that the last vacuum could not remove */
    int64_t ended_us;      /* end of the last vacuum */
    int64_t rest_until_us; /* set by the last vacuum */
};

/* Values from the statistics, which are up to a second old. */
struct vacuum_rows {
    int64_t dead;
    int64_t live;
};

/* Returns true if enough jobs were fed (whose rows die soon, or have died) for a check of the
 * statistics to be worthwhile. Called each second. An idle system is not checked. */
bool vacuum_pace_is_worth_a_look(const struct vacuum_pace *p, uint64_t fed, int64_t now_us);
void vacuum_pace_looked(struct vacuum_pace *p, uint64_t fed);

bool vacuum_pace_is_due(struct vacuum_pace *p, const struct vacuum_rows *rows, int64_t now_us);
void vacuum_pace_ended(struct vacuum_pace *p, int64_t begun_us, int64_t now_us);
/* Takes the statistics right after a vacuum. */
void vacuum_pace_left(struct vacuum_pace *p, const struct vacuum_rows *rows);

#endif
