/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lua that runs on the nodes. Each script does the same when it runs twice (lock.R3). */
#ifndef CLAIMD_REDLOCK_SCRIPTS_H
#define CLAIMD_REDLOCK_SCRIPTS_H

#include "redis/redis.h"

#define SCRIPTS_COUNT 4

/* KEYS; ARGV: each key's token and its ttl in ms. Replies per key: 1 extended, 0 another owner's,
 * −1 missing (lock.E1, E2). */
extern const struct redis_script script_extend;

/* Waking who waits for a key (wait.c): the channel is the prefix and the key's bytes; nothing is
 * published unless the marker, a string key of the prefix and this, is there. Who waits sets it,
 * with a ttl. */
#define WAKE_PREFIX_MAX 128
#define WAKE_MARKER "waiting"
#define WAKE_MARKER_LEN (sizeof WAKE_MARKER - 1)

/* KEYS: the keys, then the marker if the prefix is not empty; ARGV: the prefix, then one token for
 * all keys or each key's. Deletes the keys that hold it and wakes who waits for them. Replies how
 * many it deleted, and the numbers from 1 of the others: i is another owner's, −i missing (lock.R2,
 * R6). */
extern const struct redis_script script_release;

/* KEYS; ARGV: the start of a token. Deletes the keys whose token starts so; replies the count. */
extern const struct redis_script script_free_prefix;

/* KEYS: a key and its counter; ARGV: the key's token and a number, which becomes the counter's
 * unless that is as high already. Replies what was in the counter before (0 = nothing), −1 = the
 * key is not ours. It is the one script of which a second run says something else: that number was
 * not stored by it. */
extern const struct redis_script script_fence;

extern const struct redis_script *const scripts_all[SCRIPTS_COUNT];

#endif
