/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lua scripts that keep the line of waiters of a key on a node (lock.L1–L9). Running a script
 * twice has the same effect as running it once (lock.R3). In these scripts a token is a whole
 * value: the token, and the client's label if it has one (lock.K3). P is the client's prefix; on
 * each node there are
 * - P.."line:"..KEY, a sorted set, 60 s: token → score, one entry per waiting client;
 * - P.."alive:"..C, 3.5 s: the client C (the first characters of its tokens) is alive;
 * - P.."any", 3.5 s: some client waits here, so releases look at the lines;
 * - P.."turns:"..KEY, 60 s: until this time, in ms, releases hand over to the first in line;
 * - P.."away:"..KEY: while it exists, the line takes and offers nothing;
 * - P.."foreign:"..KEY, 60 s: a client that does not use the line was seen. Value: since when such
 *   clients have the key, in ms; 0 = they don't have it now; −1 = a gap was made for them;
 * - the channel P.."to:"..C, "MS:TOKEN": the key was offered to that waiter (0), or the waiter
 *   should ask for it in MS milliseconds. An offer is the key with the waiter's token and a short
 *   ttl. */
#ifndef CLAIMD_REDLOCK_CORE_LINE_SCRIPTS_H
#define CLAIMD_REDLOCK_CORE_LINE_SCRIPTS_H

#include "redis/redis.h"

/* KEYS: the key, the canary. ARGV: P, the token, its score, the ttl of the lease, the length of an
 * offer, that of a session (all in ms). Confirms an offer, takes a free key if the client is first
 * in line, or joins the line. Replies {1, canary, GAP}: the key is ours, with that ttl; GAP < 0:
 * clients that do not use the line have been seen; GAP > 0: the line has had its turns, so the
 * release should suspend the line for GAP ms. Otherwise replies {0, canary, owner ("" = none), its
 * ttl or how long the line stays suspended, in ms; our rank}. */
extern const struct redis_script script_enter;

/* KEYS: keys, then P .. "any". ARGV: P, the length of an offer and that of the gap (0 = none) in
 * ms, "1" = also notify the waiter after the head of the line; then one token for all keys, or one
 * for each key. Keys that are ours are offered to the first in line, or else deleted; our tokens
 * leave the lines. Replies how many keys were ours, how many of these other clients may want, and
 * the numbers of the other keys, like script_release (lock.R2, R6). */
extern const struct redis_script script_leave;

/* KEYS: the key. ARGV: P, our token, its score, the length of an offer in ms, the token to offer it
 * to ("" = none), the length of a session. Gives up a vote and goes back into the line. Replies 1 =
 * it was offered to that token, 0 = the key is not ours, −1 = it is free now, since that token does
 * not wait here. */
extern const struct redis_script script_yield;

/* KEYS: keys. ARGV: P, the client, the length of a session and that of an offer in ms, then a token
 * and a score for each key. Keeps the session and the places in line, and lets the line go on where
 * the key is free. Replies for each key: −1 = nothing new, 0 = it was offered to us, n > 0: ask for
 * it in n ms. */
extern const struct redis_script script_refresh;

#endif
