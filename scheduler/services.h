/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's tasks. Each is a service in a file of its own and a row of the table in services.c.
 * Services start when leading begins and stop when it ends; each cluster poll (once a second) and
 * each new configuration is passed to those that run. */
#ifndef CLAIMD_SCHEDULER_SERVICES_H
#define CLAIMD_SCHEDULER_SERVICES_H

#include "config/config.h"
#include "hints/hints.h"
#include "metrics/metrics.h"
#include "scheduler/cluster_poll.h"

#define SERVICES_MAX 9

/* The borrowed objects that the services work with. Everything but `config` stays the same while
 * the process lives. */
struct service_env {
    uv_loop_t *loop;
    const struct config *config; /* the present one */
    const char *conninfo;        /* for slow statements, on a separate connection */
    struct pg *pg;               /* the scheduler's own: for short statements */
    struct metrics *registry;    /* may be NULL */
    struct hints *hints;
    struct feeder *feeder; /* this and the next exist on standbys, too */
    struct rescuer *rescuer;
};

struct service {
    const char *failed; /* log event if start() fails */
    enum status (*start)(const struct service_env *env, void **ret_self, struct err *err);
    void (*polled)(void *self, const struct cluster_view *view); /* may be NULL */
    void (*wake)(void *self);                                    /* may be NULL */
    void (*reload)(void *self, const struct config *config);     /* may be NULL */
    void (*stop)(void *self);
};

struct services {
    struct service_env env;
    void *running[SERVICES_MAX]; /* NULL = stopped, or its start failed */
};

void services_start(struct services *s);
void services_polled(struct services *s, const struct cluster_view *view);
void services_wake(struct services *s); /* a job has ended for which others wait */
void services_reload(struct services *s, const struct config *config);
void services_stop(struct services *s); /* may be called again */

/* ---- services without a header of their own ---- */
extern const struct service days_service;
extern const struct service maps_service;
extern const struct service rates_service;
/* Connects and begins at once. Closing its connection cancels the statement in progress; the next
 * leader finishes an interrupted detach. */
extern const struct service history_service;

#endif
