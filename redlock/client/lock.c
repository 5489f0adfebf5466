/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles of won locks. Only the thread binds them to keys of a batch and moves their deadline;
 * getters read that one number and the clock (lock.E7). */
#include "base/clock.h"
#include "redlock/client/client.h"

#include <assert.h>
#include <sys/eventfd.h>

#define SPARE_MAX 256 /* handles kept for reuse */

/* ---- allocating and recycling ---- */

static struct redlock_lock *take_spare(struct redlock_client *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    struct redlock_lock *l = c->spare;
    if (l != NULL) {
        c->spare = l->next;
        c->spare_count--;
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return l;
}

static bool keep_spare(struct redlock_client *c, struct redlock_lock *l)
{
    (void)pthread_mutex_lock(&c->mutex);
    bool has_room = c->spare_count < SPARE_MAX && !c->mailbox.is_closed;
    if (has_room) {
        l->next = c->spare;
        c->spare = l;
        c->spare_count++;
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return has_room;
}

static void lock_free(struct redlock_lock *l)
{
    key_set_release(&l->keys);
    if (l->key != l->short_key) {
        free(l->key);
    }
    free(l);
}

static bool set_key(struct redlock_lock *l, const char *key, size_t len)
{
    if (len >= l->key_size) {
        /* at most once per handle: enough for any key */
        char *longer = malloc(REDLOCK_KEY_LEN_MAX + 1);
        if (longer == NULL) {
            return false;
        }
        l->key = longer;
        l->key_size = REDLOCK_KEY_LEN_MAX + 1;
    }
    memcpy(l->key, key, len);
    l->key[len] = '\0';
    l->key_len = len;
    return true;
}

static struct redlock_lock *alloc(struct redlock_client *c)
{
    struct redlock_lock *l = take_spare(c);
    if (l == NULL && (l = calloc(1, sizeof *l)) != NULL) {
        l->client = c;
        l->key = l->short_key;
        l->key_size = sizeof l->short_key;
    }
    return l;
}

void lock_rename(struct redlock_lock *l, const struct redlock_async_key *key)
{
    bool has_room = set_key(l, key->bytes, key->len);
    assert(has_room);
    (void)has_room;
}

struct redlock_lock *lock_new(struct redlock_client *c, struct redlock_owner *owner,
                              const struct redlock_async_key *keys, size_t count)
{
    struct redlock_lock *l = alloc(c);
    if (l == NULL) {
        return NULL;
    }
    bool wants_keys = owner != NULL && count > 1;
    if (!set_key(l, keys[0].bytes, keys[0].len) ||
        (wants_keys && !key_set_fill(&l->keys, keys, count))) {
        lock_free(l);
        return NULL;
    }
    atomic_store(&l->deadline_us, 0);
    atomic_store(&l->is_suspect, false);
    atomic_store(&l->fd, -1);
    l->fence = 0;
    l->batch = NULL;
    l->on_change = NULL;
    l->owner = owner;
    l->depth = 0;
    l->is_silent = l->is_over = l->is_abandoned = false;
    client_ref(c);
    return l;
}

void lock_recycle(struct redlock_lock *l)
{
    struct redlock_client *c = l->client;
    int fd = atomic_exchange(&l->fd, -1);
    if (fd >= 0) {
        (void)close(fd);
    }
    key_set_release(&l->keys);
    if (client_is_forked(c) || !keep_spare(c, l)) {
        lock_free(l);
    }
    client_unref(c);
}

void lock_free_spare(struct redlock_client *c)
{
    while (c->spare != NULL) {
        struct redlock_lock *l = c->spare;
        c->spare = l->next;
        lock_free(l);
    }
}

/* ---- on the thread ---- */

static int64_t deadline_of_batch(const struct redlock_lock *l)
{
    int64_t deadline_us = INT64_MAX;
    for (size_t i = l->first; i < l->first + l->count; i++) {
        int64_t key_us = redlock_batch_deadline_us(l->batch, i);
        deadline_us = key_us < deadline_us ? key_us : deadline_us;
    }
    return deadline_us;
}

static void hold(struct redlock_lock *l)
{
    struct redlock_client *c = l->client;
    l->prev = NULL;
    l->next = c->held;
    if (l->next != NULL) {
        l->next->prev = l;
    }
    c->held = l;
    c->held_keys += l->count;
}

static void unhold(struct redlock_lock *l)
{
    struct redlock_client *c = l->client;
    *(l->prev != NULL ? &l->prev->next : &c->held) = l->next;
    if (l->next != NULL) {
        l->next->prev = l->prev;
    }
    c->held_keys -= l->count;
    l->batch = NULL;
}

void lock_bind(struct redlock_lock *l, struct redlock_batch *batch, size_t first, size_t count)
{
    l->batch = batch;
    l->first = first;
    l->count = count;
    l->state = REDLOCK_STATE_HELD;
    atomic_store(&l->deadline_us, deadline_of_batch(l));
    hold(l);
}

static void signal_fd(const struct redlock_lock *l)
{
    int fd = atomic_load(&l->fd);
    if (fd >= 0) {
        (void)eventfd_write(fd, 1);
    }
}

void lock_publish(struct redlock_lock *l, const struct redlock_request *request)
{
    struct redlock_client *c = l->client;
    (void)pthread_mutex_lock(&c->mutex);
    l->on_change = request->on_change;
    l->ctx = request->ctx;
    if (l->state != REDLOCK_STATE_HELD) { /* it has changed since the lock was won */
        callbacks_add_change(c, l);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

/* Calls back once per transition (lock.W8). */
static void enter(struct redlock_lock *l, enum redlock_state state)
{
    struct redlock_client *c = l->client;
    if (l->state == state || l->state == REDLOCK_STATE_LOST) {
        return;
    }
    atomic_store(&l->is_suspect, state == REDLOCK_STATE_SUSPECT);
    if (state == REDLOCK_STATE_LOST) {
        atomic_store(&l->deadline_us, 0);
    }
    (void)pthread_mutex_lock(&c->mutex);
    l->state = state;
    callbacks_add_change(c, l);
    (void)pthread_mutex_unlock(&c->mutex);
    if (state != REDLOCK_STATE_HELD) {
        signal_fd(l);
    }
}

void lock_state_changed(struct redlock_lock *l)
{
    enum redlock_state worst = REDLOCK_STATE_HELD;
    for (size_t i = l->first; i < l->first + l->count; i++) {
        enum redlock_state state = redlock_batch_state(l->batch, i);
        worst = state > worst ? state : worst;
    }
    enter(l, worst);
}

void lock_deadline_changed(struct redlock_lock *l)
{
    int64_t old_us = atomic_load(&l->deadline_us);
    /* A getter that finds the deadline passed sets it to 0, and LOST is final (lock.E8). */
    if (old_us == 0 ||
        !atomic_compare_exchange_strong(&l->deadline_us, &old_us, deadline_of_batch(l))) {
        enter(l, REDLOCK_STATE_LOST);
    }
}

struct redlock_batch *lock_unbind(struct redlock_lock *l)
{
    struct redlock_batch *batch = l->batch;
    if (batch != NULL) {
        unhold(l);
    }
    return batch;
}

void lock_retire(struct redlock_lock *l)
{
    if (!callbacks_let_go(l)) {
        return;
    }
    if (l->owner != NULL) {
        owner_retire(l);
    } else {
        lock_recycle(l);
    }
}

void lock_give_up_all(struct redlock_client *c)
{
    while (c->held != NULL) {
        struct redlock_lock *l = c->held;
        enter(l, REDLOCK_STATE_LOST);
        unlock_release(l, NULL, NULL);
    }
}

/* ---- getters ---- */

/* Returns the time that is left. Makes a lease that has ended LOST for good, whatever a reply that
 * is on its way may say (lock.E8, W4). */
static int64_t left_us(const struct redlock_lock *lock)
{
    _Atomic int64_t *deadline = &((struct redlock_lock *)(uintptr_t)lock)->deadline_us;
    int64_t deadline_us = atomic_load(deadline);
    if (client_is_forked(lock->client)) {
        return 0;
    }
    while (deadline_us != 0) {
        int64_t left = deadline_us - clock_boot_us();
        if (left > 0) {
            return left;
        }
        if (atomic_compare_exchange_strong(deadline, &deadline_us, 0)) {
            break;
        }
    }
    return 0;
}

enum redlock_state redlock_state(const struct redlock_lock *lock)
{
    if (left_us(lock) == 0) {
        return REDLOCK_STATE_LOST;
    }
    return atomic_load(&lock->is_suspect) ? REDLOCK_STATE_SUSPECT : REDLOCK_STATE_HELD;
}

int64_t redlock_left_ms(const struct redlock_lock *lock)
{
    return left_us(lock) / US_PER_MS;
}

int redlock_fd(struct redlock_lock *lock)
{
    int fd = atomic_load(&lock->fd);
    if (fd >= 0 || client_is_forked(lock->client)) {
        return fd;
    }
    int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made >= 0 && !atomic_compare_exchange_strong(&lock->fd, &fd, made)) {
        (void)close(made); /* another thread was faster */
        return fd;
    }
    if (made >= 0 && redlock_state(lock) != REDLOCK_STATE_HELD) {
        (void)eventfd_write(made, 1); /* the state changed before there was a descriptor */
    }
    return made;
}

uint64_t redlock_fence(const struct redlock_lock *lock)
{
    return lock->fence;
}

const char *redlock_lock_key(const struct redlock_lock *lock, size_t *ret_len)
{
    if (ret_len != NULL) {
        *ret_len = lock->key_len;
    }
    return lock->key;
}
