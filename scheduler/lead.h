/* SPDX-License-Identifier: Apache-2.0
 *
 * Who leads: one Redlock, tried for again and again. Two leaders at once would be wasteful but
 * harmless; so losing it needs no ceremony, only a callback. One that can't do what a leader is for
 * gives it up for a while: nobody knows whether a standby could do better, so it comes back. */
#ifndef CLAIMD_SCHEDULER_LEAD_H
#define CLAIMD_SCHEDULER_LEAD_H

#include "base/err.h"
#include "redlock/redlock_async.h"

#include <uv.h>

struct lead;

/* why: of one that leads no longer; borrowed until it returns. */
typedef void lead_cb(void *ctx, bool is_leader, const char *why);
/* Asked every try_us while it leads. */
typedef bool lead_fit_cb(void *ctx);

struct lead_options {
    /* Its ttl is the leader's; on_state is set here, and on_node gets our ctx. */
    struct redlock_async_options lock;
    const char *prefix; /* of the key */
    int64_t try_us;
    lead_cb *on_change;
    lead_fit_cb *is_fit;
    void *ctx;
};

enum status lead_open(const struct lead_options *options, struct lead **ret,
                      struct err *err) MUST_USE;
/* As redlock_async_set_password(). */
enum status lead_set_password(struct lead *l, const char *password, struct err *err) MUST_USE;
bool lead_is_leader(const struct lead *l);
/* When the lease ends by which it leads (CLOCK_BOOTTIME); 0 = it doesn't. Accepts NULL. */
int64_t lead_until_us(const struct lead *l);
const struct redlock_counters *lead_counters(const struct lead *l);
/* It asks all nodes every second or two, so it is the one that knows how they are. */
const struct redlock_async *lead_lock(const struct lead *l);

/* Gives the lock up at once, calls nobody back, frees. Accepts NULL. */
void lead_close(struct lead *l);

#endif
