/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes a key away from its holder, for operators (lock.R8). Each node is asked for the value, and
 * then to delete or hand over the key if it still has that value: a value that was not read before
 * is never removed. */
#include "base/clock.h"
#include "redlock/core/core.h"
#include "redlock/core/line_scripts.h"
#include "redlock/core/scripts.h"

struct break_part { /* the context of one node's requests */
    struct breaking *breaking;
    size_t node;
    unsigned open;   /* requests: reading the value, and what follows from it */
    bool hands_over; /* uses the script for a line, not a plain release */
    bool is_counted;
};

struct breaking {
    struct breaking *next_over;
    struct redlock_async *lock;
    int64_t t0_us;
    size_t open;   /* nodes */
    size_t teller; /* this node notifies the waiter after the head of the line (lock.L7) */
    struct redlock_released released;
    redlock_async_released_cb *done;
    void *ctx;
    struct break_part parts[REDLOCK_NODES_MAX];
    size_t key_len;
    char key[];
};

static void count(struct break_part *part, unsigned *what)
{
    *what += !part->is_counted;
    part->is_counted = true;
}

static void end(struct breaking *b)
{
    b->done(b->ctx, &b->released);
    pool_give(&b->lock->pool, b);
}

static void on_done(void *ctx, enum status st)
{
    struct break_part *part = ctx;
    struct breaking *b = part->breaking;
    (void)st;
    if (--part->open > 0) {
        return;
    }
    count(part, &b->released.unknown); /* unless the node's answer was counted */
    if (--b->open == 0) {
        end(b);
    }
}

static bool look(struct break_part *part);

static int64_t rest_us(const struct breaking *b)
{
    int64_t us = b->t0_us + b->lock->options.node_timeout_us - clock_boot_us();
    return us > US_PER_MS ? us : US_PER_MS;
}

/* If the script for a line is refused, tries again without handing over (lock.L9). */
static void on_error(struct break_part *part, const struct redis_value *v)
{
    struct node_slot *n = &part->breaking->lock->nodes[part->node];
    if (part->hands_over && line_note_refused(n, v)) {
        (void)look(part);
    } else {
        node_note_error(n, v);
    }
}

/* script_release and script_leave both reply with how many keys were ours first, and the numbers of
 * the other keys last. */
static void on_taken(void *ctx, size_t index, const struct redis_value *v)
{
    struct break_part *part = ctx;
    struct redlock_released *r = &part->breaking->released;
    (void)index;
    if (v->type != REDIS_ARRAY || v->len == 0 || v->items[0]->type != REDIS_INTEGER ||
        v->items[v->len - 1]->type != REDIS_INTEGER) {
        on_error(part, v);
    } else if (v->items[0]->integer == 1) {
        count(part, &r->deleted);
    } else {
        count(part, v->items[v->len - 1]->integer > 0 ? &r->stolen : &r->missing);
    }
}

static void take(struct break_part *part, const struct redis_value *owner)
{
    struct breaking *b = part->breaking;
    struct redlock_async *lock = b->lock;
    bool has_line = line_is_usable_on(&lock->nodes[part->node]);
    char offer[TTL_TEXT_SIZE];
    part->hands_over = has_line;
    line_print_offer(lock, offer);
    const struct redis_arg keys[] = {redis_bytes(b->key, b->key_len),
                                     redis_bytes(lock->any_key, lock->prefix_len + ANY_WORD_LEN)};
    const struct redis_arg value = redis_bytes(owner->text, owner->len);
    const struct redis_arg args[] = {line_prefix_arg(lock), redis_word(offer), redis_word("0"),
                                     redis_word(part->node == b->teller ? "1" : "0"), value};
    const struct redis_script_call call = {.script = has_line ? &script_leave : &script_release,
                                           .keys = keys,
                                           .key_count = has_line ? ARRAY_COUNT(keys) : 1,
                                           .args = has_line ? args : &value,
                                           .arg_count = has_line ? ARRAY_COUNT(args) : 1,
                                           .timeout_us = rest_us(b),
                                           .on_reply = on_taken,
                                           .on_done = on_done,
                                           .ctx = part};
    part->open += redis_node_call(lock->nodes[part->node].redis, &call, NULL) == STATUS_OK;
}

/* A key of another type gives an error, and stays. */
static void on_owner(void *ctx, size_t index, const struct redis_value *v)
{
    struct break_part *part = ctx;
    struct breaking *b = part->breaking;
    (void)index;
    if (v->type == REDIS_NIL) {
        count(part, &b->released.missing);
    } else if (v->type == REDIS_STRING) {
        take(part, v);
    } else if (!votes_is_other_type(v)) {
        node_note_error(&b->lock->nodes[part->node], v);
    }
}

/* Returns false if it can't be sent. */
static bool look(struct break_part *part)
{
    struct breaking *b = part->breaking;
    struct redlock_async *lock = b->lock;
    const struct redis_arg get[] = {redis_word("GET"), redis_bytes(b->key, b->key_len)};
    buf_reset(&lock->wire);
    if (redis_command(&lock->wire, get, ARRAY_COUNT(get), NULL) != STATUS_OK) {
        return false;
    }
    const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                          .len = lock->wire.len,
                                          .reply_count = 1,
                                          .timeout_us = rest_us(b),
                                          .on_reply = on_owner,
                                          .on_done = on_done,
                                          .ctx = part};
    bool is_sent = redis_node_send(lock->nodes[part->node].redis, &request, NULL) == STATUS_OK;
    part->open += is_sent;
    return is_sent;
}

int redlock_async_break(struct redlock_async *lock, const char *key, size_t key_len,
                        redlock_async_released_cb *done, void *ctx)
{
    if (key_len == 0 || key_len > REDLOCK_KEY_LEN_MAX || lock->is_closing) {
        return -EINVAL;
    }
    struct breaking *b = pool_take(&lock->pool, sizeof *b + key_len);
    if (b == NULL) {
        return -ENOMEM;
    }
    b->lock = lock;
    b->t0_us = clock_boot_us();
    b->teller = (size_t)rand_below(&lock->rand, (int64_t)lock->options.node_count);
    b->done = done;
    b->ctx = ctx;
    b->key_len = key_len;
    memcpy(b->key, key, key_len);
    for (size_t node = 0; node < lock->options.node_count; node++) {
        b->parts[node] = (struct break_part){.breaking = b, .node = node};
        if (look(&b->parts[node])) {
            b->open++;
        } else {
            b->released.unknown++;
        }
    }
    if (b->open == 0) { /* report from the loop, not from inside this call */
        b->next_over = lock->breaks_over;
        lock->breaks_over = b;
        core_soon(lock);
    }
    return 0;
}

void break_report(struct redlock_async *lock)
{
    struct breaking *list = TAKE(lock->breaks_over);
    while (list != NULL) {
        struct breaking *b = list;
        list = b->next_over;
        end(b);
    }
}
