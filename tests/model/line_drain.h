/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the line's model without further faults: everything in flight arrives, in a fixed order,
 * with all clients at the same pace. */
#ifndef CLAIMD_TESTS_MODEL_LINE_DRAIN_H
#define CLAIMD_TESTS_MODEL_LINE_DRAIN_H

#include "line_world.h"
#include "search.h"

/* The orders in which nodes run the commands of several clients. */
enum drain_order {
    DRAIN_ALIKE,   /* the first client goes first on every node */
    DRAIN_ROTATED, /* each node puts another client first, so votes are split */
    DRAIN_REVERSED,
    DRAIN_ORDERS
};

struct drain {
    const struct line_world *world;
    enum drain_order order;
    struct search served; /* states from which all are served */
};

/* Returns false if memory ran out. Call drain_release() in any case. */
bool drain_init(struct drain *d, const struct line_world *world, enum drain_order order);
void drain_release(struct drain *d);

/* True if every living client is served from this state. */
bool drain_serves_all(struct drain *d, const struct line_state *s);

#endif
