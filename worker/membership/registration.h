/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the steps to a live row in PostgreSQL, without which nothing is claimed: check the schema,
 * join the cluster, end a predecessor, register. */
#ifndef CLAIMD_WORKER_MEMBERSHIP_REGISTRATION_H
#define CLAIMD_WORKER_MEMBERSHIP_REGISTRATION_H

#include "base/err.h"
#include "base/log.h"
#include "store/cluster_store.h"
#include "store/worker_store.h"
#include "worker/membership/kind_set.h"

#include <uv.h>

struct membership;

struct registration {
    uv_timer_t timer;  /* for the next try */
    bool is_in_flight; /* a step was sent and not answered yet */
    bool is_schema_checked;
    struct cluster_join join;
    char fingerprint[CLUSTER_FINGERPRINT_MAX];
    int64_t lock_since_us;               /* when the lock nodes were first contacted */
    char predecessor_id[WORKER_ID_SIZE]; /* in the same state directory; "" = none, or dealt with */
    int64_t sent_us;                     /* when the row was sent; counts as the first heartbeat */
    struct complaint complaint;
};

enum status registration_open(struct membership *m, struct err *err) MUST_USE;
void registration_close(struct membership *m);

/* Call when PostgreSQL is up and the kinds are known. Safe to call at any time: continues with the
 * next step. */
void registration_begin(struct membership *m);

/* Call when the row was marked dead: claims get a new worker_id, and the active jobs keep the time
 * of the last confirmed heartbeat. */
void registration_again(struct membership *m);

/* Logs that a step has failed and is retried, including steps of other files. */
void registration_complain(struct membership *m, const char *step, const struct err *err);

/* Announces these kinds to PostgreSQL under the existing row. */
enum status registration_announce(struct membership *m, const struct kind_set *kinds,
                                  worker_done_cb *done, void *ctx) MUST_USE;

#endif
