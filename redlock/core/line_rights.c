/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out whether our user may join lines on a node. It does so once per connection, by commands
 * that change nothing, so that a missing right is reported when a client is opened, not when it
 * first waits (lock.L9). */
#include "redlock/core/core.h"

#include <stdio.h>

#define NOBODY "~" /* is in no line: tokens are longer */

/* The commands that the scripts run. The line is that of the empty key, which can't be locked. */
static const char *const commands[][6] = {
    {"EXISTS", "line:"},        {"ZADD", "line:", "XX", "0", NOBODY},
    {"ZREM", "line:", NOBODY},  {"ZRANGE", "line:", "0", "0"},
    {"ZRANK", "line:", NOBODY}, {"ZSCORE", "line:", NOBODY},
    {"PUBLISH", "to:", ""},
};
/* without PUBLISH, offers are only found later (lock.L7) */
#define PUBLISH (ARRAY_COUNT(commands) - 1)

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct node_slot *n = ctx;
    if (v->type == REDIS_ERROR && index == PUBLISH) {
        node_warn(n, v->text);
    } else if (v->type == REDIS_ERROR && line_is_usable_on(n)) {
        (void)line_note_refused(n, v);
    }
}

static enum status put(struct redlock_async *lock, const char *const *command)
{
    char name[PREFIX_MAX + sizeof LINE_WORD];
    struct redis_arg words[ARRAY_COUNT(commands[0])];
    size_t count = 0;
    (void)snprintf(name, sizeof name, "%.*s%s", (int)lock->prefix_len, lock->any_key, command[1]);
    for (; count < ARRAY_COUNT(words) && command[count] != NULL; count++) {
        words[count] = redis_word(count == 1 ? name : command[count]);
    }
    return redis_command(&lock->wire, words, count, NULL);
}

void line_ask_rights(struct node_slot *n)
{
    struct redlock_async *lock = n->lock;
    if (lock->options.no_line) {
        return;
    }
    buf_reset(&lock->wire);
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (put(lock, commands[i]) != STATUS_OK) {
            return;
        }
    }
    const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                          .len = lock->wire.len,
                                          .reply_count = ARRAY_COUNT(commands),
                                          .timeout_us = lock->options.node_timeout_us,
                                          .on_reply = on_reply,
                                          .ctx = n};
    enum status st = redis_node_send(n->redis, &request, NULL);
    (void)st; /* the first round in line would detect it, too */
}
