/* SPDX-License-Identifier: Apache-2.0
 *
 * May old jobs be deleted, by PostgreSQL's clock? Not for a day after it has jumped ahead: a clock
 * that is wrong by months would delete the whole history at once. Its host's clock is no witness,
 * since both may be one machine; BOOTTIME is, while one leader leads. Pure; µs. */
#ifndef CLAIMD_MODEL_SWEEP_CLOCK_H
#define CLAIMD_MODEL_SWEEP_CLOCK_H

#include <stdint.h>

#define SWEEP_NEVER_US INT64_C(-1)

/* As it is stored, so that the next leader knows it. */
struct sweep_clock {
    int64_t at_us;   /* PostgreSQL's clock at the last look */
    int64_t hold_us; /* how much longer nothing is deleted; 0 = it may be */
};

/* A look, before each deletion, at the time by which it would be judged. `passed_us`: BOOTTIME
 * since this leader's last look, or SWEEP_NEVER_US. Returns by how much the clock has jumped if
 * that begins a hold, else 0. */
int64_t sweep_clock_look(struct sweep_clock *c, int64_t pg_us, int64_t passed_us);

#endif
