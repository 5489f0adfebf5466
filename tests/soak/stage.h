/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a soak takes place: the kit's world, as fast as it goes, with the soak's plugins, its
 * schema, and the folder that handlers write to. */
#ifndef CLAIMD_TESTS_SOAK_STAGE_H
#define CLAIMD_TESTS_SOAK_STAGE_H

#include "chaos/world.h"

/* Servers, schemas and what the daemons are to be given; none is started yet. Close the world in
 * any case. */
enum status stage_open(struct world *w, const struct options *kit, struct err *err) MUST_USE;

#endif
