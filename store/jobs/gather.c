/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/gather.h"

#include "base/clock.h"

#define GATHER_US (5 * US_PER_MS)
/* More of them in one statement save little. */
#define GATHER_MAX 32

int64_t gather_pass_on(struct gather *g, struct finish_queue *to, bool may_go_along, int64_t now_us)
{
    int64_t due_us = g->sent_us + GATHER_US;
    bool is_early = now_us < due_us && g->finishes.count < GATHER_MAX && to->first == NULL &&
                    !may_go_along;
    if (g->finishes.first != NULL && is_early) {
        return due_us;
    }
    finish_queue_move(to, &g->finishes);
    if (to->first != NULL) {
        g->sent_us = now_us;
    }
    return INT64_MAX;
}
