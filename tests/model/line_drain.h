/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows when no fault happens any more: everything that is on its way arrives, in a fixed
 * order, all clients at the same pace. */
#ifndef CLAIMD_TESTS_MODEL_LINE_DRAIN_H
#define CLAIMD_TESTS_MODEL_LINE_DRAIN_H

#include "line_world.h"
#include "search.h"

/* The orders in which nodes run the commands of several clients. */
enum drain_order {
    DRAIN_ALIKE,   /* the first client first, on every node */
    DRAIN_ROTATED, /* another one first on each node, so votes are split */
    DRAIN_REVERSED,
    DRAIN_ORDERS
};

struct drain {
    const struct line_world *world;
    enum drain_order order;
    struct search served; /* states from which all are served */
};

/* False: out of memory. drain_release() in any case. */
bool drain_init(struct drain *d, const struct line_world *world, enum drain_order order);
void drain_release(struct drain *d);

/* Is everybody who lives served from here? */
bool drain_serves_all(struct drain *d, const struct line_state *s);

#endif
