/* SPDX-License-Identifier: Apache-2.0
 *
 * The leading scheduler's statements for maps: move_map_ends() records the rows that have ended,
 * feed_maps() makes the next jobs due. */
#ifndef CLAIMD_STORE_MAP_STORE_H
#define CLAIMD_STORE_MAP_STORE_H

#include "store/pg/pg.h"

#define MAP_ENDS_PER_ROUND 2000

/* Sends both. `done` gets results for map_store_moved(). */
enum status map_store_move(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
/* Returns how many ends were moved; MAP_ENDS_PER_ROUND: there may be more. */
int64_t map_store_moved(const struct pg_result *const *results);

#endif
