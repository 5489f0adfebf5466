/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches whether this worker has an idle slot for a job (inv.L9), in each turn of the loop. The
 * recorder gets each change, and the queues and kinds for which the slots are spare; a heartbeat
 * gets the lowest number since the previous one. */
#ifndef CLAIMD_WORKER_SPARE_H
#define CLAIMD_WORKER_SPARE_H

#include <stddef.h>
#include <stdint.h>

struct worker;

struct spare {
    size_t slots;                /* the result of room_spare() in this turn */
    size_t least;                /* lowest number since the last heartbeat was sent */
    int64_t recorded_generation; /* generation of the kinds; 0 = not recorded yet */
};

void spare_look(struct worker *w); /* call in each turn, before the loop polls */

/* Returns the lowest number since the previous heartbeat; call for each heartbeat. */
int spare_take_least(struct worker *w);

#endif
