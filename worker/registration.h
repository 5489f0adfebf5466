/* SPDX-License-Identifier: Apache-2.0
 *
 * The way to a living row in PostgreSQL, without which nothing is claimed: check the schema, join
 * the cluster, end a predecessor, register. */
#ifndef CLAIMD_WORKER_REGISTRATION_H
#define CLAIMD_WORKER_REGISTRATION_H

#include "store/worker_store.h"
#include "worker/kind_set.h"

struct worker;

/* Where PostgreSQL is up and the kinds are known. Safe to call again at any time: it goes on where
 * it stands. */
void registration_begin(struct worker *w);

/* Our row was marked dead: a new worker_id for what comes, frozen beats for what is held. */
void registration_again(struct worker *w);

/* Tells PostgreSQL of these kinds, for the row that we have. */
enum status registration_announce(struct worker *w, const struct kind_set *kinds,
                                  worker_done_cb *done, void *ctx) MUST_USE;

#endif
