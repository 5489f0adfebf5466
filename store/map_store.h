/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of the rows of maps, and what is due of them next: move_map_ends() and feed_maps(),
 * for the leading scheduler. */
#ifndef CLAIMD_STORE_MAP_STORE_H
#define CLAIMD_STORE_MAP_STORE_H

#include "store/pg/pg.h"

#define MAP_ENDS_PER_ROUND 2000

/* The results are for the next. */
enum status map_store_move(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
/* MAP_ENDS_PER_ROUND: there may be more. */
int64_t map_store_moved(const struct pg_result *const *results);

#endif
