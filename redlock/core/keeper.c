/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps won keys: extends those that are due, in rounds, and reports when a lease becomes suspect
 * and when it is lost. */
#include "base/bug.h"
#include "base/clock.h"
#include "redlock/core/core.h"

/* Batches due within T/100 of each other are extended together: fewer wake-ups, fuller scripts. */
#define TOGETHER_PER_TTL 100

struct extend_call { /* one redlock_batch_extend() */
    struct extend_call *next;
    redlock_async_extended_cb *done;
    void *ctx;
    enum redlock_result result;
};

static void tell(struct redlock_batch *b, size_t index)
{
    const struct redlock_async *lock = b->lock;
    struct key *k = &b->keys[index];
    if (lock->options.on_state != NULL && !lock->is_closing && !b->is_part) {
        lock->options.on_state(lock->options.ctx, b, index, k->user, k->lease.state);
    }
}

/* Plans when to look at the batch next: when it is due for extension, or when its first lease
 * ends. */
static void plan(struct redlock_batch *b)
{
    struct redlock_async *lock = b->lock;
    int64_t wake_us = INT64_MAX;
    bool is_any_kept = false;
    for (size_t i = 0; i < b->count; i++) {
        const struct key *k = &b->keys[i];
        if (k->stage == KEY_HELD && k->lease.state != REDLOCK_STATE_LOST) {
            is_any_kept = true;
            wake_us = k->lease.deadline_us < wake_us ? k->lease.deadline_us : wake_us;
        }
    }
    if (!is_any_kept) {
        heap_remove(&lock->kept, &b->due);
        return;
    }
    heap_put(&lock->kept, &b->due, b->extend_us < wake_us ? b->extend_us : wake_us);
    core_wake_at(lock, b->due.wake_us);
}

/* Sets when the keeper next extends the batch, if ever. Rounds go on until the end of the longest
 * hold: near it they no longer move the deadline, but they detect a theft (lock.E3, E9). */
static void schedule(struct redlock_batch *b, int64_t at_us)
{
    bool is_over = b->terms.end_us > 0 && at_us >= b->terms.end_us;
    b->extend_us = !b->is_not_kept && !is_over ? at_us : INT64_MAX;
}

void keeper_add(struct redlock_batch *b)
{
    schedule(b, lease_renewal_us(&b->terms, b->t0_us, true, &b->lock->rand));
    plan(b);
}

static void schedule_after(struct redlock_batch *b, int64_t t0_us, bool was_unsure)
{
    struct redlock_async *lock = b->lock;
    if (was_unsure) {
        b->failures++;
        schedule(b, lease_retry_us(&b->terms, clock_boot_us(), lock->options.node_timeout_us,
                                   b->failures, &lock->rand));
    } else {
        b->failures = 0;
        schedule(b, lease_renewal_us(&b->terms, t0_us, false, &lock->rand));
    }
    plan(b);
}

static void batch_round_over(struct redlock_batch *b)
{
    bool was_unsure = b->was_unsure;
    b->was_unsure = false;
    schedule_after(b, b->round_t0_us, was_unsure);
}

/* ---- verdicts ---- */

static void call_over(struct redlock_async *lock, struct extend_call *call,
                      enum redlock_result result)
{
    call->result = result;
    call->next = lock->calls_over;
    lock->calls_over = call;
    core_soon(lock); /* called back from the loop */
}

void keeper_report(struct redlock_async *lock)
{
    rounds_settle(lock);
    struct extend_call *list = TAKE(lock->calls_over);
    while (list != NULL) {
        struct extend_call *call = list;
        list = call->next;
        redlock_async_extended_cb *done = call->done;
        void *ctx = call->ctx;
        enum redlock_result result = call->result;
        free(call);
        if (done != NULL) {
            done(ctx, result);
        }
    }
}

