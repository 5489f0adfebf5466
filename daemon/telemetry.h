/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon tells of itself: its registry of metrics, and once a second a text of it that other
 * threads may read (INTERFACES rule 10). */
#ifndef CLAIMD_DAEMON_TELEMETRY_H
#define CLAIMD_DAEMON_TELEMETRY_H

#include "base/err.h"
#include "metrics/metrics.h"

#include <uv.h>

struct telemetry;

/* In the loop's thread, right before a text is made: sets gauges, takes over counters. Not yet from
 * telemetry_open(), but from then on, whatever of the daemon is there or not. */
typedef void telemetry_collect_cb(void *ctx);

struct telemetry_options {
    uv_loop_t *loop;
    telemetry_collect_cb *collect;
    void *ctx;
};

enum status telemetry_open(const struct telemetry_options *options, struct telemetry **ret,
                           struct err *err) MUST_USE;

/* Until telemetry_free(). */
struct metrics *telemetry_metrics(const struct telemetry *t);

/* A text is made now, not only with the next second: something changed that others wait for. */
void telemetry_publish(struct telemetry *t);

/* No more texts. The registry stays for those who still count. Accepts NULL; again is fine. */
void telemetry_stop(struct telemetry *t);

/* After the loop has ended. Accepts NULL. */
void telemetry_free(struct telemetry *t);

/* What was published, for any thread; never changes. */
struct telemetry_text {
    int64_t made_us; /* by clock_boot_us() */
    size_t len;
    const char *metrics;
};

/* The newest one, to be given back. */
const struct telemetry_text *telemetry_take(struct telemetry *t);
void telemetry_give(const struct telemetry_text *text);

#endif
