/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of old, to be put back in the feed's model: each lane has a mark before which nothing
 * available is said to lie, and full passes and new leaders begin there. Without them these do
 * nothing. */
#ifndef CLAIMD_TESTS_MODEL_FEED_MARKS_H
#define CLAIMD_TESTS_MODEL_FEED_MARKS_H

#include "feed_world.h"

void marks_begin_lane(struct world *w, struct feed_lane *l);
void marks_begin_full(struct world *w);

/* A range of a full pass was read and pushed. */
void marks_raise(struct world *w, size_t range);

/* A row was given back. */
void marks_lower(struct world *w, size_t row);

#endif
