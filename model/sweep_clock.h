/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether old jobs may be deleted, by PostgreSQL's clock. They may not be for a day after
 * it has jumped ahead: a clock that is wrong by months would delete the whole history at once. The
 * clock of the scheduler's host can't confirm it, since both may be one machine; BOOTTIME can, as
 * long as one leader leads. Pure; µs. */
#ifndef CLAIMD_MODEL_SWEEP_CLOCK_H
#define CLAIMD_MODEL_SWEEP_CLOCK_H

#include <stdint.h>

#define SWEEP_NEVER_US INT64_C(-1)

/* The state that is stored, so that the next leader knows it. */
struct sweep_clock {
    int64_t at_us;   /* PostgreSQL's clock at the last check */
    int64_t hold_us; /* for how much longer nothing may be deleted; 0 = deleting is allowed */
};

/* Checks the clock; call it before each deletion with the time by which the deletion would be
 * decided. `passed_us`: BOOTTIME since this leader's last check, or SWEEP_NEVER_US. Returns by how
 * much the clock has jumped if that begins a hold, else 0. */
int64_t sweep_clock_look(struct sweep_clock *c, int64_t pg_us, int64_t passed_us);

#endif
