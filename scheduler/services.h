/* SPDX-License-Identifier: Apache-2.0
 *
 * What only the leader does: each thing a service in a file of its own, and a row of the table in
 * services.c. They start when leading begins and stop when it ends; a roll (each second) and a new
 * configuration reach those that run. */
#ifndef CLAIMD_SCHEDULER_SERVICES_H
#define CLAIMD_SCHEDULER_SERVICES_H

#include "config/config.h"
#include "hints/hints.h"
#include "metrics/metrics.h"
#include "scheduler/roll_call.h"

#define SERVICES_MAX 8

/* What they work with, borrowed: all but `config` is the same for the whole life. */
struct service_env {
    uv_loop_t *loop;
    const struct config *config; /* the present one */
    const char *conninfo;        /* for slow statements, on a connection of one's own */
    struct pg *pg;               /* the scheduler's own: for short ones */
    struct metrics *registry;    /* may be NULL */
    struct hints *hints;
    struct feeder *feeder; /* the next two are there for standbys, too */
    struct rescuer *rescuer;
};

struct service {
    const char *failed; /* log event of a start that failed */
    enum status (*start)(const struct service_env *env, void **ret_self, struct err *err);
    void (*roll)(void *self, const struct roll *roll);       /* may be NULL */
    void (*wake)(void *self);                                /* may be NULL */
    void (*reload)(void *self, const struct config *config); /* may be NULL */
    void (*stop)(void *self);
};

struct services {
    struct service_env env;
    void *running[SERVICES_MAX]; /* NULL = stopped, or its start failed */
};

void services_start(struct services *s);
void services_roll(struct services *s, const struct roll *roll);
void services_wake(struct services *s); /* a job has ended for which others wait */
void services_reload(struct services *s, const struct config *config);
void services_stop(struct services *s); /* again is fine */

/* ---- the services without a header of their own ---- */
extern const struct service days_service;
extern const struct service rates_service;
/* Connects and begins at once. What is under way when it stops is cancelled with its connection: an
 * interrupted detach is finished by the next leader. */
extern const struct service history_service;

#endif
