/* SPDX-License-Identifier: Apache-2.0
 *
 * The one clock for leases, beats and deadlines: CLOCK_BOOTTIME, which goes on while a host is
 * suspended and never jumps (lock.A2, INTERFACES rule 9). Unit everywhere: int64 microseconds. Row
 * times are PostgreSQL's business. */
#ifndef CLAIMD_BASE_CLOCK_H
#define CLAIMD_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define US_PER_MS INT64_C(1000)
#define US_PER_S INT64_C(1000000)

int64_t clock_boot_us(void);

/* Wall clock, for output only: another machine's clock is compared with it. */
int64_t clock_wall_us(void);

/* Wall clock as "2026-01-02T03:04:05.678901Z" (for log lines and output only, never for a
 * decision). */
#define CLOCK_TEXT_SIZE 28
void clock_wall_text(char *ret_text, size_t size);

#endif
