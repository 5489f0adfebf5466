/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election by one Redlock, which is tried for repeatedly. Two leaders at once would be
 * wasteful but harmless, so losing the lock needs only a callback. A leader that can't feed gives
 * the lock up for a while; since it is not known whether a standby could do better, it tries again
 * later. */
#ifndef CLAIMD_SCHEDULER_LEAD_H
#define CLAIMD_SCHEDULER_LEAD_H

#include "base/err.h"
#include "redlock/redlock_async.h"

#include <uv.h>

struct lead;

/* why: the reason for a leader that has lost the lock, else NULL; borrowed until the callback
 * returns. */
typedef void lead_cb(void *ctx, bool is_leader, const char *why);
/* Called every try_us while leading; false: this process cannot do its work as the leader. */
typedef bool lead_fit_cb(void *ctx);

struct lead_options {
    /* Its ttl is that of the leader's lock; lead_open() sets on_state, and on_node gets our ctx. */
    struct redlock_async_options lock;
    const char *prefix; /* of the key */
    int64_t try_us;
    lead_cb *on_change;
    lead_fit_cb *is_fit;
    void *ctx;
};

enum status lead_open(const struct lead_options *options, struct lead **ret,
                      struct err *err) MUST_USE;
/* Sets the password of new connections, see redlock_async_set_password(). */
enum status lead_set_password(struct lead *l, const char *password, struct err *err) MUST_USE;
bool lead_is_leader(const struct lead *l);
/* Returns when the leader's lease ends (CLOCK_BOOTTIME); 0 = not leading. Accepts NULL. */
int64_t lead_until_us(const struct lead *l);
const struct redlock_counters *lead_counters(const struct lead *l);
/* Returns the leader's lock. It asks all nodes every second or two, so it knows their state. */
const struct redlock_async *lead_lock(const struct lead *l);

/* Releases the lock at once, calls no callback, and frees. Accepts NULL. */
void lead_close(struct lead *l);

#endif
