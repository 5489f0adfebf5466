/* SPDX-License-Identifier: Apache-2.0
 *
 * Former rules that can be restored in the feed's model: each lane has a mark before which no
 * available row is assumed, and full passes and new leaders begin there. Without these rules, the
 * functions do nothing. */
#ifndef CLAIMD_TESTS_MODEL_FEED_MARKS_H
#define CLAIMD_TESTS_MODEL_FEED_MARKS_H

#include "feed_world.h"

void marks_begin_lane(struct world *w, struct feed_lane *l);
void marks_begin_full(struct world *w);

/* Call after a range of a full pass was read and pushed. */
void marks_raise(struct world *w, size_t range);

/* Call after a row was handed back. */
void marks_lower(struct world *w, size_t row);

#endif
