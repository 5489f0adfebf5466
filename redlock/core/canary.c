/* SPDX-License-Identifier: Apache-2.0
 *
 * A key per node that shows whether the node has lost its keys (lock.N9). A client that finds none
 * sets it: to the server's run_id, the time there, and random characters. It is read after the SETs
 * of each acquisition and in each extension round. A server that has lost its keys since (it was
 * flushed, was a replica for a moment, or has loaded a file) has another canary, or none. Only one
 * loss is not detected: that of a server that loads an older copy of its own memory, including the
 * canary. */
#include "base/bug.h"
#include "base/clock.h"
#include "base/parse.h"
#include "redlock/core/core.h"
#include "redlock/rules/token.h"

#include <stdio.h>

struct redis_arg canary_arg(const struct redlock_async *lock)
{
    return redis_bytes(lock->canary_key, lock->prefix_len + sizeof CANARY_WORD - 1);
}

enum status canary_put(struct redlock_async *lock, struct err *err)
{
    const struct redis_arg words[] = {redis_word("MGET"), canary_arg(lock)};
    return redis_command(&lock->wire, words, ARRAY_COUNT(words), err);
}

bool canary_is_alive(struct node_slot *n, const struct redis_value *v)
{
    bool is_same = v->type == REDIS_STRING && v->len == strlen(n->canary) &&
                   memcmp(v->text, n->canary, v->len) == 0;
    if (n->is_known && !is_same && !SEEDED_BUG(23)) {
        node_forgot(n);
    }
    return n->is_known && !n->has_forgotten;
}

bool canary_take(struct node_slot *n, const struct redis_value *v)
{
    if (v->type != REDIS_ARRAY || v->len != 1) {
        node_note_error(n, v);
        return false;
    }
    return canary_is_alive(n, v->items[0]);
}

/* ---- reading it ---- */

/* Parses "RUN_ID:SECONDS:RANDOM", which must be of this server. */
static bool read_value(const struct node_slot *n, const struct redis_value *v, int64_t *ret_set_s)
{
    size_t len = strlen(n->run_id);
    if (v->type != REDIS_STRING || v->len >= CANARY_SIZE || v->len <= len + 1 ||
        memcmp(v->text, n->run_id, len) != 0 || v->text[len] != ':') {
        return false;
    }
    const char *seconds = v->text + len + 1;
    const char *end = strchr(seconds, ':');
    return end != NULL && parse_i64(seconds, (size_t)(end - seconds), 0, INT64_MAX / US_PER_S,
                                    ret_set_s, NULL) == STATUS_OK;
}

/* Refuses the node, unless it is in temporary trouble: then it is asked again when its pause is
 * over (lock.C8). */
static void take_error(struct node_slot *n, const struct redis_value *v)
{
    struct err err = {0};
    enum redis_error_class class = redis_error_class(v);
    if (class == REDIS_ERROR_NODE) {
        node_note_error(n, v);
        return;
    }
    (void)err_fail(&err, STATUS_INVALID, "the key %s can't be used: %s", n->lock->canary_key,
                   class == REDIS_ERROR_NONE ? "an unexpected reply" : v->text);
    redis_node_refuse(n->redis, &err);
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct node_slot *n = ctx;
    int64_t set_s = 0;
    int64_t now_s = 0;
    (void)index;
    bool is_answer = v->type == REDIS_ARRAY && v->len == 2 && v->items[1]->type == REDIS_STRING &&
                     read_value(n, v->items[0], &set_s) &&
                     parse_i64(v->items[1]->text, v->items[1]->len, 0, INT64_MAX / US_PER_S, &now_s,
                               NULL) == STATUS_OK;
    if (!is_answer) {
        take_error(n, v);
        return;
    }
    bool is_another = n->canary[0] != '\0' && strcmp(n->canary, v->items[0]->text) != 0;
    (void)snprintf(n->canary, sizeof n->canary, "%s", v->items[0]->text);
    node_known(n, is_another, now_s > set_s ? (now_s - set_s - 1) * US_PER_S : 0);
}

static void on_done(void *ctx, enum status st)
{
    struct node_slot *n = ctx;
    (void)st; /* after a lost connection it is asked again when connected */
    n->is_asked_for_canary = false;
}

void canary_ask(struct node_slot *n)
{
    struct redlock_async *lock = n->lock;
    char random[REDLOCK_TOKEN_LEN + 1];
    if (n->is_asked_for_canary || token_draw(lock->prefix, random, NULL) != STATUS_OK) {
        return; /* without randomness no lock can be acquired either (lock.K1) */
    }
    const struct redis_arg key = canary_arg(lock);
    const struct redis_arg args[] = {redis_word(n->run_id), redis_word(random)};
    const struct redis_script_call call = {.script = &script_canary,
                                           .keys = &key,
                                           .key_count = 1,
                                           .args = args,
                                           .arg_count = ARRAY_COUNT(args),
                                           .timeout_us = lock->options.node_timeout_us,
                                           .on_reply = on_reply,
                                           .on_done = on_done,
                                           .ctx = n};
    n->is_asked_for_canary = redis_node_call(n->redis, &call, NULL) == STATUS_OK;
}