static enum redlock_result call_result(const struct key *k, const struct extend_tally *tally)
{
    size_t blocking = tally->nodes - tally_quorum(tally->nodes) + 1;
    if (k->lease.state == REDLOCK_STATE_LOST) {
        return REDLOCK_LOST;
    }
    if (extend_tally_verdict(tally) == EXTEND_DONE) {
        return REDLOCK_OK;
    }
    return tally->error >= blocking ? REDLOCK_NO_QUORUM : REDLOCK_SPLIT;
}

void keeper_settle(struct redlock_batch *b, size_t index, const struct extend_tally *tally,
                   int64_t t0_us, struct extend_call *call)
{
    struct redlock_async *lock = b->lock;
    struct key *k = &b->keys[index];
    enum extend_verdict verdict = extend_tally_verdict(tally);
    enum redlock_result result = REDLOCK_CANCELLED;
    if (k->stage == KEY_HELD) {
        bool is_changed = lease_extend(&k->lease, &b->terms, verdict, t0_us, clock_boot_us());
        lock->counters.extended += verdict == EXTEND_DONE && k->lease.state == REDLOCK_STATE_HELD;
        lock->counters.lost += is_changed && k->lease.state == REDLOCK_STATE_LOST;
        result = call_result(k, tally);
        if (verdict == EXTEND_DONE && k->lease.state == REDLOCK_STATE_HELD &&
            lock->hooks.on_deadline != NULL && !b->is_part) {
            lock->hooks.on_deadline(k->user);
        }
        b->was_unsure = b->was_unsure || (call == NULL && verdict == EXTEND_UNSURE);
        if (is_changed) {
            tell(b, index);
        }
    }
    if (call == NULL) {
        k->is_in_round = false;
        if (--b->in_round == 0) {
            batch_round_over(b);
        }
        return;
    }
    /* Continue the keeper's schedule from here, unless a round of its own is in flight or the batch
     * has other keys. */
    if (b->held_count == 1 && b->in_round == 0) {
        schedule_after(b, t0_us, verdict == EXTEND_UNSURE);
    }
    call_over(lock, call, result);
}

/* ---- rounds ---- */

static bool is_to_keep(const struct key *k)
{
    return k->stage == KEY_HELD && k->lease.state != REDLOCK_STATE_LOST;
}

/* Adds the batch's kept keys to the open round, and sends each round that is full. Returns the open
 * one. */
static struct round *add_batch(struct round *round, struct redlock_batch *b, int64_t now_us)
{
    for (size_t i = 0; i < b->count; i++) {
        struct key *k = &b->keys[i];
        if (!is_to_keep(k) || k->is_in_round) {
            continue;
        }
        /* a node refuses any script that names it, so it gets a round of its own */
        bool is_alone = k->forbidden_nodes != 0;
        if (round != NULL && is_alone) {
            round_send(TAKE(round));
        }
        if (round == NULL && (round = round_new(b->lock, now_us, NULL)) == NULL) {
            b->was_unsure = true; /* no memory now: handled as if no node had answered */
            break;
        }
        k->is_in_round = true;
        b->in_round++;
        if (round_add(round, b, i) || is_alone) {
            round_send(TAKE(round));
        }
    }
    return round;
}

static void extend(struct redlock_batch *due, int64_t now_us)
{
    struct round *round = NULL;
    for (struct redlock_batch *b = due; b != NULL; b = b->next_due) {
        if (b->held_count > 0 && b->extend_us <= now_us + b->terms.ttl_us / TOGETHER_PER_TTL) {
            b->extend_us = INT64_MAX;
            b->round_t0_us = now_us;
            round = add_batch(round, b, now_us);
            if (b->in_round == 0 && b->was_unsure) {
                batch_round_over(b);
            }
        }
    }
    if (round != NULL) {
        round_send(round);
    }
}

static enum redlock_result try_extend(struct redlock_batch *b, size_t index,
                                      struct extend_call *call)
{
    int64_t now_us = clock_boot_us();
    struct round *round = round_new(b->lock, now_us, call);
    if (round == NULL) {
        return REDLOCK_NO_QUORUM;
    }
    (void)round_add(round, b, index);
    round_send(round);
    return REDLOCK_OK; /* in flight */
}

