/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out who holds a key and how many wait for it: a GET, a PTTL and a ZCARD per node. */
#include "redlock/core/core.h"

#include <assert.h>

static_assert(sizeof((struct redlock_holding *)NULL)->label == REDLOCK_LABEL_LEN_MAX + 1,
              "there is room for any label");

enum reply { REPLY_OWNER, REPLY_TTL, REPLY_WAITING };

struct inspect_part { /* the context of one node's request */
    struct inspect *inspect;
    size_t node;
};

struct inspect {
    struct inspect *next_over;
    struct redlock_async *lock;
    size_t reply_count; /* per node */
    size_t outstanding;
    redlock_async_inspected_cb *done;
    void *ctx;
    struct inspect_part parts[REDLOCK_NODES_MAX];
    struct redlock_holding holdings[REDLOCK_NODES_MAX];
};

/* Shows the start of a token: enough to distinguish owners, but never enough to release their lock
 * (lock.K1). Values of other clients may be any bytes. */
static void show_start(struct redlock_holding *h, const struct redis_value *v)
{
    size_t len = v->len / 2 < sizeof h->holder - 1 ? v->len / 2 : sizeof h->holder - 1;
    value_show(v->text, len, h->holder);
}

static void take_owner(struct redlock_holding *h, const struct redis_value *v)
{
    if (v->type == REDIS_NIL) {
        h->vote = REDLOCK_VOTE_OK;
    } else if (v->type == REDIS_STRING) {
        h->vote = REDLOCK_VOTE_REFUSED;
        show_start(h, v);
        value_label(v->text, v->len, h->label);
    } else if (votes_is_other_type(v)) {
        h->vote = REDLOCK_VOTE_REFUSED;
    }
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct inspect_part *part = ctx;
    struct redlock_holding *h = &part->inspect->holdings[part->node];
    if (index == REPLY_OWNER) {
        take_owner(h, v);
    } else if (index == REPLY_TTL && v->type == REDIS_INTEGER) {
        /* −2: the key has ended between the two commands */
        h->ttl_ms = v->integer == -2 ? 0 : v->integer;
    } else if (index == REPLY_WAITING && v->type == REDIS_INTEGER && v->integer > 0) {
        h->waiting = (size_t)v->integer;
    }
}

static void end(struct inspect *i)
{
    i->done(i->ctx, i->holdings);
    pool_give(&i->lock->pool, i);
}

static void on_done(void *ctx, enum status st)
{
    struct inspect_part *part = ctx;
    struct inspect *i = part->inspect;
    if (st != STATUS_OK) {
        i->holdings[part->node] =
            (struct redlock_holding){.vote = REDLOCK_VOTE_ERROR, .ttl_ms = -1};
    }
    if (--i->outstanding == 0) {
        end(i);
    }
}

static void ask(struct inspect *i, size_t node)
{
    struct redlock_async *lock = i->lock;
    struct redlock_holding *h = &i->holdings[node];
    struct redis_node *redis = lock->nodes[node].redis;
    *h = (struct redlock_holding){.ttl_ms = -1};
    if (!redis_node_is_up(redis)) {
        h->vote = REDLOCK_VOTE_DOWN;
        return;
    }
    h->vote = REDLOCK_VOTE_ERROR; /* replaced when it answers */
    i->parts[node] = (struct inspect_part){.inspect = i, .node = node};
    const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                          .len = lock->wire.len,
                                          .reply_count = i->reply_count,
                                          .timeout_us = lock->options.node_timeout_us,
                                          .on_reply = on_reply,
                                          .on_done = on_done,
                                          .ctx = &i->parts[node]};
    i->outstanding += redis_node_send(redis, &request, NULL) == STATUS_OK;
}

/* Formats the commands, in the order of enum reply; *ret_count is their number. */
static enum status format(struct redlock_async *lock, const char *key, size_t key_len,
                          size_t *ret_count)
{
    char line[PREFIX_MAX + sizeof LINE_WORD + REDLOCK_KEY_LEN_MAX];
    size_t line_len = lock->prefix_len + sizeof LINE_WORD - 1 + key_len;
    const struct redis_arg get[] = {redis_word("GET"), redis_bytes(key, key_len)};
    const struct redis_arg pttl[] = {redis_word("PTTL"), redis_bytes(key, key_len)};
    const struct redis_arg zcard[] = {redis_word("ZCARD"), redis_bytes(line, line_len)};
    buf_reset(&lock->wire);
    enum status st = redis_command(&lock->wire, get, ARRAY_COUNT(get), NULL);
    if (st == STATUS_OK) {
        st = redis_command(&lock->wire, pttl, ARRAY_COUNT(pttl), NULL);
    }
    *ret_count = REPLY_TTL + 1;
    if (st == STATUS_OK && !lock->options.no_line) {
        memcpy(line, lock->any_key, lock->prefix_len);
        memcpy(line + lock->prefix_len, LINE_WORD, sizeof LINE_WORD - 1);
        memcpy(line + line_len - key_len, key, key_len);
        st = redis_command(&lock->wire, zcard, ARRAY_COUNT(zcard), NULL);
        *ret_count = REPLY_WAITING + 1;
    }
    return st;
}

int redlock_async_inspect(struct redlock_async *lock, const char *key, size_t key_len,
                          redlock_async_inspected_cb *done, void *ctx)
{
    if (key_len == 0 || key_len > REDLOCK_KEY_LEN_MAX || lock->is_closing) {
        return -EINVAL;
    }
    struct inspect *i = pool_take(&lock->pool, sizeof *i);
    if (i == NULL || format(lock, key, key_len, &i->reply_count) != STATUS_OK) {
        pool_give(&lock->pool, i);
        return -ENOMEM;
    }
    i->lock = lock;
    i->done = done;
    i->ctx = ctx;
    for (size_t node = 0; node < lock->options.node_count; node++) {
        ask(i, node);
    }
    if (i->outstanding == 0) { /* reported by the loop, not from inside this call */
        i->next_over = lock->inspects_over;
        lock->inspects_over = i;
        core_soon(lock);
    }
    return 0;
}

void inspect_report(struct redlock_async *lock)
{
    struct inspect *list = TAKE(lock->inspects_over);
    while (list != NULL) {
        struct inspect *i = list;
        list = i->next_over;
        end(i);
    }
}
