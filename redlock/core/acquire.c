/* SPDX-License-Identifier: Apache-2.0
 *
 * Acquires the keys of a batch: one pipelined SET … NX PX per key and node, and a verdict at
 * quorum. */
#include "base/clock.h"
#include "redlock/core/core.h"
#include "redlock/core/error.h"
#include "redlock/core/line_scripts.h"
#include "redlock/core/record.h"
#include "redlock/rules/line_rules.h"

#include <assert.h>

#define LATENCY_LEAST_US INT64_C(10)

/* A1; binary-safe because all arguments are counted by length (K4). GET returns the former value:
 * nil means that the key was granted, otherwise it is the holder's. */
static enum status format_sets(struct redlock_batch *b, struct err *err)
{
    struct redlock_async *lock = b->lock;
    struct redis_arg set[] = {
        redis_word("SET"), {0}, batch_value(b), redis_word("NX"), redis_word("GET"),
        redis_word("PX"),  {0}};
    struct redis_arg pttl[] = {redis_word("PTTL"), {0}};
    batch_set_ttl(b, b->t0_us);
    set[ARRAY_COUNT(set) - 1] = redis_word(b->ttl_ms);
    buf_reset(&lock->wire);
    for (size_t i = 0; i < b->count; i++) {
        const struct key *k = &b->keys[b->order[i]];
        set[1] = pttl[1] = redis_bytes(k->bytes, k->len);
        enum status st = redis_command(&lock->wire, set, ARRAY_COUNT(set), err);
        if (st == STATUS_OK && b->free_at_us != NULL) {
            st = redis_command(&lock->wire, pttl, ARRAY_COUNT(pttl), err);
        }
        if (st != STATUS_OK) {
            return st;
        }
    }
    return canary_put(lock, err);
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct ballot *ballot = ctx;
    struct redlock_batch *b = ballot->batch;
    size_t per_key = b->free_at_us != NULL ? 2 : 1;
    if (index == b->count * per_key) {
        ballot->is_witnessed = canary_take(&b->lock->nodes[ballot->node], v);
        return;
    }
    size_t key = b->order[index / per_key];
    if (index % per_key != 0) {
        votes_take_ttl(b, key, ballot->node, v);
        return;
    }
    ballot->keys_seen++;
    if (!votes_take(b, key, ballot->node, v)) {
        ballot->has_failed = true;
        node_note_error(&b->lock->nodes[ballot->node], v);
    }
}

static void on_entry_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct ballot *ballot = ctx;
    (void)index;
    ballot->keys_seen = 1;
    ballot->has_failed = !line_take_answer(ballot->batch, ballot->node, v, &ballot->is_witnessed);
}

/* A round in line waits for all replies, to learn to which waiter our votes should go. */
static bool is_to_hear_more(const struct redlock_batch *b)
{
    return b->is_entry && b->open != 0 && b->keys[0].tally.ok < b->lock->quorum;
}

static bool is_decided(struct redlock_batch *b, int64_t now_us)
{
    if (is_to_hear_more(b)) {
        return false;
    }
    int64_t validity_us = lease_start(&b->terms, b->t0_us).deadline_us - now_us;
    for (size_t i = 0; i < b->count; i++) {
        enum redlock_result verdict = REDLOCK_NO_QUORUM;
        if (!tally_verdict(&b->keys[i].tally, validity_us, b->min_validity_us, &verdict)) {
            return false;
        }
        b->keys[i].result = (uint8_t)verdict;
    }
    return true;
}

static void note_latency(struct redlock_async *lock, int64_t took_us)
{
    size_t bucket = 0;
    while (bucket < REDLOCK_LATENCY_BUCKETS - 1 && took_us > LATENCY_LEAST_US << bucket) {
        bucket++;
    }
    lock->counters.latency[bucket]++;
}

/* Applies the verdicts. Keys that were not won are released, on the connections that carried the
 * SETs, before anything that the owner acquires next (lock.A10). */
static void conclude(struct redlock_batch *b)
{
    struct redlock_async *lock = b->lock;
    for (size_t i = 0; i < b->count; i++) {
        struct key *k = &b->keys[i];
        lock->counters.results[k->result]++;
        if (k->result == REDLOCK_OK) {
            k->lease = lease_start(&b->terms, b->t0_us);
            k->stage = KEY_HELD;
            b->held_count++;
        } else {
            k->stage = KEY_GONE;
            if (!b->is_entry && (b->written & ~(unsigned)k->forbidden_nodes) != 0) {
                release_key_soon(b, i);
            }
        }
        record_acquired(b, i);
    }
    if (b->held_count > 0) {
        note_latency(lock, clock_boot_us() - b->t0_us);
        keeper_add(b);
    }
    redlock_async_acquired_cb *done = TAKE(b->done);
    b->entrant = NULL;
    batch_ref(b); /* the callback may release everything at once */
    bool is_empty = b->held_count == 0;
    done(b->ctx, b);
    if (is_empty) {
        batch_unref(b); /* the owner's reference */
    }
    batch_unref(b);
}

