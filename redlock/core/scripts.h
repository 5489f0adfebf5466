/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lua that runs on the nodes. Each script has the same effect if it runs twice (lock.R3). What
 * is called a token is a whole value: the token, and the client's label if it has one (lock.K3). */
#ifndef CLAIMD_REDLOCK_CORE_SCRIPTS_H
#define CLAIMD_REDLOCK_CORE_SCRIPTS_H

#include "redis/redis.h"

#define SCRIPTS_COUNT 10
#define SCRIPTS_WITHOUT_LINES 6 /* the first ones */

/* KEYS: the keys, then the canary; ARGV: each key's token and its ttl in ms. Replies per key: 1
 * extended, 0 another owner's, −1 missing (lock.E1, E2); then the canary's value (lock.N9). */
extern const struct redis_script script_extend;

/* KEYS: the keys; ARGV: one token for all keys or each key's. Deletes the keys that hold it.
 * Replies how many it deleted, and the numbers of the others, counted from 1: i if another owner
 * has the key, −i if it is missing (lock.R2, R6). Who stands in line for keys uses script_leave
 * instead (line_scripts.h). */
extern const struct redis_script script_release;

/* KEYS; ARGV: the start of a token. Deletes the keys whose token starts with it; replies how
 * many. */
extern const struct redis_script script_free_prefix;

/* KEYS: keys, then a counter for each; ARGV: the keys' token, a number, and the counters' ttl in
 * ms. The number is stored in each counter whose key is ours, unless the counter is as high
 * already. Replies per key the counter's former value (0 = none); −1 = the key is not ours. It is
 * the only script whose second run replies something else: as if that number had not been stored by
 * it. */
extern const struct redis_script script_fence;

/* KEYS: the canary; ARGV: the server's run_id and random characters. Sets it where there is none of
 * this server. Replies its value, "RUN_ID:SECONDS:RANDOM", and the seconds of now. */
extern const struct redis_script script_canary;

/* KEYS: a number of ms; ARGV: our T_max in ms. Replies the greater one. If that is ours, it is kept
 * for so long and a minute (lock.N10). */
extern const struct redis_script script_ttl_max;

extern const struct redis_script *const scripts_all[SCRIPTS_COUNT];

#endif
