/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/poll_service.h"

#include <assert.h>
#include <stdlib.h>

static void ask(struct poll_service *p);

static void on_reply(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct poll_service *p = ctx;
    p->is_in_flight = false;
    if (p->is_stopped) {
        free(p);
        return;
    }
    p->kind->tell(&p->complaint, st == STATUS_OK ? NULL : err);
    if (st == STATUS_OK && (p->kind->take(p, results) || p->is_wanted)) {
        ask(p);
    }
}

static void ask(struct poll_service *p)
{
    p->is_wanted = p->is_in_flight;
    if (!p->is_in_flight && pg_is_up(p->env->pg)) {
        p->is_in_flight = p->kind->send(p->env->pg, on_reply, p, NULL) == STATUS_OK;
    }
}

void poll_service_wake(void *self)
{
    ask(self);
}

void poll_service_polled(void *self, const struct cluster_view *view)
{
    struct poll_service *p = self;
    if ((view->work & p->kind->work) != 0) {
        ask(p);
    }
}

enum status poll_service_start(const struct poll_kind *kind, size_t size,
                               const struct service_env *env, void **ret_self, struct err *err)
{
    assert(size >= sizeof(struct poll_service));
    struct poll_service *p = calloc(1, size);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for a service of the leader");
    }
    p->kind = kind;
    p->env = env;
    *ret_self = p;
    return STATUS_OK;
}

/* The reply in flight still arrives, if only to report that the connection is gone. */
void poll_service_stop(void *self)
{
    struct poll_service *p = self;
    p->is_stopped = true;
    if (!p->is_in_flight) {
        free(p);
    }
}
