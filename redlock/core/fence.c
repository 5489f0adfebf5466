/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that rise with every grant of a key, for resources that can refuse a lower one. Each node
 * keeps a counter per key, "<prefix>fence:KEY", for 90 days after its last grant. A holder reads
 * the counters of its keys from a quorum, takes the highest of all + 1, and stores that number by a
 * script, which does so only if the holder's token is in the key and the counter has a lower
 * number. The number is valid when a quorum has stored it, for each of the keys. A node that has a
 * number as high or higher does not store it, which makes the holder take a higher one. Several
 * keys under one lock get one number, which is higher than any earlier one of each key.
 *
 * Why it rises: if A and then B hold a key, each stored its number on a quorum, so they have some
 * node in common. There, A's token was in the key before B's, and tokens don't return (except in
 * lock.E6, while A has its quorum, hence before B). So when B stored its number, A's was there, and
 * the script accepted B's only because it was higher. If A stores so late that B came first, A has
 * no lease any more, and gets no number. The numbers read in the first round are only a good start.
 *
 * What breaks it: nodes that forget. Let A have stored its number on s nodes, and B have an answer
 * (to reading or storing) from r nodes: if s + r − N of them forget in between, B's number may be
 * as low as A's. So with all nodes up any minority may forget; with as many nodes down as possible,
 * none may. If a majority has forgotten, nothing is guaranteed. Use masters that don't forget:
 * appendonly yes, appendfsync always. */
#include "base/clock.h"
#include "base/parse.h"
#include "redlock/core/core.h"
#include "redlock/core/scripts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* rounds of storing; each one after the first is needed because another holder had a higher
 * number */
#define ROUNDS_MAX 5
#define NUMBER_MAX (INT64_C(1) << 53) /* Lua's numbers are doubles */
#define LIFE_MS "7776000000"          /* 90 days */
#define NUMBER_SIZE 24
#define NOT_OURS (-1) /* in place of the counter's former number */

static const char word[] = {'f', 'e', 'n', 'c', 'e', ':'}; /* follows the prefix */

struct fence_part { /* the context of one node's request */
    struct fence *fence;
    size_t node;
    size_t round;
};

struct fence_key {
    const char *counter; /* name of the counter */
    size_t counter_len;
    size_t stored; /* numbers of nodes in this round */
    size_t beaten;
};

struct fence {
    struct fence *next_soon;
    struct redlock_batch *batch; /* holds a reference */
    size_t first;                /* of its keys, in the batch */
    size_t count;
    redlock_async_fenced_cb *done; /* NULL once called */
    void *ctx;
    size_t refs;  /* requests in flight, and being in the list fences_soon */
    size_t round; /* 0 = reading */
    int64_t number;
    int64_t highest;
    size_t read; /* voting nodes that were read */
    size_t open;
    struct fence_part parts[1 + ROUNDS_MAX][REDLOCK_NODES_MAX];
    struct fence_key keys[]; /* followed by the names of the counters */
};

static void fence_unref(struct fence *f)
{
    if (--f->refs == 0) {
        struct redlock_async *lock = f->batch->lock;
        batch_unref(f->batch);
        pool_give(&lock->pool, f);
    }
}

static const struct key *key_at(const struct fence *f, size_t index)
{
    return &f->batch->keys[f->first + index];
}

static void end(struct fence *f, int64_t number)
{
    bool is_held = true;
    for (size_t i = 0; i < f->count; i++) {
        const struct key *k = key_at(f, i);
        is_held = is_held && k->stage == KEY_HELD && k->lease.state != REDLOCK_STATE_LOST &&
                  clock_boot_us() < k->lease.deadline_us;
    }
    redlock_async_fenced_cb *done = TAKE(f->done);
    done(f->ctx, is_held ? (uint64_t)number : 0);
}

/* ---- one round ---- */

static void on_done(void *ctx, enum status st);

static bool is_present(const struct fence_part *part)
{
    return part->fence->done != NULL && part->round == part->fence->round;
}

static void take_stored(struct fence *f, size_t index, int64_t before)
{
    struct fence_key *k = &f->keys[index];
    if (before < 0) {
        return;
    }
    if (before < f->number) {
        k->stored++;
    } else {
        k->beaten++;
        f->highest = before > f->highest ? before : f->highest;
    }
}