int redlock_batch_extend(struct redlock_batch *batch, size_t index, redlock_async_extended_cb *done,
                         void *ctx)
{
    struct redlock_async *lock = batch->lock;
    if (lock->is_closing || index >= batch->count || !is_to_keep(&batch->keys[index]) ||
        clock_boot_us() >= batch->keys[index].lease.deadline_us) {
        return -EINVAL;
    }
    struct extend_call *call = malloc(sizeof *call);
    if (call == NULL) {
        return -ENOMEM;
    }
    *call = (struct extend_call){.done = done, .ctx = ctx};
    enum redlock_result result = try_extend(batch, index, call);
    if (result != REDLOCK_OK) {
        call_over(lock, call, result);
    }
    return 0;
}

/* ---- lost votes (lock.N2) ---- */

static struct redlock_batch *take_all_held(struct redlock_async *lock)
{
    struct redlock_batch *list = NULL;
    for (struct redlock_batch *b = lock->batches; b != NULL; b = b->next) {
        if (b->held_count > 0) {
            b->next_due = list;
            list = b;
            batch_ref(b);
        }
    }
    return list;
}

/* Returns true if a key of the batch no longer has a quorum. */
static bool drop_votes(struct redlock_batch *b, size_t node)
{
    bool is_any_short = false;
    for (size_t i = 0; i < b->count; i++) {
        struct key *k = &b->keys[i];
        uint16_t before = k->ok_nodes;
        k->ok_nodes &= (uint16_t) ~(1U << node);
        if (k->ok_nodes == before || !is_to_keep(k) ||
            (size_t)__builtin_popcount(k->ok_nodes) >= b->lock->quorum) {
            continue;
        }
        is_any_short = true;
        if (lease_doubt(&k->lease)) {
            tell(b, i);
        }
    }
    return is_any_short;
}

void keeper_drop_votes(struct redlock_async *lock, size_t node)
{
    int64_t now_us = clock_boot_us();
    rounds_drop_votes(lock, node);
    struct redlock_batch *list = take_all_held(lock);
    while (list != NULL) {
        struct redlock_batch *b = list;
        list = b->next_due;
        if (drop_votes(b, node) && b->held_count > 0 && b->in_round == 0) {
            schedule(b, now_us); /* extend at once: the other nodes may confirm */
            plan(b);
        }
        batch_unref(b);
    }
}

/* ---- the timer ---- */

static struct redlock_batch *take_due(struct redlock_async *lock, int64_t until_us)
{
    struct redlock_batch *due = NULL;
    struct heap_item *top = NULL;
    while ((top = heap_top(&lock->kept)) != NULL && top->wake_us <= until_us) {
        struct redlock_batch *b = top->owner;
        heap_remove(&lock->kept, top);
        b->next_due = due;
        due = b;
        batch_ref(b);
    }
    return due;
}

static void mark_lost(struct redlock_batch *b, int64_t now_us)
{
    for (size_t i = 0; i < b->count; i++) {
        struct key *k = &b->keys[i];
        if (k->stage == KEY_HELD && !SEEDED_BUG(10) && lease_check(&k->lease, now_us)) {
            b->lock->counters.lost++;
            tell(b, i);
        }
    }
}

int64_t keeper_tick(struct redlock_async *lock, int64_t now_us)
{
    const struct heap_item *first = heap_top(&lock->kept);
    if (first != NULL && first->wake_us <= now_us) {
        struct redlock_batch *due =
            take_due(lock, now_us + lock->options.ttl_us / TOGETHER_PER_TTL);
        for (struct redlock_batch *b = due; b != NULL; b = b->next_due) {
            mark_lost(b, now_us); /* before anything is sent (lock.W4) */
        }
        extend(due, now_us);
        while (due != NULL) {
            struct redlock_batch *b = due;
            due = b->next_due;
            if (b->held_count > 0) {
                plan(b);
            }
            batch_unref(b);
        }
    }
    first = heap_top(&lock->kept);
    return first != NULL ? first->wake_us : INT64_MAX;
}
