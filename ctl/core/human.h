/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and times in a form for people at a terminal; JSON and pipes get them unchanged. */
#ifndef CLAIMD_CTL_HUMAN_H
#define CLAIMD_CTL_HUMAN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define HUMAN_MAX 32
#define HUMAN_TIME_MAX 40

/* Writes "250ms", "4.2s", "42s", "3m12s", "2h05m" or "3d04h". */
void human_duration(double seconds, char ret_text[HUMAN_MAX]);

/* Writes "3m12s ago" or "in 5m00s" for a time of PostgreSQL as our queries write it
 * ("2026-01-31T08:00:00.123Z"), relative to now_us. INVALID: not of that form. */
enum status human_time(const char *text, int64_t now_us, char ret_text[HUMAN_MAX]) MUST_USE;

/* Writes microseconds since 1970 as "2026-01-31T08:00:00.123456Z". */
void human_iso(int64_t us, char ret_text[HUMAN_TIME_MAX]);

#endif