/* Reports by the idle handle, later in this turn of the loop: votes that arrive together are
 * counted together, so that a refusal is more often distinguished from a mere lack of votes. */
static void report_soon(struct redlock_batch *b)
{
    struct redlock_async *lock = b->lock;
    b->is_soon = true;
    b->next_soon = lock->soon;
    lock->soon = b;
    core_soon(lock);
}

static void on_done(void *ctx, enum status st)
{
    struct ballot *ballot = ctx;
    struct redlock_batch *b = ballot->batch;
    b->open &= ~(1U << ballot->node);
    if (st != STATUS_OK) {
        votes_silence(b, ballot->node, ballot->keys_seen);
    }
    votes_count(b, ballot->node, ballot->is_witnessed);
    b->lock->counters.node_errors += st != STATUS_OK || ballot->has_failed;
    if (b->done != NULL && !b->is_soon && is_decided(b, clock_boot_us())) {
        report_soon(b);
    }
    batch_unref(b);
}

static enum status send_entry(struct redlock_batch *b, size_t node)
{
    struct redlock_async *lock = b->lock;
    char score[TTL_TEXT_SIZE];
    char offer[TTL_TEXT_SIZE];
    core_print_i64(score, line_read_score(b->value, lock->value_len));
    line_print_offer(lock, offer);
    const struct redis_arg keys[] = {redis_bytes(b->keys[0].bytes, b->keys[0].len),
                                     canary_arg(lock)};
    const struct redis_arg args[] = {line_prefix_arg(lock), batch_value(b),
                                     redis_word(score),     redis_word(b->ttl_ms),
                                     redis_word(offer),     redis_word(LINE_SESSION_MS)};
    const struct redis_script_call call = {.script = &script_enter,
                                           .keys = keys,
                                           .key_count = ARRAY_COUNT(keys),
                                           .args = args,
                                           .arg_count = ARRAY_COUNT(args),
                                           .timeout_us = lock->options.node_timeout_us,
                                           .on_reply = on_entry_reply,
                                           .on_done = on_done,
                                           .ctx = &b->ballots[node]};
    return redis_node_call(lock->nodes[node].redis, &call, NULL);
}

static enum status send_sets(struct redlock_batch *b, size_t node)
{
    struct redlock_async *lock = b->lock;
    const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                          .len = lock->wire.len,
                                          .reply_count =
                                              b->count * (b->free_at_us != NULL ? 2 : 1) + 1,
                                          .timeout_us = lock->options.node_timeout_us,
                                          .on_reply = on_reply,
                                          .on_done = on_done,
                                          .ctx = &b->ballots[node]};
    return redis_node_send(lock->nodes[node].redis, &request, NULL);
}

static void send_to(struct redlock_batch *b, size_t node)
{
    b->ballots[node] = (struct ballot){.batch = b, .node = node};
    if ((b->is_entry ? send_entry(b, node) : send_sets(b, node)) != STATUS_OK) {
        votes_silence(b, node, 0);
        return;
    }
    b->written |= 1U << node;
    b->open |= 1U << node;
    batch_ref(b);
}

/* A13: nodes that are known to have no vote are not waited for. */
static void leave_out(struct redlock_batch *b, size_t node)
{
    const struct node_slot *n = &b->lock->nodes[node];
    if (!redis_node_is_up(n->redis)) {
        b->down |= 1U << node;
    } else if (!node_may_vote(n)) {
        b->quarantined |= 1U << node;
    }
    votes_silence(b, node, 0);
}

/* Asks no node at all if memory for the commands runs out. */
static void send_to_all(struct redlock_batch *b)
{
    struct redlock_async *lock = b->lock;
    bool is_possible = redlock_async_has_quorum(lock); /* otherwise nothing is worth sending */
    is_possible = is_possible && (b->is_entry || format_sets(b, NULL) == STATUS_OK);
    for (size_t i = 0; i < lock->options.node_count; i++) {
        if (is_possible && node_may_vote(&lock->nodes[i])) {
            send_to(b, i);
        } else {
            leave_out(b, i);
        }
    }
    if (is_decided(b, clock_boot_us())) {
        report_soon(b);
    }
}

