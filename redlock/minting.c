/* SPDX-License-Identifier: Apache-2.0
 *
 * Fencing numbers for locks that were just won: one for one's own lock, all at once for many. */
#include "redlock/client.h"

void minting_start(struct minting *m, void (*done)(struct minting *m))
{
    *m = (struct minting){.open = 1, .done = done};
}

void minting_run(struct minting *m)
{
    if (--m->open == 0) {
        m->done(m); /* which frees it */
    }
}

static void on_fenced(void *ctx, uint64_t fence)
{
    struct redlock_lock *l = ctx;
    l->fence = fence;
    minting_run(TAKE(l->minting));
}

void minting_add(struct minting *m, struct redlock_lock *l)
{
    if (redlock_batch_fence(l->batch, l->first, on_fenced, l) == 0) {
        l->minting = m;
        m->open++;
    }
}