static void on_stored(void *ctx, size_t index, const struct redis_value *v)
{
    struct fence_part *part = ctx;
    struct fence *f = part->fence;
    (void)index;
    for (size_t i = 0;
         is_present(part) && v->type == REDIS_ARRAY && v->len == f->count && i < f->count; i++) {
        const struct redis_value *before = v->items[i];
        take_stored(f, i, before->type == REDIS_INTEGER ? before->integer : NOT_OURS);
    }
}

/* A node without a vote counts for the highest number but not for the quorum, since it may have
 * forgotten. */
static void on_read(void *ctx, size_t index, const struct redis_value *v)
{
    struct fence_part *part = ctx;
    struct fence *f = part->fence;
    (void)index;
    if (!is_present(part) || v->type != REDIS_ARRAY || v->len != f->count) {
        return;
    }
    bool is_readable = true;
    for (size_t i = 0; i < f->count; i++) {
        const struct redis_value *item = v->items[i];
        int64_t number = 0; /* nothing there */
        is_readable = is_readable &&
                      (item->type == REDIS_NIL || (item->type == REDIS_STRING &&
                                                   parse_i64(item->text, item->len, 0, NUMBER_MAX,
                                                             &number, NULL) == STATUS_OK));
        f->highest = number > f->highest ? number : f->highest;
    }
    f->read += is_readable && node_may_vote(&f->batch->lock->nodes[part->node]);
}

static struct fence_part *part_new(struct fence *f, size_t node)
{
    struct fence_part *part = &f->parts[f->round][node];
    *part = (struct fence_part){.fence = f, .node = node, .round = f->round};
    return part;
}

static void count_sent(struct fence *f, enum status st)
{
    if (st == STATUS_OK) {
        f->open++;
        f->refs++;
    }
}

static struct redis_arg counter_arg(const struct fence *f, size_t index)
{
    return redis_bytes(f->keys[index].counter, f->keys[index].counter_len);
}

static enum status read_all(struct fence *f)
{
    struct redlock_async *lock = f->batch->lock;
    struct redis_arg words[1 + REDLOCK_KEYS_MAX] = {redis_word("MGET")};
    for (size_t i = 0; i < f->count; i++) {
        words[1 + i] = counter_arg(f, i);
    }
    buf_reset(&lock->wire);
    enum status st = redis_command(&lock->wire, words, 1 + f->count, NULL);
    for (size_t i = 0; st == STATUS_OK && i < lock->options.node_count; i++) {
        const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                              .len = lock->wire.len,
                                              .reply_count = 1,
                                              .timeout_us = lock->options.node_timeout_us,
                                              .on_reply = on_read,
                                              .on_done = on_done,
                                              .ctx = part_new(f, i)};
        count_sent(f, redis_node_send(lock->nodes[i].redis, &request, NULL));
    }
    return st;
}

static void store_all(struct fence *f)
{
    struct redlock_async *lock = f->batch->lock;
    char number[NUMBER_SIZE];
    int len = snprintf(number, sizeof number, "%" PRId64, f->number);
    struct redis_arg keys[2 * REDLOCK_KEYS_MAX];
    const struct redis_arg args[] = {batch_value(f->batch), redis_bytes(number, (size_t)len),
                                     redis_word(LIFE_MS)};
    for (size_t i = 0; i < f->count; i++) {
        keys[i] = redis_bytes(key_at(f, i)->bytes, key_at(f, i)->len);
        keys[f->count + i] = counter_arg(f, i);
    }
    for (size_t i = 0; i < lock->options.node_count; i++) {
        const struct redis_script_call call = {.script = &script_fence,
                                               .keys = keys,
                                               .key_count = 2 * f->count,
                                               .args = args,
                                               .arg_count = ARRAY_COUNT(args),
                                               .timeout_us = lock->options.node_timeout_us,
                                               .on_reply = on_stored,
                                               .on_done = on_done,
                                               .ctx = part_new(f, i)};
        count_sent(f, redis_node_call(lock->nodes[i].redis, &call, NULL));
    }
}

/* ---- the rounds ---- */

