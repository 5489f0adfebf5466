/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock that is given back at the end of its scope (REDLOCK_SCOPE). */
#include "redlock/redlock.h"

struct redlock_guard redlock_guard_begin(struct redlock *client, const char *key, int64_t ttl_ms)
{
    struct redlock_guard guard = {0};
    (void)redlock_try(client, key, ttl_ms, &guard.lock);
    return guard;
}

void redlock_guard_end(struct redlock_guard *guard)
{
    (void)redlock_unlock(guard->lock, NULL);
}
