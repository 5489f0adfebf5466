/* SPDX-License-Identifier: Apache-2.0
 *
 * Several keys in one round, a result and a lock for each. */
#include "base/clock.h"
#include "redlock/client.h"

#include <errno.h>

struct many {
    struct call call; /* first */
    struct redlock *client;
    const struct redlock_request *request;
    struct redlock_async_key keys[REDLOCK_KEYS_MAX]; /* that are asked for */
    uint16_t places[REDLOCK_KEYS_MAX];               /* of them in the caller's list */
    size_t count;
    struct fence_requests fence_requests;
    struct redlock_lock **locks; /* the caller's */
    enum redlock_result *results;
};

/* ---- on the thread ---- */

static struct redlock_lock *lock_at(const struct many *m, size_t index)
{
    return m->keys[index].user;
}

/* Those that got what they were to get are their caller's. */
static void on_minted(struct fence_requests *fence_requests)
{
    struct many *m = (struct many *)(void *)((char *)fence_requests -
                                             offsetof(struct many, fence_requests)); /* its part */
    for (size_t i = 0; i < m->count; i++) {
        struct redlock_lock *l = lock_at(m, i);
        enum redlock_result *result = &m->results[m->places[i]];
        if (*result == REDLOCK_WON && m->request->wants_fence && l->fence == 0) {
            (void)unlock_release(l, NULL, NULL);
            *result = m->client->is_closing ? REDLOCK_CANCELLED : REDLOCK_NO_QUORUM;
        }
        if (*result == REDLOCK_WON) {
            if (l->owner != NULL) {
                owner_add(l->owner, l);
            }
            lock_publish(l, m->request);
        }
    }
    call_answer(m->client, &m->call);
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct many *m = ctx;
    fence_requests_start(&m->fence_requests, on_minted);
    for (size_t i = 0; i < m->count; i++) {
        enum redlock_result result = redlock_batch_result(batch, i);
        m->results[m->places[i]] = result;
        if (result == REDLOCK_WON) {
            lock_bind(lock_at(m, i), batch, i, 1);
            if (m->request->wants_fence) {
                fence_requests_add(&m->fence_requests, lock_at(m, i));
            }
        }
    }
    fence_requests_run(&m->fence_requests);
}

static void fail(struct many *m, enum redlock_result result)
{
    for (size_t i = 0; i < m->count; i++) {
        m->results[m->places[i]] = result;
    }
}

static void deliver_many(struct redlock *c, struct mail *mail)
{
    struct many *m = (struct many *)(void *)mail; /* its first member */
    struct redlock_async_request request;
    if (c->is_closing || cancel_is_fired(m->request->cancel)) {
        fail(m, REDLOCK_CANCELLED);
        call_answer(c, &m->call);
        return;
    }
    ask_fill(m->request, &request);
    request.keys = m->keys;
    request.count = m->count;
    request.done = on_acquired;
    request.ctx = m;
    int code = redlock_async_acquire(c->core, &request, NULL);
    if (code != 0) {
        fail(m, code == -EINVAL ? REDLOCK_INVALID : REDLOCK_NO_QUORUM);
        call_answer(c, &m->call);
    }
}

/* ---- the caller's side ---- */

/* Sorted, with those left out that can't be asked for, or are held by their owner already. A key
 * that is there twice is INVALID once: under one token its refusal would release what it won. */
static void list_keys(struct many *m, const char *const *keys, size_t count)
{
    struct redlock_async_key list[REDLOCK_KEYS_MAX];
    size_t listed = 0;
    for (size_t i = 0; i < count; i++) {
        struct redlock_async_key *k = &list[listed];
        *k = (struct redlock_async_key){.bytes = keys[i], .user = &m->results[i]};
        m->results[i] = REDLOCK_INVALID;
        listed += keys_check(keys[i], 0, &k->len, NULL) == STATUS_OK;
    }
    listed = keys_sort(list, listed);
    for (size_t i = 0; i < listed; i++) {
        const char *why = "";
        size_t place = (size_t)((enum redlock_result *)list[i].user - m->results);
        if (ask_owner(m->request, &list[i], 1, &m->locks[place], &m->results[place], &why)) {
            continue;
        }
        struct redlock_lock *l = lock_new(m->client, m->request, &list[i], 1);
        if (l == NULL) {
            m->results[place] = REDLOCK_NO_QUORUM;
            continue;
        }
        m->places[m->count] = (uint16_t)place;
        m->keys[m->count] = list[i];
        m->keys[m->count++].user = l;
    }
}

static enum redlock_result first_not_won(const enum redlock_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (results[i] != REDLOCK_WON) {
            return results[i];
        }
    }
    return REDLOCK_WON;
}

enum redlock_result redlock_acquire_many(struct redlock *client,
                                         const struct redlock_request *request,
                                         const char *const *keys, size_t count,
                                         struct redlock_lock **ret_locks,
                                         enum redlock_result *ret_results)
{
    struct many m = {
        .client = client, .request = request, .locks = ret_locks, .results = ret_results};
    if (keys_check_count(count, NULL) != STATUS_OK) {
        return REDLOCK_INVALID;
    }
    for (size_t i = 0; i < count; i++) {
        ret_locks[i] = NULL;
        ret_results[i] = REDLOCK_INVALID;
    }
    if (ask_check(client, request, NULL) != STATUS_OK) {
        return REDLOCK_INVALID;
    }
    list_keys(&m, keys, count);
    if (m.count > 0 && !call_make(client, &m.call, deliver_many)) {
        fail(&m, REDLOCK_CANCELLED);
    }
    for (size_t i = 0; i < m.count; i++) {
        size_t place = m.places[i];
        if (ret_results[place] == REDLOCK_WON) {
            ret_locks[place] = lock_at(&m, i);
        } else {
            lock_recycle(lock_at(&m, i));
        }
    }
    return first_not_won(ret_results, count);
}
