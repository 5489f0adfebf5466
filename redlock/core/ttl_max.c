/* SPDX-License-Identifier: Apache-2.0
 *
 * T_max, the longest ttl that any client uses, is agreed on through the nodes (lock.N10): a key on
 * each of them holds the greatest value that a client has sent. The key ends a minute after the
 * locks that it covers, unless their client sends it again. */
#include "base/clock.h"
#include "base/parse.h"
#include "redlock/core/core.h"
#include "redlock/core/scripts.h"
#include "redlock/rules/lease.h"

#include <inttypes.h>
#include <stdio.h>

#define RENEW_US (30 * US_PER_S) /* half of the time for which it is kept after the locks' end */

static struct redis_arg key_arg(const struct redlock_async *lock)
{
    return redis_bytes(lock->ttl_max_key, lock->prefix_len + sizeof TTL_MAX_WORD - 1);
}

static int64_t own_ms(const struct node_slot *n)
{
    return n->lock->options.ttl_max_us / US_PER_MS;
}

static void take(struct node_slot *n, int64_t ms)
{
    if (ms > 0 && ms <= LEASE_TTL_MAX_US / US_PER_MS) {
        node_said_ttl_max(n, ms * US_PER_MS);
    }
}

/* If our user may not use the key, each client only knows its own T_max. */
static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    (void)index;
    if (v->type == REDIS_INTEGER) {
        take(ctx, v->integer);
    }
}

void ttl_max_ask(struct node_slot *n)
{
    char ms[24];
    (void)snprintf(ms, sizeof ms, "%" PRId64, own_ms(n));
    const struct redis_arg key = key_arg(n->lock);
    const struct redis_arg own = redis_word(ms);
    const struct redis_script_call call = {.script = &script_ttl_max,
                                           .keys = &key,
                                           .key_count = 1,
                                           .args = &own,
                                           .arg_count = 1,
                                           .timeout_us = n->lock->options.node_timeout_us,
                                           .on_reply = on_reply,
                                           .ctx = n};
    /* otherwise the next check does it */
    if (redis_node_call(n->redis, &call, NULL) == STATUS_OK) {
        n->ttl_max_told_us = clock_boot_us();
    }
}

enum status ttl_max_put(const struct redlock_async *lock, struct buf *out)
{
    const struct redis_arg words[] = {redis_word("MGET"), key_arg(lock)};
    return redis_command(out, words, ARRAY_COUNT(words), NULL);
}

void ttl_max_take(struct node_slot *n, const struct redis_value *v)
{
    int64_t ms = 0;
    if (v->type != REDIS_ARRAY || v->len != 1) {
        return;
    }
    const struct redis_value *kept = v->items[0];
    bool is_number =
        kept->type == REDIS_STRING &&
        parse_i64(kept->text, kept->len, 1, LEASE_TTL_MAX_US / US_PER_MS, &ms, NULL) == STATUS_OK;
    if (is_number) {
        take(n, ms);
    }
    bool is_told = ms == own_ms(n) && clock_boot_us() - n->ttl_max_told_us < RENEW_US;
    if (ms <= own_ms(n) && !is_told) {
        ttl_max_ask(n);
    }
}
