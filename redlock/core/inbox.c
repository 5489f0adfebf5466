/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages from the nodes to the waiters of this client, and signs of life to the nodes: on each
 * node one session, which each round of a waiter and each refresh renews, and one channel,
 * "<prefix>to:" and the start of this client's tokens. A lost message costs time, but no place in
 * the line: the next refresh finds what the message said (lock.L6, L7). */
#include "base/clock.h"
#include "base/parse.h"
#include "redis/subscriber.h"
#include "redlock/core/line_scripts.h"
#include "redlock/core/wait.h"

#include <stdio.h>

#define LINGER_US (5 * US_PER_S)       /* connections stay open this long after the last waiter */
#define REFRESH_US (1300 * US_PER_MS)  /* a session covers two intervals */
#define REFRESH_MAX_US (30 * US_PER_S) /* longest interval for one place, if there are many */
#define REFRESH_US_PER_WAIT 300
#define REFRESH_KEYS 256 /* keys per script */
#define CHANNEL_SIZE (PREFIX_MAX + REDLOCK_PREFIX_LEN + 4)
#define MS_MAX 3600000

struct inbox_node {
    struct inbox *inbox;
    size_t index;
    struct redis_subscriber *subscriber; /* NULL = closed */
};

struct inbox {
    struct redlock_async *lock;
    struct inbox_node nodes[REDLOCK_NODES_MAX];
    char channel[CHANNEL_SIZE];
    int64_t refresh_at_us;
    int64_t close_at_us; /* unless a waiter comes; INT64_MAX = one is there, or closed */
};

/* ---- messages ---- */

/* Parses "MS:VALUE". */
static void on_message(void *ctx, const char *payload, size_t payload_len)
{
    const struct inbox_node *n = ctx;
    int64_t ms = 0;
    const char *colon = memchr(payload, ':', payload_len);
    if (colon == NULL || payload_len - (size_t)(colon + 1 - payload) != n->inbox->lock->value_len ||
        parse_i64(payload, (size_t)(colon - payload), 0, MS_MAX, &ms, NULL) != STATUS_OK) {
        return;
    }
    line_told(n->inbox->lock, n->index, colon + 1, ms);
}

/* Refreshes at once, since messages from before the subscription were missed. */
static void on_subscribed(void *ctx)
{
    const struct inbox_node *n = ctx;
    n->inbox->refresh_at_us = clock_boot_us();
    core_wake_at(n->inbox->lock, n->inbox->refresh_at_us);
}

/* Warns only: refreshes find offers too, only later. */
static void on_refused(void *ctx, const struct err *why)
{
    const struct inbox_node *n = ctx;
    node_warn(&n->inbox->lock->nodes[n->index], why->msg);
}

/* ---- refreshes ---- */

struct refresh { /* one node's */
    struct redlock_async *lock;
    size_t node;
    size_t count;
    char tokens[][REDLOCK_TOKEN_LEN + 1];
};

static void on_refreshed(void *ctx, size_t index, const struct redis_value *v)
{
    const struct refresh *r = ctx;
    (void)index;
    if (v->type != REDIS_ARRAY || v->len != r->count) {
        enum redis_error_class class = redis_error_class(v);
        if (class == REDIS_ERROR_NODE) {
            node_note_error(&r->lock->nodes[r->node], v);
        }
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        if (v->items[i]->type == REDIS_INTEGER && v->items[i]->integer <= MS_MAX) {
            line_told(r->lock, r->node, r->tokens[i], v->items[i]->integer);
        }
    }
}

static void on_refresh_done(void *ctx, enum status st)
{
    struct refresh *r = ctx;
    (void)st; /* the next refresh follows soon */
    pool_give(&r->lock->pool, r);
}

static void send_refresh(struct redlock_async *lock, size_t node, struct redlock_wait *const *waits,
                         size_t count)
{
    struct redis_arg keys[REFRESH_KEYS];
    struct redis_arg args[4 + 2 * REFRESH_KEYS];
    char scores[REFRESH_KEYS][TTL_TEXT_SIZE];
    char offer[TTL_TEXT_SIZE];
    struct refresh *r = pool_take(&lock->pool, sizeof *r + count * sizeof r->tokens[0]);
    if (r == NULL) {
        return;
    }
    r->lock = lock;
    r->node = node;
    r->count = count;
    line_print_offer(lock, offer);
    args[0] = line_prefix_arg(lock);
    args[1] = redis_bytes(lock->prefix, REDLOCK_PREFIX_LEN);
    args[2] = redis_word(LINE_SESSION_MS);
    args[3] = redis_word(offer);
    for (size_t i = 0; i < count; i++) {
        const struct redlock_async_key *key = &waits[i]->request.keys[waits[i]->place.key];
        const char *value = waits[i]->place.value;
        memcpy(r->tokens[i], value, REDLOCK_TOKEN_LEN);
        core_print_i64(scores[i], waits[i]->score);
        keys[i] = redis_bytes(key->bytes, key->len);
        args[4 + 2 * i] = redis_bytes(value, lock->value_len);
        args[5 + 2 * i] = redis_word(scores[i]);
    }
    const struct redis_script_call call = {.script = &script_refresh,
                                           .keys = keys,
                                           .key_count = count,
                                           .args = args,
                                           .arg_count = 4 + 2 * count,
                                           .timeout_us = lock->options.node_timeout_us,
                                           .on_reply = on_refreshed,
                                           .on_done = on_refresh_done,
                                           .ctx = r};
    if (redis_node_call(lock->nodes[node].redis, &call, NULL) != STATUS_OK) {
        pool_give(&lock->pool, r);
    }
}

