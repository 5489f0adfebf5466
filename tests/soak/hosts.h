/* SPDX-License-Identifier: Apache-2.0
 *
 * Additional settings of the soak's daemons, and what is read from the workers' metrics. */
#ifndef CLAIMD_TESTS_SOAK_HOSTS_H
#define CLAIMD_TESTS_SOAK_HOSTS_H

#include "chaos/world.h"

/* Sets plugins, which differ per host, and ports. Call before the first host is started. */
void hosts_equip(struct world *w);
/* Gives the host a new port. Call before it is restarted, since another process may have taken the
 * old one. */
void hosts_new_port(struct world *w, size_t host);

/* Returns how many late finishes of this worker process were refused; 0 if the host is no worker or
 * does not answer. */
int64_t hosts_refusals(const struct world *w, size_t host);

#endif
