/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/core/release.h"

#include "base/clock.h"
#include "redlock/core/record.h"

#include <assert.h>

/* Bound of the keys whose release some node has not acknowledged; beyond it the oldest are left to
 * their ttl. */
#define KEYS_WAITING_MAX 65536

/* A batch with this many keys is released separately: one token for all of them saves more than a
 * script of its own costs, compared with a token for each key. */
#define ALONE_FROM 32

static void give_up(struct release *r)
{
    size_t nodes = (size_t)__builtin_popcount(r->to_send & ~r->repeated);
    r->lock->counters.release_unknown += nodes * r->count;
    r->to_send = 0;
}

static void append(struct redlock_async *lock, struct release *r)
{
    r->prev = lock->last_release;
    *(r->prev != NULL ? &r->prev->next : &lock->releases) = r;
    lock->last_release = r;
    lock->release_keys += r->count;
}

/* Frees a release that every node has acknowledged or that was given up. */
static void free_if_over(struct redlock_async *lock, struct release *r)
{
    if (r->to_send != 0 || r->in_flight != 0 || r->has_tellers) {
        return;
    }
    *(r->prev != NULL ? &r->prev->next : &lock->releases) = r->next;
    *(r->next != NULL ? &r->next->prev : &lock->last_release) = r->prev;
    lock->release_keys -= r->count;
    for (size_t i = 0; i < r->count; i++) {
        batch_unref(r->items[i].batch);
    }
    pool_give(&lock->pool, r);
}

/* ---- reporting the outcome ---- */

static void tell(struct key *k, unsigned asked)
{
    redlock_async_released_cb *done = TAKE(k->told);
    unsigned nodes = (unsigned)__builtin_popcount(asked);
    const struct redlock_released released = {.deleted = k->deleted,
                                              .stolen = k->stolen,
                                              .missing = k->missing,
                                              .unknown =
                                                  nodes - k->deleted - k->stolen - k->missing};
    if (done != NULL) {
        done(k->told_ctx, &released);
    }
}

/* Calls back once every node has answered or failed to. */
static void tell_all(struct release *r)
{
    if (!r->has_tellers || r->in_flight != 0) {
        return;
    }
    r->in_flight |= RELEASE_TELLING; /* a callback may do anything */
    for (size_t i = 0; i < r->count; i++) {
        tell(release_key(&r->items[i]), r->asked);
    }
    r->has_tellers = false;
    r->in_flight &= ~RELEASE_TELLING;
}

void release_tell(struct redlock_async *lock)
{
    struct release *r = TAKE(lock->has_untold) ? lock->releases : NULL;
    while (r != NULL) {
        bool is_to_tell = r->has_tellers && r->in_flight == 0;
        if (is_to_tell) {
            tell_all(r);
            free_if_over(lock, r);
        }
        r = is_to_tell ? lock->releases : r->next; /* the callback may have changed the list */
    }
}

/* ---- sending ---- */

/* Schedules another try for nodes that have not got it; a node that comes up gets it at once. */
static void retry_later(struct redlock_async *lock)
{
    if (lock->release_wake_us == 0) {
        lock->release_wake_us = clock_boot_us() + lock->options.node_timeout_us;
        core_wake_at(lock, lock->release_wake_us);
    }
}

/* True if a SET that an earlier connection left in the node's buffers could be executed after the
 * release. */
static bool may_set_follow(const struct release *r, size_t node)
{
    const struct node_slot *n = &r->lock->nodes[node];
    bool is_earlier = false;
    for (size_t i = 0; i < r->count; i++) {
        is_earlier = is_earlier || r->items[i].batch->first_t0_us < n->up_us;
    }
    return is_earlier && !n->info.can_kill;
}