static void next_round(struct fence *f)
{
    if (f->round == ROUNDS_MAX || f->highest >= NUMBER_MAX) {
        end(f, 0);
        return;
    }
    f->round++;
    f->number = ++f->highest;
    f->open = 0;
    for (size_t i = 0; i < f->count; i++) {
        f->keys[i].stored = f->keys[i].beaten = 0;
    }
    store_all(f);
    if (f->open < f->batch->lock->quorum) {
        end(f, 0);
    }
}

static void decide_read(struct fence *f)
{
    size_t quorum = f->batch->lock->quorum;
    if (f->read >= quorum) {
        next_round(f);
    } else if (f->read + f->open < quorum) {
        end(f, 0);
    }
}

static void decide_stored(struct fence *f)
{
    size_t quorum = f->batch->lock->quorum;
    bool is_stored = true;
    bool is_lost = false;   /* for some key, no number can be stored in this round or a later one */
    bool is_beaten = false; /* some key needs a higher number */
    bool is_known = true;   /* and for each key enough nodes have answered */
    for (size_t i = 0; i < f->count; i++) {
        const struct fence_key *k = &f->keys[i];
        is_stored = is_stored && k->stored >= quorum;
        is_lost = is_lost || k->stored + k->beaten + f->open < quorum;
        is_beaten = is_beaten || k->stored + f->open < quorum;
        is_known = is_known && k->stored + k->beaten >= quorum;
    }
    if (is_stored) {
        end(f, f->number);
    } else if (is_lost) {
        end(f, 0);
    } else if (is_beaten && is_known) {
        next_round(f);
    }
}

static void on_done(void *ctx, enum status st)
{
    struct fence_part *part = ctx;
    struct fence *f = part->fence;
    (void)st; /* a failed request has added nothing */
    if (is_present(part)) {
        f->open--;
        if (f->round == 0) {
            decide_read(f);
        } else {
            decide_stored(f);
        }
    }
    fence_unref(f);
}

void fence_report(struct redlock_async *lock)
{
    struct fence *list = TAKE(lock->fences_soon);
    while (list != NULL) {
        struct fence *f = list;
        list = f->next_soon;
        if (f->done != NULL) {
            end(f, 0);
        }
        fence_unref(f);
    }
}

/* Makes a fence with the names of its counters, in one allocation; NULL if memory runs out. */
static struct fence *fence_new(struct redlock_batch *batch, size_t first, size_t count)
{
    struct redlock_async *lock = batch->lock;
    size_t prefix_len = lock->prefix_len;
    size_t bytes = 0;
    for (size_t i = first; i < first + count; i++) {
        bytes += prefix_len + sizeof word + batch->keys[i].len;
    }
    struct fence *f = pool_take(&lock->pool, sizeof *f + count * sizeof f->keys[0] + bytes);
    if (f == NULL) {
        return NULL;
    }
    char *text = (char *)(f->keys + count);
    for (size_t i = 0; i < count; i++) {
        const struct key *k = &batch->keys[first + i];
        f->keys[i] =
            (struct fence_key){.counter = text, .counter_len = prefix_len + sizeof word + k->len};
        memcpy(text, lock->canary_key, prefix_len);
        memcpy(text + prefix_len, word, sizeof word);
        memcpy(text + prefix_len + sizeof word, k->bytes, k->len);
        text += f->keys[i].counter_len;
    }
    f->batch = batch;
    f->first = first;
    f->count = count;
    return f;
}

int redlock_batch_fence(struct redlock_batch *batch, size_t first, size_t count,
                        redlock_async_fenced_cb *done, void *ctx)
{
    assert(count > 0 && first + count <= batch->count);
    struct redlock_async *lock = batch->lock;
    for (size_t i = first; i < first + count; i++) {
        if (batch->keys[i].stage != KEY_HELD || lock->is_closing) {
            return -EINVAL;
        }
    }
    struct fence *f = fence_new(batch, first, count);
    if (f == NULL) {
        return -ENOMEM;
    }
    f->done = done;
    f->ctx = ctx;
    if (read_all(f) != STATUS_OK) {
        pool_give(&lock->pool, f);
        return -ENOMEM;
    }
    batch_ref(batch);
    if (f->open < lock->quorum) { /* reported by the loop, not from inside this call */
        f->refs++;
        f->next_soon = lock->fences_soon;
        lock->fences_soon = f;
        core_soon(lock);
    }
    return 0;
}
