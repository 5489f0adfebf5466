/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a failed attempt waits, as set for a kind or a job:
 *
 *     exponential:15s:1h    15 s, 30 s, 60 s, … up to 1 h
 *     linear:10s:1h         10 s, 20 s, 30 s, … up to 1 h
 *     fixed:30s
 *     list:1s,5s,1m         the last one from then on
 *
 * each with or without a jitter at its end: ~10% = up to a tenth more or less. Durations are 0 to
 * 366 days, in ms, s, m, h or d. Pure. claimd.backoff_is_valid() accepts the same texts. */
#ifndef CLAIMD_MODEL_BACKOFF_H
#define CLAIMD_MODEL_BACKOFF_H

#include "base/err.h"

#include <stdint.h>

#define BACKOFF_SIZE 101 /* size of its text, with the NUL */
#define BACKOFF_LIST_MAX 20
#define BACKOFF_FORMS                                                                        \
    "exponential:15s:1h, linear:10s:1h, fixed:30s or list:1s,5s,1m (at most 20), each with " \
    "~10% behind it or not, at most 100 bytes and 366 days"

enum backoff_shape { BACKOFF_EXPONENTIAL, BACKOFF_LINEAR, BACKOFF_FIXED, BACKOFF_LIST };

struct backoff {
    enum backoff_shape shape;
    int jitter_percent;
    int64_t us[BACKOFF_LIST_MAX]; /* first delay and cap; the delay; or the delays */
    size_t count;
};

/* Parses the text. INVALID names the allowed forms. */
enum status backoff_parse(const char *text, struct backoff *ret, struct err *err) MUST_USE;

/* Returns the delay after n ≥ 1 charged attempts. `unit` is the random number of the jitter, in [0,
 * 1000]. */
int64_t backoff_us(const struct backoff *b, int attempt, int unit);

#endif
