/* SPDX-License-Identifier: Apache-2.0
 *
 * The way to a living row in PostgreSQL, without which nothing is claimed: check the schema, join
 * the cluster, end a predecessor, register. */
#ifndef CLAIMD_WORKER_REGISTRATION_H
#define CLAIMD_WORKER_REGISTRATION_H

#include "base/err.h"
#include "base/log.h"
#include "store/cluster_store.h"
#include "store/worker_store.h"
#include "worker/kind_set.h"

#include <uv.h>

struct worker;

struct registration {
    uv_timer_t timer;  /* the next try */
    bool is_in_flight; /* a step was sent and is not answered yet */
    bool is_schema_checked;
    struct cluster_join join;
    char fingerprint[CLUSTER_FINGERPRINT_MAX];
    int64_t lock_since_us;               /* when the lock nodes were first connected to */
    char predecessor_id[WORKER_ID_SIZE]; /* in the same state directory; "" = none, or settled */
    char worker_id[WORKER_ID_SIZE];      /* drawn for each row */
    int64_t sent_us;                     /* of the row: it counts as the first beat */
    bool is_registered;
    struct complaint complaint;
};

enum status registration_open(struct worker *w, struct err *err) MUST_USE;
void registration_close(struct worker *w);

/* Where PostgreSQL is up and the kinds are known. Safe to call again at any time: it goes on where
 * it stands. */
void registration_begin(struct worker *w);

/* Our row was marked dead: a new worker_id for what comes, frozen beats for what is held. */
void registration_again(struct worker *w);

/* A step failed and is tried again, whoever's it was. */
void registration_complain(struct worker *w, const char *step, const struct err *err);

/* Tells PostgreSQL of these kinds, for the row that we have. */
enum status registration_announce(struct worker *w, const struct kind_set *kinds,
                                  worker_done_cb *done, void *ctx) MUST_USE;

#endif
