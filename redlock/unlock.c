/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving a lock back: at once, from the client's thread or another, or in a forked child. */
#include "redlock/client.h"

#include <errno.h>

size_t unlock_release(struct redlock_lock *l, redlock_async_released_cb *done, void *ctx)
{
    struct redlock_batch *batch = lock_unbind(l);
    if (batch == NULL) {
        return 0;
    }
    for (size_t i = l->first; i < l->first + l->count; i++) {
        if (done != NULL) {
            redlock_batch_release_tell(batch, i, done, ctx);
        } else {
            redlock_batch_release(batch, i);
        }
    }
    return l->count;
}

/* ---- at once (lock.R5) ---- */

static void deliver_unlock(struct redlock *c, struct mail *mail)
{
    struct redlock_lock *l = (struct redlock_lock *)(void *)mail; /* its first member */
    (void)c;
    (void)unlock_release(l, NULL, NULL);
    lock_retire(l);
}

static void unlock_at_once(struct redlock_lock *l)
{
    struct redlock *c = l->client;
    l->mail.deliver = deliver_unlock;
    if (client_is_thread(c)) {
        deliver_unlock(c, &l->mail);
    } else if (!mailbox_post(c, &l->mail)) {
        lock_retire(l);
    }
}

/* ---- with the nodes' answers (lock.R6) ---- */

struct unlocking {
    struct call call; /* first */
    struct redlock *client;
    struct redlock_lock *lock;
    struct redlock_released *released;
    size_t open; /* keys */
};

static void on_released(void *ctx, const struct redlock_released *released)
{
    struct unlocking *u = ctx;
    u->released->deleted += released->deleted;
    u->released->not_owner += released->not_owner;
    u->released->missing += released->missing;
    u->released->unknown += released->unknown;
    if (--u->open == 0) {
        call_answer(u->client, &u->call);
    }
}

static void deliver_unlocking(struct redlock *c, struct mail *mail)
{
    struct unlocking *u = (struct unlocking *)(void *)mail; /* its first member */
    struct redlock_lock *l = u->lock;
    u->open = l->batch != NULL ? l->count : 0;
    if (unlock_release(l, on_released, u) == 0) {
        call_answer(c, &u->call);
    }
    lock_retire(l);
}

/* In a child: the parent has the lock (lock.F1). */
static int unlock_forked(struct redlock_lock *l)
{
    if (l->depth > 1) {
        l->depth--;
    } else {
        lock_recycle(l);
    }
    return -EOWNERDEAD;
}

static void unlock(struct redlock_lock *l, struct redlock_released *ret_released)
{
    struct unlocking u = {.client = l->client, .lock = l, .released = ret_released};
    if (ret_released == NULL) {
        unlock_at_once(l);
    } else if (!call_make(l->client, &u.call, deliver_unlocking)) {
        lock_retire(l);
    }
}

int redlock_unlock(struct redlock_lock *lock, struct redlock_released *ret_released)
{
    bool is_last = true;
    if (ret_released != NULL) {
        *ret_released = (struct redlock_released){0};
    }
    if (lock == NULL) {
        return 0;
    }
    if (client_is_forked(lock->client)) {
        return unlock_forked(lock);
    }
    int code = lock->owner != NULL ? owner_leave(lock, &is_last) : 0;
    if (code == 0 && is_last) {
        unlock(lock, ret_released);
    }
    return code;
}

void redlock_unlock_at(struct redlock_lock **lock)
{
    (void)redlock_unlock(*lock, NULL);
}