void release_part_over(struct release_part *part, bool is_acknowledged)
{
    struct release *r = part->release;
    struct redlock_async *lock = r->lock;
    unsigned bit = 1U << part->node;
    r->in_flight &= ~bit;
    if (is_acknowledged && (r->repeated & bit) == 0 && !lock->is_closing &&
        may_set_follow(r, part->node)) { /* lock.R1 */
        r->repeated |= bit;
        r->to_send |= bit;
        r->repeat_us = clock_boot_us() + lock->options.node_timeout_us;
        retry_later(lock);
    }
    if (!is_acknowledged) {
        lock->counters.node_errors++;
        r->to_send |= bit;
        r->unanswered |= bit;
        if (clock_boot_us() >= r->expires_us || lock->is_closing) {
            give_up(r);
        } else {
            retry_later(lock);
        }
    }
    tell_all(r);
    free_if_over(lock, r);
    release_report_flushed(lock);
}

static void send_to(struct release *r, size_t node)
{
    if (release_send(r, node)) {
        r->to_send &= ~(1U << node);
        r->in_flight |= 1U << node;
    }
}

static bool is_to_send(const struct release *r, size_t node)
{
    bool is_too_early = (r->repeated >> node & 1U) != 0 && clock_boot_us() < r->repeat_us;
    return (r->to_send >> node & 1U) != 0 && !is_too_early;
}

static void send_what_waits(struct release *r)
{
    const struct redlock_async *lock = r->lock;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        struct redis_node *redis = lock->nodes[i].redis;
        if (is_to_send(r, i) && redis != NULL && redis_node_is_up(redis)) {
            send_to(r, i);
        }
    }
}

static void keep_bound(struct redlock_async *lock)
{
    struct release *r = lock->releases;
    while (r != NULL && lock->release_keys > KEYS_WAITING_MAX) {
        struct release *next = r->next;
        give_up(r);
        free_if_over(lock, r);
        r = next;
    }
}

/* ---- grouping ---- */

static void add_keys(struct release *r, struct redlock_batch *b)
{
    for (size_t i = 0; b->leaving > 0; i++) {
        struct key *k = &b->keys[i];
        if (k->stage != KEY_RELEASING) {
            continue;
        }
        k->stage = KEY_GONE;
        b->leaving--;
        batch_ref(b);
        r->items[r->count++] = (struct release_item){.batch = b, .index = (uint16_t)i};
        r->has_tellers = r->has_tellers || k->told != NULL;
    }
    if (r->sent_us + b->terms.ttl_us > r->expires_us) {
        r->expires_us = r->sent_us + b->terms.ttl_us;
    }
}

/* Releases the batches from `list` up to `end`, which have `count` keys for the same nodes. Returns
 * false if memory runs out. */
static bool release_group(struct redlock_async *lock, struct redlock_batch *list,
                          const struct redlock_batch *end, size_t count)
{
    struct release *r = pool_take(&lock->pool, sizeof *r + count * sizeof r->items[0]);
    if (r == NULL) {
        return false;
    }
    r->lock = lock;
    r->seq = ++lock->release_seq;
    r->sent_us = clock_boot_us();
    r->asked = list->written;
    r->to_send = r->asked;
    r->teller = (size_t)rand_below(&lock->rand, (int64_t)lock->options.node_count);
    for (struct redlock_batch *b = list; b != end;) {
        struct redlock_batch *next = b->next_releasing;
        b->is_releasing = false;
        add_keys(r, b);
        batch_unref(b);
        b = next;
    }
    append(lock, r);
    send_what_waits(r);
    if (r->to_send != 0) {
        retry_later(lock);
    }
    if (r->in_flight == 0) { /* called back from the loop, not from inside this call */
        lock->has_untold = true;
        core_soon(lock);
    }
    keep_bound(lock);
    return true;
}

/* Keeps the batches in the list if memory runs out. */
static void put_off(struct redlock_async *lock, struct redlock_batch *list)
{
    assert(lock->releasing == NULL);
    lock->releasing = list;
    retry_later(lock);
}

/* True if the two may share a script. If a node refuses a script because of one batch, its keys end
 * by their ttl there; keys of other batches must not share that. */
static bool may_join(const struct redlock_batch *first, const struct redlock_batch *b)
{
    return b->written == first->written && !first->is_forbidden && !b->is_forbidden &&
           first->leaving < ALONE_FROM && b->leaving < ALONE_FROM;
}

