/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells whether a server's wall clock stepped or the client was only stalled (lock.N4). One sample
 * says that the server's clock is ahead of ours by some value between server − received and server
 * − sent: a stall makes this interval wider, never wrong. The known interval is kept, and widens by
 * the drift that two clocks may have. Pure: every time is an argument. */
#ifndef CLAIMD_REDLOCK_RULES_CLOCKWATCH_H
#define CLAIMD_REDLOCK_RULES_CLOCKWATCH_H

#include <stdbool.h>
#include <stdint.h>

struct clockwatch {
    int64_t low_us; /* the server's clock is ahead of ours by low to high */
    int64_t high_us;
    int64_t at_us;       /* true at some time after this, by our clock */
    int64_t last_gap_us; /* by how much the last sample lay outside; 0 = it did not */
    bool is_set;
};

struct clock_sample {
    int64_t sent_us; /* our clock, not after the request was sent */
    int64_t received_us;
    int64_t server_us; /* its wall clock */
};

/* Takes a sample. Yields by how much the clock stepped (negative = back) once two samples in a row
 * lie outside the known interval, on the same side and by more than `tolerance_us`; else 0. */
int64_t clockwatch_take(struct clockwatch *w, const struct clock_sample *s, int64_t tolerance_us,
                        int drift_ppm);

#endif