void acquire_send(struct redlock_async *lock)
{
    struct redlock_batch *list = NULL;
    while (lock->starting != NULL) { /* reverses the list: the first one begun is sent first */
        struct redlock_batch *b = lock->starting;
        lock->starting = b->next_soon;
        b->next_soon = list;
        list = b;
    }
    while (list != NULL) {
        struct redlock_batch *b = list;
        list = b->next_soon;
        send_to_all(b);
    }
}

/* Begins an acquisition. The SETs are sent at the end of the turn, after all releases of this turn:
 * these may be of the same keys, and releases with nothing in between are sent together. */
static enum status start(struct redlock_async *lock, const struct redlock_async_request *request,
                         const struct entry *entry, struct err *err)
{
    struct redlock_batch *b = NULL;
    enum status st = batch_new(lock, request, &b, err);
    if (st != STATUS_OK) {
        return st;
    }
    b->done = request->done;
    b->ctx = request->ctx;
    batch_begin(b, clock_boot_us());
    if (entry != NULL) {
        batch_enters(b, entry);
    }
    record_acquire(b);
    b->next_soon = lock->starting;
    lock->starting = b;
    core_send_soon(lock);
    return STATUS_OK;
}

int redlock_async_acquire(struct redlock_async *lock, const struct redlock_async_request *request,
                          struct redlock_error *ret_error)
{
    struct err err = {0};
    if (lock->is_closing) {
        return error_tell_closing(ret_error);
    }
    return error_tell(start(lock, request, NULL, &err), &err, ret_error);
}

int acquire_enter(struct redlock_async *lock, const struct redlock_async_request *request,
                  const struct entry *entry, struct redlock_error *ret_error)
{
    struct err err = {0};
    return error_tell(start(lock, request, entry, &err), &err, ret_error);
}

void acquire_report(struct redlock_async *lock)
{
    struct redlock_batch *list = TAKE(lock->soon);
    while (list != NULL) {
        struct redlock_batch *b = list;
        list = b->next_soon;
        b->is_soon = false;
        /* decide again with the votes that arrived since, and at the present time (A7) */
        if (is_decided(b, clock_boot_us())) {
            conclude(b);
        }
    }
}

void acquire_drop_votes(struct redlock_async *lock, size_t node)
{
    uint16_t bit = (uint16_t)(1U << node);
    for (struct redlock_batch *b = lock->batches; b != NULL; b = b->next) {
        for (size_t i = 0; b->done != NULL && i < b->count; i++) {
            struct key *k = &b->keys[i];
            if ((k->ok_nodes & bit) != 0) {
                k->ok_nodes &= (uint16_t)~bit;
                k->bad_nodes |= bit;
                if ((b->open & bit) != 0) {
                    tally_add(&k->tally, VOTE_ERROR); /* its vote was not counted yet */
                } else {
                    tally_take_back(&k->tally);
                }
            }
        }
        if (b->done != NULL && !b->is_soon && is_decided(b, clock_boot_us())) {
            report_soon(b);
        }
    }
}

static struct redlock_batch *first_under_way(const struct redlock_async *lock)
{
    struct redlock_batch *b = lock->batches;
    while (b != NULL && b->done == NULL) {
        b = b->next;
    }
    return b;
}

void acquire_cancel(struct redlock_async *lock)
{
    acquire_report(lock);
    lock->starting = NULL; /* nothing of these batches was sent */
    struct redlock_batch *b = NULL;
    while ((b = first_under_way(lock)) != NULL) { /* a callback may free other batches */
        for (size_t i = 0; i < b->count; i++) {
            b->keys[i].result = REDLOCK_CANCELLED;
        }
        conclude(b);
    }
}

size_t redlock_batch_count(const struct redlock_batch *batch)
{
    return batch->count;
}

void *redlock_batch_user(const struct redlock_batch *batch, size_t index)
{
    assert(index < batch->count);
    return batch->keys[index].user;
}

enum redlock_result redlock_batch_result(const struct redlock_batch *batch, size_t index)
{
    assert(index < batch->count);
    return (enum redlock_result)batch->keys[index].result;
}

enum redlock_state redlock_batch_state(const struct redlock_batch *batch, size_t index)
{
    assert(index < batch->count && batch->keys[index].result == REDLOCK_OK);
    const struct lease *l = &batch->keys[index].lease;
    return clock_boot_us() >= l->deadline_us ? REDLOCK_STATE_LOST : l->state;
}

int64_t redlock_batch_deadline_us(const struct redlock_batch *batch, size_t index)
{
    assert(index < batch->count);
    return batch->keys[index].lease.deadline_us;
}
