/* SPDX-License-Identifier: Apache-2.0
 *
 * The record of one request: its keys, their stages and tokens, and its references. */
#include "base/clock.h"
#include "redlock/core/core.h"
#include "redlock/rules/line_rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum status batch_check_keys(const struct redlock_async_key *keys, size_t count, size_t *ret_bytes,
                             struct err *err)
{
    size_t bytes = 0;
    if (count == 0 || count > REDLOCK_KEYS_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: %zu keys in a batch, allowed are 1 to %d",
                        count, REDLOCK_KEYS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (keys[i].len == 0 || keys[i].len > REDLOCK_KEY_LEN_MAX) {
            return err_fail(err, STATUS_INVALID, "redlock: key of %zu bytes, allowed are 1 to %d",
                            keys[i].len, REDLOCK_KEY_LEN_MAX);
        }
        bytes += keys[i].len;
    }
    *ret_bytes = bytes;
    return STATUS_OK;
}

/* Checks A16 for a ttl that is not the client's. The quarantine of a restarted node lasts as long
 * as the longest ttl for which its clients were opened (lock.N1). */
static enum status check_terms(const struct redlock_async *lock,
                               const struct redlock_async_request *request, struct err *err)
{
    const struct redlock_async_options *o = &lock->options;
    if (request->max_hold_us < 0) {
        return err_fail(err, STATUS_INVALID, "redlock: a longest hold of %" PRId64 " us",
                        request->max_hold_us);
    }
    if (request->max_hold_us > 0 && o->min_validity_us > request->max_hold_us) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: with a longest hold of %" PRId64 " ms a validity of %" PRId64
                        " ms can't be won",
                        request->max_hold_us / US_PER_MS, o->min_validity_us / US_PER_MS);
    }
    if (request->ttl_us == 0) {
        return STATUS_OK;
    }
    enum status st =
        lease_check_terms(request->ttl_us, o->node_timeout_us, o->allow_short_ttl, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (request->ttl_us > o->ttl_max_us) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: ttl of %" PRId64 " ms, the client's largest is %" PRId64 " ms",
                        request->ttl_us / US_PER_MS, o->ttl_max_us / US_PER_MS);
    }
    if (o->min_validity_us >= request->ttl_us - lease_drift_us(request->ttl_us, o->drift_ppm)) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: with a ttl of %" PRId64 " ms a validity of %" PRId64
                        " ms can't be won",
                        request->ttl_us / US_PER_MS, o->min_validity_us / US_PER_MS);
    }
    return STATUS_OK;
}

static void set_terms(struct redlock_batch *b, const struct redlock_async_request *request)
{
    const struct redlock_async_options *o = &b->lock->options;
    int64_t ttl_us = request->ttl_us > 0 ? request->ttl_us : o->ttl_us;
    b->terms =
        (struct lease_terms){.ttl_us = ttl_us, .drift_us = lease_drift_us(ttl_us, o->drift_ppm)};
    b->max_hold_us = request->max_hold_us;
    int64_t longest_us = b->max_hold_us > 0 && b->max_hold_us < ttl_us ? b->max_hold_us : ttl_us;
    b->min_validity_us = o->min_validity_us > 0 ? o->min_validity_us : longest_us / 2;
    b->is_not_kept = request->is_not_kept;
}

void batch_begin(struct redlock_batch *b, int64_t t0_us)
{
    bool is_bound = b->max_hold_us > 0 && b->max_hold_us < INT64_MAX - t0_us;
    b->t0_us = b->first_t0_us = t0_us;
    b->terms.end_us = is_bound ? t0_us + b->max_hold_us : 0;
}

void batch_enters(struct redlock_batch *b, const struct entry *entry)
{
    const struct redlock_batch *former = entry->former;
    memcpy(b->value, entry->value, sizeof b->value);
    b->is_entry = true;
    b->entrant = entry->wait;
    b->is_part = entry->is_part;
    batch_set_ttl(b, b->t0_us);
    if (former != NULL) {
        b->first_t0_us = former->first_t0_us;
        b->written = former->written; /* the release must reach these nodes, too (lock.A10) */
        b->is_forbidden = former->is_forbidden;
    }
}

void batch_set_ttl(struct redlock_batch *b, int64_t t0_us)
{
    core_print_i64(b->ttl_ms, lease_ttl_us(&b->terms, t0_us) / US_PER_MS);
}

struct redis_arg batch_value(const struct redlock_batch *b)
{
    return redis_bytes(b->value, b->lock->value_len);
}

