/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/group_commit.h"

#include "base/clock.h"

#define GATHER_US (5 * US_PER_MS)
/* Longer while there are claims to go along with: long enough for the next such claim. */
#define GATHER_ALONG_US (12 * US_PER_MS)
#define ALONG_US (20 * US_PER_MS)
/* More finishes in one statement save little. */
#define GATHER_MAX 32

int64_t gather_pass_on(struct gather *g, struct finish_queue *to, bool may_go_along, int64_t now_us)
{
    bool is_along = g->along_us > 0 && now_us - g->along_us < ALONG_US;
    int64_t due_us = g->sent_us + (is_along ? GATHER_ALONG_US : GATHER_US);
    bool is_early =
        now_us < due_us && g->finishes.count < GATHER_MAX && to->first == NULL && !may_go_along;
    if (g->finishes.first != NULL && is_early) {
        return due_us;
    }
    if (may_go_along && g->finishes.first != NULL) {
        g->along_us = now_us;
    }
    finish_queue_move(to, &g->finishes);
    if (to->first != NULL) {
        g->sent_us = now_us;
    }
    return INT64_MAX;
}
