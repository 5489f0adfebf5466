/* SPDX-License-Identifier: Apache-2.0
 *
 * Reentrancy is counted in the client: the nodes know nothing of it. An owner's list and the depths
 * of its locks are guarded by the client's mutex, so entering a lock that is already held needs no
 * round trip through the thread. */
#include "redlock/client/client.h"

#define RETIRED_MAX 16

/* ---- what an owner holds; under the mutex ---- */

static bool first_key_is(const struct redlock_lock *l, const struct redlock_async_key *key)
{
    return l->key_len == key->len && memcmp(l->key, key->bytes, key->len) == 0;
}

/* Counts how many of the keys the lock has; both lists are sorted. */
static size_t count_covered(const struct redlock_lock *l, const struct redlock_async_key *keys,
                            size_t count)
{
    struct redlock_async_key own = {0};
    size_t at = 0;
    size_t covered = 0;
    if (l->keys.size == 0) {
        for (size_t i = 0; i < count; i++) {
            covered += first_key_is(l, &keys[i]);
        }
        return covered;
    }
    bool is_any = key_set_next(&l->keys, &at, &own);
    for (size_t i = 0; i < count && is_any; i++) {
        while (is_any && keys_compare(&own, &keys[i]) < 0) {
            is_any = key_set_next(&l->keys, &at, &own);
        }
        covered += is_any && keys_compare(&own, &keys[i]) == 0;
    }
    return covered;
}

bool owner_covers(const struct redlock_lock *l, const struct redlock_async_key *keys, size_t count)
{
    return count_covered(l, keys, count) == count;
}

static struct redlock_lock *find(struct redlock_owner *o, const struct redlock_async_key *keys,
                                 size_t count, size_t *ret_covered)
{
    struct redlock_lock *l = o->locks;
    *ret_covered = 0;
    while (l != NULL) {
        size_t covered = count_covered(l, keys, count);
        *ret_covered += covered;
        if (covered == count) {
            break;
        }
        l = l->next_of_owner;
    }
    return l;
}

enum owner_has owner_enter(struct redlock_owner *o, const struct redlock_async_key *keys,
                           size_t count, struct redlock_lock **ret_lock)
{
    struct redlock_client *c = o->client;
    enum owner_has has = OWNER_HAS_LOST;
    size_t covered = 0;
    (void)pthread_mutex_lock(&c->mutex);
    struct redlock_lock *l = find(o, keys, count, &covered);
    if (l == NULL) {
        has = covered > 0 ? OWNER_HAS_PART : OWNER_HAS_NONE;
    } else if (redlock_state(l) != REDLOCK_STATE_LOST) {
        has = OWNER_HAS_ALL;
        l->depth++;
        *ret_lock = l;
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return has;
}

void owner_add(struct redlock_owner *o, struct redlock_lock *l)
{
    struct redlock_client *c = o->client;
    (void)pthread_mutex_lock(&c->mutex);
    l->depth = 1;
    l->next_of_owner = o->locks;
    o->locks = l;
    o->leaving++;
    (void)pthread_mutex_unlock(&c->mutex);
}

/* ---- unlocking ---- */

static bool leave(struct redlock_lock *l, bool *ret_is_last)
{
    struct redlock_lock **link = &l->owner->locks;
    if (l->depth == 0) {
        return false;
    }
    *ret_is_last = --l->depth == 0;
    if (*ret_is_last) {
        while (*link != l) {
            link = &(*link)->next_of_owner;
        }
        *link = l->next_of_owner;
    }
    return true;
}

bool owner_leave(struct redlock_lock *l, bool *ret_is_last)
{
    struct redlock_client *c = l->client;
    (void)pthread_mutex_lock(&c->mutex);
    bool has_left = leave(l, ret_is_last);
    (void)pthread_mutex_unlock(&c->mutex);
    return has_left;
}

static struct redlock_lock *drop_oldest(struct redlock_owner *o)
{
    struct redlock_lock **link = &o->retired;
    while ((*link)->next_of_owner != NULL) {
        link = &(*link)->next_of_owner;
    }
    o->retired_count--;
    return TAKE(*link);
}

static void owner_free(struct redlock_owner *o)
{
    struct redlock_client *c = o->client;
    free(o);
    client_unref(c);
}

void owner_retire(struct redlock_lock *l)
{
    struct redlock_client *c = l->client;
    struct redlock_owner *o = l->owner;
    struct redlock_lock *dropped = l;
    (void)pthread_mutex_lock(&c->mutex);
    bool is_last = --o->leaving == 0 && o->is_freed && !o->is_posted;
    if (!o->is_freed) {
        l->next_of_owner = o->retired;
        o->retired = l;
        dropped = ++o->retired_count > RETIRED_MAX ? drop_oldest(o) : NULL;
    }
    (void)pthread_mutex_unlock(&c->mutex);
    if (dropped != NULL) {
        lock_recycle(dropped);
    }
    if (is_last) {
        owner_free(o);
    }
}

/* ---- cancelling ---- */

bool owner_is_cancelled(const struct redlock_owner *o)
{
    return o != NULL && atomic_load(&o->is_cancelled);
}

static void deliver_cancel(struct redlock_client *c, struct mail *mail)
{
    /* the mail is its first member */
    struct redlock_owner *o = (struct redlock_owner *)(void *)mail;
    request_cancel(c, o);
    (void)pthread_mutex_lock(&c->mutex);
    o->is_posted = false;
    bool is_last = o->is_freed && o->leaving == 0;
    (void)pthread_mutex_unlock(&c->mutex);
    if (is_last) {
        owner_free(o);
    }
}

void redlock_cancel(struct redlock_owner *owner)
{
    struct redlock_client *c = owner->client;
    if (client_is_forked(c)) {
        return;
    }
    atomic_store(&owner->is_cancelled, true); /* also cancels requests that begin later */
    (void)pthread_mutex_lock(&c->mutex);
    if (!owner->is_posted) {
        owner->is_posted = mailbox_put(c, &owner->mail);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

/* ---- public interface ---- */

enum redlock_result redlock_owner_new(struct redlock_client *client,
                                      struct redlock_owner **ret_owner)
{
    struct redlock_owner *o = client_is_forked(client) ? NULL : calloc(1, sizeof *o);
    *ret_owner = o;
    if (o == NULL) {
        return REDLOCK_SYSTEM;
    }
    o->mail.deliver = deliver_cancel;
    o->client = client;
    client_ref(client);
    return REDLOCK_OK;
}

void redlock_owner_free(struct redlock_owner *owner)
{
    if (owner == NULL) {
        return;
    }
    struct redlock_client *c = owner->client;
    bool is_forked = client_is_forked(c);
    if (!is_forked) {
        (void)pthread_mutex_lock(&c->mutex);
    }
    struct redlock_lock *list = TAKE(owner->retired);
    bool is_last = owner->leaving == 0 && !owner->is_posted;
    owner->is_freed = true;
    if (!is_forked) {
        (void)pthread_mutex_unlock(&c->mutex);
    }
    while (list != NULL) {
        struct redlock_lock *l = list;
        list = l->next_of_owner;
        lock_recycle(l);
    }
    if (is_last) {
        owner_free(owner);
    }
}
