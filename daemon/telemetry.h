/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon reports of itself: its registry of metrics and its state, published once a second
 * for the HTTP thread to read (INTERFACES rule 10): GET /metrics, /healthz and /readyz. Each text,
 * like each sign of life to the supervisor, needs a round trip through the loop: a timer writes to
 * an eventfd, and the poll phase reads it. A loop that only runs timers and never polls gives
 * neither. */
#ifndef CLAIMD_DAEMON_TELEMETRY_H
#define CLAIMD_DAEMON_TELEMETRY_H

#include "daemon/health.h"
#include "metrics/metrics.h"

#include <uv.h>

struct telemetry;

/* In the loop's thread, right before a text is made: sets gauges, takes over counters. Not called
 * from inside telemetry_open(), but at any time after it, whichever parts of the daemon exist. */
typedef void telemetry_collect_cb(void *ctx);

/* At the same moment: adds the checks of /readyz, or (telemetry_options.alive) those that count for
 * liveness: /healthz, /readyz and the supervisor's watchdog. If a liveness check fails, the process
 * is restarted, so the check must be about the process itself, such as "the leader has tried a pass
 * within N s", whatever the servers answered. This module already checks that the loop turns, poll
 * phase included. Names must differ in both. */
typedef void telemetry_checks_cb(void *ctx, struct health *ret);

/* In the loop's thread, ten times a second: until when, by clock_boot_us(), this process holds what
 * telemetry_options.lease_family is about; 0 = it doesn't. */
typedef int64_t telemetry_lease_cb(void *ctx);

struct telemetry_options {
    uv_loop_t *loop;
    const char *http_key; /* of the configuration */
    const char *http_listen;
    telemetry_collect_cb *collect;
    telemetry_checks_cb *ready;
    telemetry_checks_cb *alive; /* NULL = the loop alone counts */
    /* A gauge without labels that is not in the registry: 1 until `lease`, 0 from then on, by the
     * clock of the thread that answers, so that a hanging loop doesn't claim it any longer. May be
     * NULL. */
    const struct metric_family *lease_family;
    telemetry_lease_cb *lease;
    void *ctx;
};

/* UNAVAILABLE: the address of http_listen can't be had. */
enum status telemetry_open(const struct telemetry_options *options, struct telemetry **ret,
                           struct err *err) MUST_USE;

/* Until telemetry_free(). */
struct metrics *telemetry_metrics(const struct telemetry *t);

/* Where HTTP is answered, or "off". */
const char *telemetry_address(const struct telemetry *t);

/* Makes a text now, not only with the next second, because something changed that others wait
 * for. */
void telemetry_publish(struct telemetry *t);

/* No more texts, no more HTTP. The registry stays for code that still counts. Accepts NULL; may be
 * called again. */
void telemetry_stop(struct telemetry *t);

/* After the loop has ended. Accepts NULL. */
void telemetry_free(struct telemetry *t);

#endif
