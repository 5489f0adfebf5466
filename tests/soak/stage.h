/* SPDX-License-Identifier: Apache-2.0
 *
 * The world of a soak: the chaos kit's world, tuned for speed, with the soak's plugins and schema,
 * and the folder that handlers write to. */
#ifndef CLAIMD_TESTS_SOAK_STAGE_H
#define CLAIMD_TESTS_SOAK_STAGE_H

#include "chaos/world.h"

/* Starts the servers, makes the schemas and sets the daemons' options, but starts no daemon. Close
 * the world in any case. */
enum status stage_open(struct world *w, const struct options *kit, struct err *err) MUST_USE;

#endif
