/* SPDX-License-Identifier: Apache-2.0
 *
 * Listens for releases (lock.A14): a script that deletes a key publishes on the channel
 * "<prefix><key>" if the marker key "<prefix>waiting" exists. While there are listeners, this keeps
 * the marker alive on every node, and one listening connection to each; the first listener opens
 * them, and they are closed some seconds after the last listener left. A connection that can't be
 * opened costs coverage, nothing else. */
#ifndef CLAIMD_REDLOCK_WAKE_H
#define CLAIMD_REDLOCK_WAKE_H

#include "redlock/redlock_async.h"

struct wakes; /* of one client */
struct wake_subscription;

/* A release was heard of, or the coverage changed. Called from the loop, never from inside a call.
 * It must neither listen nor unlisten. */
typedef void wake_cb(void *ctx);

/* Listens for one key. NULL = it can't: wake-ups are off, or there is no memory. */
struct wake_subscription *wake_listen(struct redlock_async *lock, const char *key, size_t len,
                                      wake_cb *changed, void *ctx);
void wake_unlisten(struct wake_subscription *subscription); /* accepts NULL */

/* Do enough nodes report releases to us that no quorum can release without our hearing of it? */
bool wake_is_covered(const struct wake_subscription *subscription);

/* The nodes that reported a release since wake_forget(), a bit per node. */
unsigned wake_heard(const struct wake_subscription *subscription);
void wake_forget(struct wake_subscription *subscription);

int64_t wake_tick(struct redlock_async *lock, int64_t now_us);
/* When there are no listeners any more: wake_close() closes the connections, before those of the
 * nodes are closed; wake_free() frees, afterwards. */
void wake_close(struct redlock_async *lock);
void wake_free(struct redlock_async *lock);

#endif
