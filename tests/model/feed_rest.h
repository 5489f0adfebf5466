/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the model without further faults: reads end, ticks, passes and full passes come when the
 * real code schedules them, and workers run what is hinted. */
#ifndef CLAIMD_TESTS_MODEL_FEED_REST_H
#define CLAIMD_TESTS_MODEL_FEED_REST_H

#include "feed_world.h"

/* Interval of full passes; longer than any interval in the model. */
#define REST_FULL_PASS_US (6 * TICK_US)

/* Sets w->violation if a row that is available, or falls due, gets no hint within the interval of
 * two full passes and one more read. The world cannot be used afterwards. */
void rest_run(struct world *w);

#endif
