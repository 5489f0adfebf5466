/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether this worker has an idle slot for a job (inv.L9): looked at in each turn of the loop. The
 * recorder gets each change, and which queues and kinds it is spare for; a heartbeat gets the least
 * since the one before. */
#ifndef CLAIMD_WORKER_SPARE_H
#define CLAIMD_WORKER_SPARE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct worker;

struct spare {
    uv_prepare_t turn;
    size_t slots;                /* as fetch_spare() said in this turn */
    size_t least;                /* since the last beat was sent */
    int64_t recorded_generation; /* of the kinds; 0 = none yet */
};

enum status spare_open(struct worker *w, struct err *err) MUST_USE;
void spare_close(struct worker *w);

/* Of a beat: the least since the one before. */
int spare_take_least(struct worker *w);

/* For how long the oldest claimed job has waited for a runner; 0 = none waits. */
int64_t spare_ready_oldest_us(const struct worker *w, int64_t now_us);

#endif
