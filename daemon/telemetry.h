/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon tells of itself: its registry of metrics and its state, published once a second for
 * other threads to read (INTERFACES rule 10), and over HTTP. */
#ifndef CLAIMD_DAEMON_TELEMETRY_H
#define CLAIMD_DAEMON_TELEMETRY_H

#include "daemon/health.h"
#include "metrics/metrics.h"

#include <uv.h>

struct telemetry;

/* In the loop's thread, right before a text is made: sets gauges, takes over counters. Not yet from
 * telemetry_open(), but from then on, whatever of the daemon is there or not. */
typedef void telemetry_collect_cb(void *ctx);

/* At the same moment: adds the checks of /readyz. */
typedef void telemetry_ready_cb(void *ctx, struct health *ret);

struct telemetry_options {
    uv_loop_t *loop;
    const char *http_key; /* of the configuration */
    const char *http_listen;
    telemetry_collect_cb *collect;
    telemetry_ready_cb *ready;
    void *ctx;
};

/* UNAVAILABLE: the address of http_listen can't be had. */
enum status telemetry_open(const struct telemetry_options *options, struct telemetry **ret,
                           struct err *err) MUST_USE;

/* Until telemetry_free(). */
struct metrics *telemetry_metrics(const struct telemetry *t);

/* Where HTTP is answered, or "off". */
const char *telemetry_address(const struct telemetry *t);

/* A text is made now, not only with the next second: something changed that others wait for. */
void telemetry_publish(struct telemetry *t);

/* No more texts, no more HTTP. The registry stays for those who still count. Accepts NULL; again is
 * fine. */
void telemetry_stop(struct telemetry *t);

/* After the loop has ended. Accepts NULL. */
void telemetry_free(struct telemetry *t);

/* What was published, for any thread; never changes. */
struct telemetry_text {
    int64_t made_us; /* by clock_boot_us() */
    size_t len;
    const char *metrics;
    struct health ready;
};

/* The newest one, to be given back. */
const struct telemetry_text *telemetry_take(struct telemetry *t);
void telemetry_give(const struct telemetry_text *text);

#endif
