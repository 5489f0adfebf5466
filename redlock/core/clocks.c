/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the nodes for their wall clocks while leases are kept, since their keys end by these clocks
 * (lock.N4). */
#include "base/clock.h"
#include "base/parse.h"
#include "redlock/core/core.h"

#define SAMPLES_PER_TTL 10 /* at most */

static const char question[] = "*1\r\n$4\r\nTIME\r\n";

static bool read_number(const struct redis_value *v, int64_t max, int64_t *ret)
{
    return v->type == REDIS_STRING && parse_i64(v->text, v->len, 0, max, ret, NULL) == STATUS_OK;
}

/* Parses seconds and microseconds. If our user has no right to ask (NOPERM), there is no sample. */
static bool read_time(const struct redis_value *v, int64_t *ret_us)
{
    int64_t s = 0;
    int64_t us = 0;
    if (v->type != REDIS_ARRAY || v->len != 2 ||
        !read_number(v->items[0], INT64_MAX / US_PER_S / 2, &s) ||
        !read_number(v->items[1], US_PER_S - 1, &us)) {
        return false;
    }
    *ret_us = s * US_PER_S + us;
    return true;
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct node_slot *n = ctx;
    const struct redlock_async_options *o = &n->lock->options;
    struct clock_sample sample = {.sent_us = n->asked_us, .received_us = clock_boot_us()};
    (void)index;
    if (!read_time(v, &sample.server_us)) {
        return;
    }
    int64_t mid_us = (sample.received_us - sample.sent_us) / 2;
    n->clock_offset_us = sample.server_us + mid_us - clock_wall_us();
    int64_t step_us =
        clockwatch_take(&n->clock, &sample, lease_drift_us(o->ttl_us, o->drift_ppm), o->drift_ppm);
    if (step_us != 0) {
        node_clock_stepped(n, step_us);
    }
}

static void on_done(void *ctx, enum status st)
{
    struct node_slot *n = ctx;
    (void)st;
    n->is_asked = false;
}

void clocks_ask(struct redlock_async *lock, int64_t now_us)
{
    if (lock->clocks_us != 0 && now_us - lock->clocks_us < lock->options.ttl_us / SAMPLES_PER_TTL) {
        return;
    }
    lock->clocks_us = now_us;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        struct node_slot *n = &lock->nodes[i];
        const struct redis_request request = {.bytes = question,
                                              .len = sizeof question - 1,
                                              .reply_count = 1,
                                              .timeout_us = lock->options.node_timeout_us,
                                              .on_reply = on_reply,
                                              .on_done = on_done,
                                              .ctx = n};
        if (n->is_asked) {
            continue;
        }
        n->asked_us = clock_boot_us();
        n->is_asked = redis_node_send(n->redis, &request, NULL) == STATUS_OK;
    }
}
