/* SPDX-License-Identifier: Apache-2.0
 *
 * Hears of releases (lock.A14): a script that deletes a key publishes "<prefix><key>" if the marker
 * key "<prefix>waiting" is there. While somebody listens, this keeps the marker alive on every node
 * and one listening connection to each, opened by the first listener and closed some seconds after
 * the last. A connection that can't be had costs coverage, nothing else. */
#ifndef CLAIMD_REDLOCK_WAKE_H
#define CLAIMD_REDLOCK_WAKE_H

#include "redlock/redlock_async.h"

struct wakes; /* of one client */
struct wake_subscription;

/* From the loop, never from inside a call: it heard something, or its coverage changed. It must
 * call nothing of this. */
typedef void wake_cb(void *ctx);

/* Listens for one key. NULL = it can't: wake-ups are off, or there is no memory. */
struct wake_subscription *wake_listen(struct redlock_async *lock, const char *key, size_t len,
                                      wake_cb *changed, void *ctx);
void wake_unlisten(struct wake_subscription *subscription); /* accepts NULL */

/* Do so many nodes tell us of releases that no quorum can go without our hearing of it? */
bool wake_is_covered(const struct wake_subscription *subscription);

/* The nodes that told of a release since wake_forget(), a bit per node. */
unsigned wake_heard(const struct wake_subscription *subscription);
void wake_forget(struct wake_subscription *subscription);

int64_t wake_tick(struct redlock_async *lock, int64_t now_us);
/* Nobody listens any more: closes the connections, before the nodes' are. Then, after these were,
 * frees. */
void wake_close(struct redlock_async *lock);
void wake_free(struct redlock_async *lock);

#endif