/* Refreshes the places that were refreshed longest ago, as many as are needed to reach each one in
 * time; and the session. */
static void refresh(struct inbox *inbox)
{
    struct redlock_async *lock = inbox->lock;
    struct waits *waits = lock->waits;
    struct redlock_wait *some[REFRESH_KEYS];
    int64_t turn_us =
        line_between((int64_t)waits->in_line * REFRESH_US_PER_WAIT, REFRESH_US, REFRESH_MAX_US);
    size_t left = (waits->in_line * REFRESH_US + (size_t)turn_us - 1) / (size_t)turn_us;
    while (left > 0) {
        size_t count = 0;
        for (; count < REFRESH_KEYS && left > 0; left--) {
            struct redlock_wait *w = waits->first_in_line;
            line_unlink(w);
            line_append(w);
            if (w->place.asked != NULL) { /* otherwise its first round is in flight */
                some[count++] = w;
            }
        }
        for (size_t i = 0; i < lock->options.node_count; i++) {
            if (node_may_vote(&lock->nodes[i])) {
                send_refresh(lock, i, some, count);
            }
        }
    }
}

/* ---- connections ---- */

static void close_all(struct inbox *inbox)
{
    for (size_t i = 0; i < inbox->lock->options.node_count; i++) {
        redis_subscriber_close(TAKE(inbox->nodes[i].subscriber));
    }
    inbox->close_at_us = INT64_MAX;
}

static bool open_one(struct inbox *inbox, size_t node)
{
    struct redlock_async *lock = inbox->lock;
    struct inbox_node *n = &inbox->nodes[node];
    const struct redis_subscriber_options options = {
        .loop = lock->options.loop,
        .endpoint = *redis_node_endpoint(lock->nodes[node].redis),
        .tls = lock->tls,
        .channel = inbox->channel,
        .channel_len = strlen(inbox->channel),
        .connect_timeout_us = lock->options.node_timeout_us * 5,
        .on_message = on_message,
        .on_subscribed = on_subscribed,
        .on_refused = on_refused,
        .ctx = n};
    if (n->subscriber != NULL) {
        return true;
    }
    *n = (struct inbox_node){.inbox = inbox, .index = node};
    return redis_subscriber_open(&options, &n->subscriber, NULL) == STATUS_OK;
}

static bool open_all(struct inbox *inbox)
{
    for (size_t i = 0; i < inbox->lock->options.node_count; i++) {
        if (!open_one(inbox, i)) {
            close_all(inbox);
            return false;
        }
    }
    return true;
}

enum status inbox_set_password(struct redlock_async *lock, const char *password, struct err *err)
{
    struct inbox *inbox = lock->waits != NULL ? lock->waits->inbox : NULL;
    enum status st = STATUS_OK;
    for (size_t i = 0; inbox != NULL && i < lock->options.node_count && st == STATUS_OK; i++) {
        if (inbox->nodes[i].subscriber != NULL) {
            st = redis_subscriber_set_password(inbox->nodes[i].subscriber, password, err);
        }
    }
    return st;
}

bool inbox_open(struct redlock_async *lock)
{
    struct inbox *inbox = lock->waits->inbox;
    int64_t now_us = clock_boot_us();
    if (inbox == NULL) {
        inbox = calloc(1, sizeof *inbox);
        if (inbox == NULL) {
            return false;
        }
        inbox->lock = lock;
        (void)snprintf(inbox->channel, sizeof inbox->channel, "%.*sto:%s", (int)lock->prefix_len,
                       lock->any_key, lock->prefix);
        lock->waits->inbox = inbox;
    }
    if (!open_all(inbox)) {
        return false;
    }
    /* if others are in line, their refreshes continue; a first waiter's round renews the session */
    if (lock->waits->in_line == 0) {
        inbox->refresh_at_us = now_us + REFRESH_US;
        core_wake_at(lock, inbox->refresh_at_us);
    }
    inbox->close_at_us = INT64_MAX;
    return true;
}

void inbox_nobody_waits(struct redlock_async *lock)
{
    struct inbox *inbox = lock->waits->inbox;
    if (!lock->is_closing) {
        inbox->close_at_us = clock_boot_us() + LINGER_US;
        core_wake_at(lock, inbox->close_at_us);
    }
}

int64_t inbox_tick(struct redlock_async *lock, int64_t now_us)
{
    struct inbox *inbox = lock->waits != NULL ? lock->waits->inbox : NULL;
    if (inbox == NULL) {
        return INT64_MAX;
    }
    if (now_us >= inbox->close_at_us) {
        close_all(inbox);
    }
    if (lock->waits->in_line == 0) {
        return inbox->close_at_us;
    }
    if (now_us >= inbox->refresh_at_us) {
        clocks_ask(lock, now_us);
        refresh(inbox);
        inbox->refresh_at_us = now_us + REFRESH_US;
    }
    return inbox->refresh_at_us;
}

void inbox_close(struct redlock_async *lock)
{
    if (lock->waits != NULL && lock->waits->inbox != NULL) {
        close_all(lock->waits->inbox);
    }
}

void inbox_free(struct redlock_async *lock)
{
    if (lock->waits != NULL) {
        free(TAKE(lock->waits->inbox));
    }
}