bool batch_is_own(const struct redlock_batch *b, const struct redis_value *v)
{
    return v->type == REDIS_STRING && v->len == b->lock->value_len &&
           memcmp(v->text, b->value, v->len) == 0;
}

/* Shuffles the keys, so that workers whose batches overlap don't collide on the same keys in the
 * same order. */
static void set_order(struct redlock_batch *b, bool is_ordered)
{
    for (size_t i = 0; i < b->count; i++) {
        size_t other = is_ordered ? i : (size_t)rand_below(&b->lock->rand, (int64_t)i + 1);
        b->order[i] = b->order[other];
        b->order[other] = (uint16_t)i;
    }
}

/* Keys, their times, holders, order and bytes are stored behind the batch, in one allocation. */
static struct redlock_batch *batch_alloc(struct redlock_async *lock,
                                         const struct redlock_async_key *keys, size_t count,
                                         size_t bytes, bool wants_holder)
{
    size_t keys_size = count * sizeof(struct key);
    size_t free_at_size = wants_holder ? count * lock->options.node_count * sizeof(int64_t) : 0;
    size_t holders_size = wants_holder ? count * sizeof(struct holder) : 0;
    size_t order_size = count * sizeof(uint16_t);
    struct redlock_batch *b = pool_take(&lock->pool, sizeof *b + keys_size + free_at_size +
                                                         holders_size + order_size + bytes);
    if (b == NULL) {
        return NULL;
    }
    b->keys = (struct key *)(b + 1);
    b->free_at_us = (int64_t *)(b->keys + count);
    b->holders = (struct holder *)(b->free_at_us + free_at_size / sizeof(int64_t));
    b->order = (uint16_t *)(b->holders + holders_size / sizeof(struct holder));
    char *text = (char *)(b->order + count);
    for (size_t i = 0; i < free_at_size / sizeof(int64_t); i++) {
        b->free_at_us[i] = INT64_MAX;
    }
    if (!wants_holder) {
        b->free_at_us = NULL;
        b->holders = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(text, keys[i].bytes, keys[i].len);
        b->keys[i] = (struct key){.bytes = text,
                                  .len = (uint16_t)keys[i].len,
                                  .user = keys[i].user,
                                  .tally = {.nodes = (uint8_t)lock->options.node_count}};
        text += keys[i].len;
    }
    b->lock = lock;
    b->count = count;
    heap_item_init(&b->due, b);
    return b;
}

enum status batch_new(struct redlock_async *lock, const struct redlock_async_request *request,
                      struct redlock_batch **ret_batch, struct err *err)
{
    char value[VALUE_SIZE] = "";
    size_t bytes = 0;
    enum status st = batch_check_keys(request->keys, request->count, &bytes, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_terms(lock, request, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = heap_reserve(&lock->kept, lock->batch_count + 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = value_draw(lock->prefix, lock->label, value, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct redlock_batch *b =
        batch_alloc(lock, request->keys, request->count, bytes, request->wants_holder_ttl);
    if (b == NULL) {
        return err_fail(err, STATUS_NOMEM, "redlock: no memory for a batch");
    }
    memcpy(b->value, value, sizeof value);
    if (line_is_usable(lock)) {
        line_write_score(b->value, line_draw_score(lock));
    }
    set_terms(b, request);
    set_order(b, request->is_ordered);
    b->refs = 1;
    b->next = lock->batches;
    if (b->next != NULL) {
        b->next->prev = b;
    }
    lock->batches = b;
    lock->batch_count++;
    *ret_batch = b;
    return STATUS_OK;
}

void batch_ref(struct redlock_batch *b)
{
    b->refs++;
}

void batch_free(struct redlock_batch *b)
{
    struct redlock_async *lock = b->lock;
    heap_remove(&lock->kept, &b->due);
    if (b->prev != NULL) {
        b->prev->next = b->next;
    } else {
        lock->batches = b->next;
    }
    if (b->next != NULL) {
        b->next->prev = b->prev;
    }
    lock->batch_count--;
    pool_give(&lock->pool, b);
}

void batch_unref(struct redlock_batch *b)
{
    assert(b->refs > 0);
    if (--b->refs == 0) {
        batch_free(b);
    }
}

void batch_key_leaves(struct redlock_batch *b, size_t index, enum key_stage to)
{
    assert(index < b->count && b->keys[index].stage == KEY_HELD);
    b->keys[index].stage = (uint8_t)to;
    if (--b->held_count == 0) {
        heap_remove(&b->lock->kept, &b->due);
        batch_unref(b);
    }
}
