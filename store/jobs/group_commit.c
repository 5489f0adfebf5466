/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/group_commit.h"

#include "base/clock.h"

#define GROUP_COMMIT_US (5 * US_PER_MS)
/* Longer while there are claims to go along with: long enough for the next such claim. */
#define GROUP_COMMIT_ALONG_US (12 * US_PER_MS)
#define ALONG_US (20 * US_PER_MS)
/* More finishes in one statement save little. */
#define GROUP_COMMIT_MAX 32

int64_t group_commit_pass_on(struct group_commit *g, struct finish_queue *to, bool may_go_along,
                             int64_t now_us)
{
    bool is_along = g->along_us > 0 && now_us - g->along_us < ALONG_US;
    int64_t due_us = g->sent_us + (is_along ? GROUP_COMMIT_ALONG_US : GROUP_COMMIT_US);
    bool is_early = now_us < due_us && g->finishes.count < GROUP_COMMIT_MAX && to->first == NULL &&
                    !may_go_along;
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
