/* SPDX-License-Identifier: Apache-2.0
 *
 * What the soak's daemons are given besides, and what its workers tell of themselves. */
#ifndef CLAIMD_TESTS_SOAK_HOSTS_H
#define CLAIMD_TESTS_SOAK_HOSTS_H

#include "chaos/world.h"

/* Before the first of them is started: plugins, which differ, and ports. */
void hosts_equip(struct world *w);
/* Before it is started again: who knows whose the last one is by then. */
void hosts_new_port(struct world *w, size_t host);

/* How many late ends this worker's life has had refused; 0 of others and of one that is silent. */
int64_t hosts_refusals(const struct world *w, size_t host);

#endif