void release_send_all(struct redlock_async *lock)
{
    struct redlock_batch *list = TAKE(lock->releasing);
    while (list != NULL) {
        size_t count = list->leaving;
        struct redlock_batch *end = list->next_releasing;
        while (end != NULL && may_join(list, end) && count + end->leaving <= REDLOCK_KEYS_MAX) {
            count += end->leaving;
            end = end->next_releasing;
        }
        if (!release_group(lock, list, end, count)) {
            put_off(lock, list);
            return;
        }
        list = end;
    }
}

void release_key_soon(struct redlock_batch *b, size_t index)
{
    struct redlock_async *lock = b->lock;
    b->keys[index].stage = KEY_RELEASING;
    b->leaving++;
    if (!b->is_releasing) {
        b->is_releasing = true;
        b->next_releasing = lock->releasing;
        lock->releasing = b;
        batch_ref(b);
        core_send_soon(lock);
    }
}

void redlock_batch_release_tell(struct redlock_batch *batch, size_t index,
                                redlock_async_released_cb *done, void *ctx)
{
    struct key *k = &batch->keys[index];
    batch_ref(batch);
    batch_key_leaves(batch, index, KEY_GONE);
    k->told = done;
    k->told_ctx = ctx;
    record_release(batch, index);
    release_key_soon(batch, index);
    batch_unref(batch);
}

void redlock_batch_release(struct redlock_batch *batch, size_t index)
{
    redlock_batch_release_tell(batch, index, NULL, NULL);
}

void redlock_batch_drop(struct redlock_batch *batch, size_t index)
{
    batch_key_leaves(batch, index, KEY_GONE);
}

/* ---- timer, nodes that come up ---- */

void release_node_up(struct redlock_async *lock, size_t node)
{
    for (struct release *r = lock->releases; r != NULL; r = r->next) {
        if (is_to_send(r, node)) {
            send_to(r, node);
        }
    }
}

int64_t release_tick(struct redlock_async *lock, int64_t now_us)
{
    if (lock->release_wake_us == 0 || now_us < lock->release_wake_us) {
        return lock->release_wake_us == 0 ? INT64_MAX : lock->release_wake_us;
    }
    bool is_any_left = false;
    for (struct release *r = lock->releases, *next = NULL; r != NULL; r = next) {
        next = r->next;
        if (now_us >= r->expires_us) {
            give_up(r);
        }
        send_what_waits(r);
        is_any_left = is_any_left || r->to_send != 0;
        free_if_over(lock, r);
    }
    if (lock->releasing != NULL) { /* memory had run out for them */
        core_soon(lock);
    }
    lock->release_wake_us = is_any_left ? now_us + lock->options.node_timeout_us : 0;
    return is_any_left ? lock->release_wake_us : INT64_MAX;
}

uint64_t release_oldest_in_flight(const struct redlock_async *lock)
{
    const struct release *r = lock->releases;
    while (r != NULL && r->in_flight == 0) {
        r = r->next;
    }
    return r != NULL ? r->seq : UINT64_MAX;
}

/* Drops keys for whose release there never was enough memory. */
static void forget_unsent(struct redlock_async *lock)
{
    struct redlock_batch *list = TAKE(lock->releasing);
    while (list != NULL) {
        struct redlock_batch *b = list;
        list = b->next_releasing;
        for (size_t i = 0; i < b->count; i++) {
            if (b->keys[i].stage == KEY_RELEASING) {
                b->keys[i].stage = KEY_GONE;
                tell(&b->keys[i], b->written);
            }
        }
        batch_unref(b);
    }
}

void release_free_all(struct redlock_async *lock)
{
    release_send_all(lock); /* what was released while the connections were closed */
    forget_unsent(lock);
    while (lock->releases != NULL) {
        struct release *r = lock->releases;
        give_up(r);
        r->in_flight = 0; /* the connections are closed: no reply comes any more */
        tell_all(r);
        free_if_over(lock, r);
    }
}
