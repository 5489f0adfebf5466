/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that rise with every grant of a key, for resources that can refuse a lower one. Each node
 * keeps a counter "key:fence", without expiry. A holder reads them from a quorum, takes the highest
 * + 1, and stores it by a script that does so only where its own token is in the key and a lower
 * number in the counter. The number is valid when a quorum has stored it; a node that knew a number
 * as high or higher did not, and makes the holder take a higher one.
 *
 * Why it rises: of two holders A, then B, each stored its number on a quorum, so on some node in
 * common. There A's token was in the key before B's, and tokens don't come back (but for lock.E6,
 * while A has its quorum, hence before B). So when B stored, A's number was there, and the script
 * took B's only because it was higher. A that stores so late that B came first has no lease any
 * more, and gets no number. What was read in the first round only makes a good start.
 *
 * What breaks it: nodes that forget. Let A have stored on s nodes, and B have an answer (of reading
 * or storing) from r: when s + r − N of them forget in between, B's number may be as low as A's.
 * So with all nodes up any minority may forget; with as many down as may be, none may. After a
 * majority forgot nothing is known. Use masters that don't: appendonly yes, appendfsync always.
 *
 * A counter is a key like any other: "job:fence" can't be locked once "job" has been fenced. */
#include "base/clock.h"
#include "base/parse.h"
#include "redlock/core.h"
#include "redlock/scripts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define ROUNDS_MAX 5 /* of storing; each but the first because another holder's number came up */
#define NUMBER_MAX (INT64_C(1) << 53) /* Lua counts in doubles */
#define SUFFIX ":fence"
#define SUFFIX_LEN (sizeof SUFFIX - 1)
#define NUMBER_SIZE 24
#define COMMAND_BYTES_MAX (REDLOCK_KEY_LEN_MAX + 64)

enum { ANSWER_NOT_OURS = -1, ANSWER_NONE = -2 };

struct fence_part { /* the context of one node's request */
    struct fence *fence;
    size_t node;
    size_t round;
    int64_t answer; /* the node's number before, or one of the above */
};

struct fence {
    struct fence *next_soon;
    struct redlock_batch *batch; /* referred to */
    size_t index;
    redlock_async_fenced_cb *done; /* NULL once called */
    void *ctx;
    size_t refs;  /* requests under way, and the list of those to be told soon */
    size_t round; /* 0 = reading */
    int64_t number;
    int64_t highest;
    size_t good; /* nodes in this round: read, or stored */
    size_t beaten;
    size_t open;
    char counter[REDLOCK_KEY_LEN_MAX + SUFFIX_LEN];
    size_t counter_len;
    struct fence_part parts[1 + ROUNDS_MAX][REDLOCK_NODES_MAX];
};

static void fence_unref(struct fence *f)
{
    if (--f->refs == 0) {
        struct redlock_async *lock = f->batch->lock;
        batch_unref(f->batch);
        pool_give(&lock->pool, f);
    }
}

static void end(struct fence *f, int64_t number)
{
    const struct key *k = &f->batch->keys[f->index];
    bool is_held = k->stage == KEY_HELD && k->lease.state != REDLOCK_STATE_LOST &&
                   clock_boot_us() < k->lease.deadline_us;
    redlock_async_fenced_cb *done = TAKE(f->done);
    done(f->ctx, is_held ? (uint64_t)number : 0);
}

/* ---- one round ---- */

static void on_done(void *ctx, enum status st);

static void on_stored(void *ctx, size_t index, const struct redis_value *v)
{
    struct fence_part *part = ctx;
    (void)index;
    if (v->type == REDIS_INTEGER && v->integer >= ANSWER_NOT_OURS) {
        part->answer = v->integer;
    }
}

static void on_read(void *ctx, size_t index, const struct redis_value *v)
{
    struct fence_part *part = ctx;
    int64_t number = 0; /* nothing there */
    (void)index;
    if (v->type == REDIS_NIL ||
        (v->type == REDIS_STRING &&
         parse_i64(v->text, v->len, 0, NUMBER_MAX, &number, NULL) == STATUS_OK)) {
        part->answer = number;
    }
}

static struct fence_part *part_new(struct fence *f, size_t node)
{
    struct fence_part *part = &f->parts[f->round][node];
    *part = (struct fence_part){.fence = f, .node = node, .round = f->round, .answer = ANSWER_NONE};
    return part;
}

