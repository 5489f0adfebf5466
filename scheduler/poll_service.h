/* SPDX-License-Identifier: Apache-2.0
 *
 * The skeleton of the services that send one request at a time to PostgreSQL, on the scheduler's
 * own connection, while this scheduler leads. A request that fails is repeated with the next
 * cluster poll that wants it. */
#ifndef CLAIMD_SCHEDULER_POLL_SERVICE_H
#define CLAIMD_SCHEDULER_POLL_SERVICE_H

#include "base/log.h"
#include "scheduler/services.h"
#include "store/pg/pg.h"

struct poll_service;

/* What distinguishes such a service from others. */
struct poll_kind {
    unsigned work; /* FEED_TICK_… of the polls that want a request; any of them */
    /* Sends it; `done` gets the reply, with `ctx`. */
    enum status (*send)(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err);
    /* Takes a reply. True if another request is to follow at once. */
    bool (*take)(struct poll_service *p, const struct pg_result *const *results);
    /* Logs that a request has failed, as often as complaint_due() allows, or, if `why` is NULL,
     * that requests succeed again. */
    void (*tell)(struct complaint *complaint, const struct err *why);
};

struct poll_service {
    const struct poll_kind *kind;
    const struct service_env *env;
    struct complaint complaint;
    bool is_in_flight;
    bool is_wanted; /* another request, after the one in flight */
    bool is_stopped;
};

/* `size`: of the service's own struct, which begins with a struct poll_service. */
enum status poll_service_start(const struct poll_kind *kind, size_t size,
                               const struct service_env *env, void **ret_self,
                               struct err *err) MUST_USE;

/* For `polled`, `wake` and `stop` of struct service. */
void poll_service_polled(void *self, const struct cluster_view *view);
void poll_service_wake(void *self);
void poll_service_stop(void *self);

#endif
