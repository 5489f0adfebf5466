/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows once no fault happens any more: reads end, ticks, passes and full passes come when
 * the real code says, and workers run what is hinted. */
#ifndef CLAIMD_TESTS_MODEL_FEED_REST_H
#define CLAIMD_TESTS_MODEL_FEED_REST_H

#include "feed_world.h"

/* Full passes come after so long; more than any distance in the model. */
#define REST_FULL_PASS_US (6 * TICK_US)

/* Sets w->violation when a row that is available, or falls due, gets no hint within the distance of
 * two full passes and one read more. The world is used up. */
void rest_run(struct world *w);

#endif
