/* SPDX-License-Identifier: Apache-2.0
 *
 * Fencing numbers for locks that were just won: one for one's own lock, all at once for many. */
#include "redlock/client.h"

void fence_requests_start(struct fence_requests *m, void (*done)(struct fence_requests *m))
{
    *m = (struct fence_requests){.open = 1, .done = done};
}

void fence_requests_run(struct fence_requests *m)
{
    if (--m->open == 0) {
        m->done(m); /* which frees it */
    }
}

static void on_fenced(void *ctx, uint64_t fence)
{
    struct redlock_lock *l = ctx;
    l->fence = fence;
    fence_requests_run(TAKE(l->fence_requests));
}

void fence_requests_add(struct fence_requests *m, struct redlock_lock *l)
{
    if (redlock_batch_fence(l->batch, l->first, l->count, on_fenced, l) == 0) {
        l->fence_requests = m;
        m->open++;
    }
}
