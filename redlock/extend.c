/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock_extend(): a lease made longer by hand, with an answer. */
#include "redlock/client.h"

#include <errno.h>

struct extending {
    struct call call; /* first */
    struct redlock *client;
    struct redlock_lock *lock;
    size_t open; /* keys */
    enum redlock_result result;
};

/* Of several keys the one that matters most. */
static void take(struct extending *e, enum redlock_result result)
{
    static const uint8_t ranks[] = {
        [REDLOCK_WON] = 0,           [REDLOCK_SPLIT] = 1,   [REDLOCK_NO_QUORUM] = 2,
        [REDLOCK_CANCELLED] = 3,     [REDLOCK_EXPIRED] = 4, [REDLOCK_INVALID] = 0,
        [REDLOCK_HELD_BY_OTHER] = 4,
    };
    e->result = ranks[result] > ranks[e->result] ? result : e->result;
}

static void end_one(struct extending *e)
{
    if (--e->open == 0) {
        call_answer(e->client, &e->call);
    }
}

static void on_extended(void *ctx, enum redlock_result result)
{
    struct extending *e = ctx;
    take(e, result);
    end_one(e);
}

static void deliver_extending(struct redlock *c, struct mail *mail)
{
    struct extending *e = (struct extending *)(void *)mail; /* its first member */
    struct redlock_lock *l = e->lock;
    (void)c;
    e->open = 1;
    if (l->batch == NULL || redlock_state(l) == REDLOCK_STATE_LOST) {
        take(e, REDLOCK_EXPIRED);
    }
    for (size_t i = l->first; e->result != REDLOCK_EXPIRED && i < l->first + l->count; i++) {
        int code = redlock_batch_extend(l->batch, i, on_extended, e);
        if (code == 0) {
            e->open++;
        } else {
            take(e, code == -EINVAL ? REDLOCK_EXPIRED : REDLOCK_NO_QUORUM);
        }
    }
    end_one(e);
}

enum redlock_result redlock_extend(struct redlock_lock *lock)
{
    struct extending e = {.client = lock->client, .lock = lock, .result = REDLOCK_WON};
    if (client_is_forked(lock->client)) {
        return REDLOCK_INVALID;
    }
    return call_make(lock->client, &e.call, deliver_extending) ? e.result : REDLOCK_EXPIRED;
}
