/* SPDX-License-Identifier: Apache-2.0
 *
 * What happened in each of the last minutes, up to a day, for the charts of the overview. The
 * minutes are in memory: those from before the start of this claimd-web are not known. All calls
 * may come from any thread. */
#ifndef CLAIMD_WEB_SERIES_H
#define CLAIMD_WEB_SERIES_H

#include "base/text.h"

#include <stdint.h>

struct series;

struct series_minute {
    int64_t at_us; /* its end, by the wall clock; 0 = not known */
    double completed;
    double discarded;
    double cancelled;
    double wait_p95_s; /* below 0 = not known */
    double run_p95_s;
    bool is_estimated;
};

enum status series_open(struct series **ret, struct err *err) MUST_USE;
void series_close(struct series *s); /* accepts NULL */

/* True if the last minute is over and is not known yet. */
bool series_is_due(struct series *s, int64_t now_us);
void series_add(struct series *s, const struct series_minute *minute);

/* Appends the answer for a period: "15m", "1h" or "24h". INVALID: another one. */
enum status series_put(struct series *s, const char *period, int64_t now_us, struct text *out,
                       struct err *err) MUST_USE;

#endif