static void count_sent(struct fence *f, enum status st)
{
    if (st == STATUS_OK) {
        f->open++;
        f->refs++;
    }
}

static enum status read_all(struct fence *f, struct err *err)
{
    struct redlock_async *lock = f->batch->lock;
    autobuf struct buf out = BUF_INIT(COMMAND_BYTES_MAX);
    const struct redis_arg words[] = {{.bytes = "GET", .len = 3},
                                      {.bytes = f->counter, .len = f->counter_len}};
    enum status st = redis_command(&out, words, ARRAY_COUNT(words), err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < lock->options.node_count; i++) {
        const struct redis_request request = {.bytes = buf_at(&out),
                                              .len = out.len,
                                              .reply_count = 1,
                                              .timeout_us = lock->options.node_timeout_us,
                                              .on_reply = on_read,
                                              .on_done = on_done,
                                              .ctx = part_new(f, i)};
        count_sent(f, redis_node_send(lock->nodes[i].redis, &request, NULL));
    }
    return STATUS_OK;
}

static void store_all(struct fence *f)
{
    struct redlock_async *lock = f->batch->lock;
    const struct key *k = &f->batch->keys[f->index];
    char number[NUMBER_SIZE];
    int len = snprintf(number, sizeof number, "%" PRId64, f->number);
    const struct redis_arg keys[] = {{.bytes = k->bytes, .len = k->len},
                                     {.bytes = f->counter, .len = f->counter_len}};
    const struct redis_arg args[] = {{.bytes = f->batch->token, .len = REDLOCK_TOKEN_LEN},
                                     {.bytes = number, .len = (size_t)len}};
    for (size_t i = 0; i < lock->options.node_count; i++) {
        const struct redis_script_call call = {.script = &script_fence,
                                               .keys = keys,
                                               .key_count = ARRAY_COUNT(keys),
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
    f->good = f->beaten = f->open = 0;
    store_all(f);
    if (f->open < f->batch->lock->quorum) {
        end(f, 0);
    }
}

/* What a node says that has no vote counts towards the highest, not towards the quorum: it may have
 * forgotten. */
static void take_answer(struct fence *f, const struct fence_part *part)
{
    if (part->answer < 0) {
        return;
    }
    if (part->answer > f->highest) {
        f->highest = part->answer;
    }
    if (f->round == 0) {
        f->good += node_may_vote(&f->batch->lock->nodes[part->node]);
    } else if (part->answer < f->number) {
        f->good++;
    } else {
        f->beaten++;
    }
}

static void decide(struct fence *f)
{
    size_t quorum = f->batch->lock->quorum;
    if (f->good >= quorum) {
        if (f->round == 0) {
            next_round(f);
        } else {
            end(f, f->number);
        }
    } else if (f->good + f->beaten + f->open < quorum) {
        end(f, 0);
    } else if (f->good + f->open < quorum && f->good + f->beaten >= quorum) {
        next_round(f);
    }
}

static void on_done(void *ctx, enum status st)
{
    struct fence_part *part = ctx;
    struct fence *f = part->fence;
    if (f->done != NULL && part->round == f->round) {
        f->open--;
        if (st == STATUS_OK) {
            take_answer(f, part);
        }
        decide(f);
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

int redlock_batch_fence(struct redlock_batch *batch, size_t index, redlock_async_fenced_cb *done,
                        void *ctx)
{
    assert(index < batch->count);
    struct redlock_async *lock = batch->lock;
    const struct key *k = &batch->keys[index];
    if (k->stage != KEY_HELD || lock->is_closing) {
        return -EINVAL;
    }
    struct fence *f = pool_take(&lock->pool, sizeof *f);
    if (f == NULL) {
        return -ENOMEM;
    }
    f->batch = batch;
    f->index = index;
    f->done = done;
    f->ctx = ctx;
    f->counter_len = k->len + SUFFIX_LEN;
    memcpy(f->counter, k->bytes, k->len);
    memcpy(f->counter + k->len, SUFFIX, SUFFIX_LEN);
    if (read_all(f, NULL) != STATUS_OK) {
        pool_give(&lock->pool, f);
        return -ENOMEM;
    }
    batch_ref(batch);
    if (f->open < lock->quorum) { /* told by the loop, not from here */
        f->refs++;
        f->next_soon = lock->fences_soon;
        lock->fences_soon = f;
        core_soon(lock);
    }
    return 0;
}
