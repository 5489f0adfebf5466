/* SPDX-License-Identifier: Apache-2.0
 *
 * Additional settings of the soak's daemons, and what is read from the workers' metrics. */
#ifndef CLAIMD_TESTS_SOAK_HOSTS_H
#define CLAIMD_TESTS_SOAK_HOSTS_H

#include "chaos/world.h"

/* Sets plugins, which differ per host, and ports. Call before the first host is started. */
void hosts_equip(struct world *w);
/* Call before a host is killed: counts its refusals, and gives it a new port, since another process
 * may take the old one. */
void hosts_leave(struct world *w, const struct host *h);

/* Returns how many late finishes the workers have refused, except those that did not answer. */
int64_t hosts_refusals(const struct world *w);

#endif
