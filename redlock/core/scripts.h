/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lua scripts that run on the nodes. Running a script twice has the same effect as running it
 * once (lock.R3). In these scripts a token is a whole value: the token, and the client's label if
 * it has one (lock.K3). */
#ifndef CLAIMD_REDLOCK_CORE_SCRIPTS_H
#define CLAIMD_REDLOCK_CORE_SCRIPTS_H

#include "redis/redis.h"

#define SCRIPTS_COUNT 10
#define SCRIPTS_WITHOUT_LINES 6 /* the first ones */

/* KEYS: the keys, then the canary. ARGV: each key's token and its ttl in ms. Replies for each key:
 * 1 extended, 0 another owner has it, −1 missing (lock.E1, E2); then the canary's value
 * (lock.N9). */
extern const struct redis_script script_extend;

/* KEYS: the keys. ARGV: one token for all keys, or one for each key. Deletes the keys that hold it.
 * Replies how many it deleted, and the numbers of the others, counted from 1: i if another owner
 * has the key, −i if it is missing (lock.R2, R6). A client that waits in lines uses script_leave
 * instead (line_scripts.h). */
extern const struct redis_script script_release;

/* KEYS. ARGV: the start of a token. Deletes the keys whose token starts with it; replies how
 * many. */
extern const struct redis_script script_free_prefix;

/* KEYS: keys, then a counter for each. ARGV: the keys' token, a number, and the counters' ttl in
 * ms. Stores the number in each counter whose key is ours, unless the counter is as high already.
 * Replies for each key the counter's former value (0 = none); −1 = the key is not ours. This is the
 * only script whose second run replies something else: then the former value is the number
 * itself. */
extern const struct redis_script script_fence;

/* KEYS: the canary. ARGV: the server's run_id and random characters. Sets the canary if there is
 * none of this server. Replies its value, "RUN_ID:SECONDS:RANDOM", and the present time in
 * seconds. */
extern const struct redis_script script_canary;

/* KEYS: a number of ms. ARGV: our T_max in ms. Replies the greater one. If that is ours, it is kept
 * for that time and a minute (lock.N10). */
extern const struct redis_script script_ttl_max;

extern const struct redis_script *const scripts_all[SCRIPTS_COUNT];

#endif
