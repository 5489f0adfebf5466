/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving a lock back: at once, with the nodes' answers, or only the handle. Extending a lease by
 * hand is here, too. */
#include "redlock/client/client.h"

#include <errno.h>

/* ---- releasing ---- */

size_t unlock_release(struct redlock_lock *l, redlock_async_released_cb *done, void *ctx)
{
    struct redlock_batch *batch = lock_unbind(l);
    if (batch == NULL) {
        return 0;
    }
    for (size_t i = l->first; i < l->first + l->count; i++) {
        if (l->is_abandoned) {
            redlock_batch_drop(batch, i);
        } else if (done != NULL) {
            redlock_batch_release_tell(batch, i, done, ctx);
        } else {
            redlock_batch_release(batch, i);
        }
    }
    return l->is_abandoned ? 0 : l->count;
}

/* ---- at once (lock.R5) ---- */

static void deliver_unlock(struct redlock_client *c, struct mail *mail)
{
    struct redlock_lock *l = (struct redlock_lock *)(void *)mail; /* the mail is its first member */
    (void)c;
    (void)unlock_release(l, NULL, NULL);
    lock_retire(l);
}

static void unlock_at_once(struct redlock_lock *l)
{
    l->mail.deliver = deliver_unlock;
    if (!mailbox_post(l->client, &l->mail)) {
        lock_retire(l);
    }
}

/* ---- waiting for the nodes' answers (lock.R6) ---- */

struct unlocking {
    struct call call; /* first member */
    struct redlock_client *client;
    struct redlock_lock *lock;
    struct redlock_report *report;
    size_t open; /* keys whose outcome is not known yet */
};

static void on_released(void *ctx, const struct redlock_released *released)
{
    struct unlocking *u = ctx;
    report_add_released(u->report, released);
    if (--u->open == 0) {
        call_answer(u->client, &u->call);
    }
}

static void deliver_unlocking(struct redlock_client *c, struct mail *mail)
{
    struct unlocking *u = (struct unlocking *)(void *)mail; /* the mail is its first member */
    struct redlock_lock *l = u->lock;
    u->open = l->batch != NULL ? l->count : 0;
    if (unlock_release(l, on_released, u) == 0) {
        call_answer(c, &u->call);
    }
    lock_retire(l);
}

static void unlock(struct redlock_lock *l, struct redlock_report *report)
{
    struct unlocking u = {.client = l->client, .lock = l, .report = report};
    if (report == NULL) {
        unlock_at_once(l);
    } else if (!call_make(l->client, &u.call, deliver_unlocking)) {
        lock_retire(l);
    }
}

/* In a forked child: the lock belongs to the parent (lock.F1). */
static void unlock_forked(struct redlock_lock *l)
{
    if (l->depth > 1) {
        l->depth--;
    } else {
        lock_recycle(l);
    }
}

static enum redlock_result leave(struct redlock_lock *l, struct redlock_report *report)
{
    bool is_last = true;
    if (client_is_forked(l->client)) {
        report_fail(l->client, report, REDLOCK_SYSTEM, "it is the parent process's lock");
        unlock_forked(l);
        return REDLOCK_SYSTEM;
    }
    if (l->owner != NULL && !owner_leave(l, &is_last)) {
        report_fail(l->client, report, REDLOCK_INVALID, "unlocked more often than locked");
        return REDLOCK_INVALID;
    }
    report_fail(l->client, report, REDLOCK_OK, "");
    if (is_last) {
        callbacks_silence(l);
        unlock(l, report);
    }
    return REDLOCK_OK;
}

enum redlock_result redlock_unlock(struct redlock_lock *lock, struct redlock_report *ret_report)
{
    return lock != NULL ? leave(lock, ret_report) : report_status(STATUS_OK, NULL, ret_report);
}

void redlock_abandon(struct redlock_lock *lock)
{
    if (lock != NULL) {
        lock->is_abandoned = true;
        (void)leave(lock, NULL);
    }
}

void redlock_unlock_at(struct redlock_lock **lock)
{
    (void)redlock_unlock(*lock, NULL);
}

/* ---- extending ---- */

struct extending {
    struct call call; /* first member */
    struct redlock_client *client;
    struct redlock_lock *lock;
    size_t open; /* keys whose outcome is not known yet */
    enum redlock_result result;
};

/* Keeps the most severe result of several keys. */
static void take(struct extending *e, enum redlock_result result)
{
    static const uint8_t ranks[REDLOCK_RESULTS] = {[REDLOCK_SPLIT] = 1,
                                                   [REDLOCK_NO_QUORUM] = 2,
                                                   [REDLOCK_SYSTEM] = 3,
                                                   [REDLOCK_CANCELLED] = 4,
                                                   [REDLOCK_LOST] = 5};
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

static void deliver_extending(struct redlock_client *c, struct mail *mail)
{
    struct extending *e = (struct extending *)(void *)mail; /* the mail is its first member */
    struct redlock_lock *l = e->lock;
    (void)c;
    e->open = 1;
    if (l->batch == NULL || redlock_state(l) == REDLOCK_STATE_LOST) {
        take(e, REDLOCK_LOST);
    }
    for (size_t i = l->first; e->result != REDLOCK_LOST && i < l->first + l->count; i++) {
        int code = redlock_batch_extend(l->batch, i, on_extended, e);
        if (code == 0) {
            e->open++;
        } else {
            take(e, code == -EINVAL ? REDLOCK_LOST : REDLOCK_SYSTEM);
        }
    }
    end_one(e);
}

enum redlock_result redlock_extend(struct redlock_lock *lock)
{
    struct extending e = {.client = lock->client, .lock = lock};
    if (client_is_forked(lock->client)) {
        return REDLOCK_SYSTEM;
    }
    return call_make(lock->client, &e.call, deliver_extending) ? e.result : REDLOCK_LOST;
}
