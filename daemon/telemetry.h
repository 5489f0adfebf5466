/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon reports about itself: its metrics and its health, published once a second for the
 * HTTP thread (INTERFACES rule 10): GET /metrics, /healthz and /readyz. Each text and each watchdog
 * message to the supervisor requires a full turn of the loop: a timer writes to an eventfd, and the
 * poll phase reads it. So a loop that only runs timers and never polls publishes nothing. */
#ifndef CLAIMD_DAEMON_TELEMETRY_H
#define CLAIMD_DAEMON_TELEMETRY_H

#include "daemon/health.h"
#include "metrics/metrics.h"

#include <uv.h>

struct telemetry;

/* Sets gauges and counters. Runs in the loop's thread right before a text is made. It is not called
 * from inside telemetry_open(), but may be called at any time after that, even while some parts of
 * the daemon do not exist. */
typedef void telemetry_collect_cb(void *ctx);

/* Adds health checks, right after telemetry_collect_cb. `ready` adds those of /readyz only. `alive`
 * adds those that count for liveness: they appear in /healthz and /readyz and control the
 * supervisor's watchdog. A failed liveness check gets the process restarted, so it must be about
 * the process itself, such as "the leader has tried a pass within N s", whatever the servers
 * answered. This module itself checks that the loop turns, including its poll phase. No name may
 * occur in both sets. */
typedef void telemetry_checks_cb(void *ctx, struct health *ret);

/* Returns until when, on clock_boot_us(), this process holds the lease that
 * telemetry_options.lease_family shows; 0 = it doesn't hold it. Runs in the loop's thread, ten
 * times a second. */
typedef int64_t telemetry_lease_cb(void *ctx);

struct telemetry_options {
    uv_loop_t *loop;
    const char *http_key; /* the configuration key, for error messages */
    const char *http_listen;
    telemetry_collect_cb *collect;
    telemetry_checks_cb *ready;
    telemetry_checks_cb *alive; /* NULL = only the loop check */
    /* A gauge without labels that is not in the registry: 1 until `lease`, then 0. The HTTP thread
     * compares the time itself, so that a process whose loop hangs stops claiming the lease. May be
     * NULL. */
    const struct metric_family *lease_family;
    telemetry_lease_cb *lease;
    void *ctx;
};

/* Starts to publish. Returns UNAVAILABLE if it can't listen on http_listen. */
enum status telemetry_open(const struct telemetry_options *options, struct telemetry **ret,
                           struct err *err) MUST_USE;

/* Returns the registry, which is valid until telemetry_free(). */
struct metrics *telemetry_metrics(const struct telemetry *t);

/* Returns the address of the HTTP server, or "off". */
const char *telemetry_address(const struct telemetry *t);

/* Publishes a text now instead of within the next second, because something has changed that others
 * wait for. */
void telemetry_publish(struct telemetry *t);

/* Stops publishing and the HTTP server. The registry stays valid for code that still counts.
 * Accepts NULL; may be called again. */
void telemetry_stop(struct telemetry *t);

/* Frees everything, after the loop has ended. Accepts NULL. */
void telemetry_free(struct telemetry *t);

#endif
