/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells a step of a server's wall clock from a stall of the client (lock.N4). One sample shows that
 * the server's clock is ahead of ours by some value between server − received and server − sent: a
 * stall makes this interval wider, never wrong. The known interval is kept, and widens by the
 * possible drift of two clocks. Pure: every time is an argument. */
#ifndef CLAIMD_REDLOCK_RULES_CLOCKWATCH_H
#define CLAIMD_REDLOCK_RULES_CLOCKWATCH_H

#include <stdbool.h>
#include <stdint.h>

struct clockwatch {
    int64_t low_us; /* the server's clock is ahead of ours by low_us to high_us */
    int64_t high_us;
    int64_t at_us;       /* the interval held at some time after this, by our clock */
    int64_t last_gap_us; /* how far the last sample was outside the interval; 0 = inside */
    bool is_set;
};

struct clock_sample {
    int64_t sent_us; /* our clock, at or before the sending of the request */
    int64_t received_us;
    int64_t server_us; /* its wall clock */
};

/* Takes a sample. Returns by how much the clock stepped (negative = back) once two samples in a row
 * are outside the known interval, on the same side and by more than `tolerance_us`; otherwise 0. */
int64_t clockwatch_take(struct clockwatch *w, const struct clock_sample *s, int64_t tolerance_us,
                        int drift_ppm);

#endif
