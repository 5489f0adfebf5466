/* SPDX-License-Identifier: Apache-2.0
 *
 * The database of a fleet: in a PostgreSQL of its own, or in the one that fleets share
 * (fleet_share_pg()). Migrating takes longer than all else that a fleet needs to start, so the
 * result is kept for other tests of the same build. Only for fleet.c. */
#ifndef CLAIMD_TESTS_SUPPORT_FLEET_PG_H
#define CLAIMD_TESTS_SUPPORT_FLEET_PG_H

#include "support/fleet.h"

/* Daemons have the least privileges they need (inv.P1). */
#define FLEET_WORKER_LOGIN "fleet_worker"
#define FLEET_SCHEDULER_LOGIN "fleet_scheduler"

/* Sets f->pg and f->conninfo; the database has the schema and the logins. Uses f->dir and
 * f->options. */
void fleet_pg_start(struct fleet *f);
void fleet_pg_stop(struct fleet *f);

/* In fleet.c. */
void fleet_write_config(const struct fleet *f);

#endif
