/* SPDX-License-Identifier: Apache-2.0
 *
 * The only clock for leases, heartbeats and deadlines: CLOCK_BOOTTIME, which keeps running while a
 * host is suspended and never jumps (lock.A2, INTERFACES rule 9). Every time is an int64 in
 * microseconds. Timestamps in rows come from PostgreSQL's clock. */
#ifndef CLAIMD_BASE_CLOCK_H
#define CLAIMD_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define US_PER_MS INT64_C(1000)
#define US_PER_S INT64_C(1000000)

int64_t clock_boot_us(void);

/* Returns the wall clock, for output only: readers compare it with the clocks of other machines. */
int64_t clock_wall_us(void);

/* Writes the wall clock as "2026-01-02T03:04:05.678901Z", for log lines and output only, never for
 * a decision. */
#define CLOCK_TEXT_SIZE 28
void clock_wall_text(char *ret_text, size_t size);

#endif
