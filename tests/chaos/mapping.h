/* SPDX-License-Identifier: Apache-2.0
 *
 * With --map ROWS: a table whose rows are mapped (`claimctl map`) while the load runs. claimctl
 * loads and follows the map; it is killed (nemesis kill9_claimctl) and called again until the map
 * has ended. Each row must be completed once. */
#ifndef CLAIMD_TESTS_CHAOS_MAPPING_H
#define CLAIMD_TESTS_CHAOS_MAPPING_H

#include "chaos/world.h"

#define MAPPING_KEY "map:storm" /* the exclusive key of its jobs, and how many of them may run */
#define MAPPING_PLACES 12

/* Makes the table and announces its rows to the books. Call it before the load starts. */
enum status mapping_prepare(struct world *w, struct err *err) MUST_USE;

/* Starts claimctl if it does not run and the map has not ended. */
void mapping_tick(struct world *w, int64_t now_us);

/* Goes on until the map has ended, and checks what it counts. Reports a violation if it stands
 * still. */
void mapping_finish(struct world *w);

#endif
