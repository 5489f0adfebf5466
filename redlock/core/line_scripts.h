/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lua that keeps the line of waiters of a key on a node (lock.L1–L9). Each script has the same
 * effect if it runs twice (lock.R3). What is called a token is a whole value: the token, and the
 * client's label if it has one (lock.K3). P is the client's prefix; on each node there are
 * - P.."line:"..KEY, a sorted set, 60 s: token → score, one entry per waiting client;
 * - P.."alive:"..C, 3.5 s: the client C (the first characters of its tokens) lives;
 * - P.."any", 3.5 s: somebody waits here, so releases look at the lines;
 * - P.."turns:"..KEY, 60 s: until this time, in ms, releases hand over to the first in line;
 * - P.."away:"..KEY: while it is there, the line takes and offers nothing;
 * - P.."foreign:"..KEY, 60 s: a client that knows no line was seen: in ms, since when such clients
 *   have the key; 0 = they don't now; −1 = a gap was made for them;
 * - the channel P.."to:"..C, "MS:TOKEN": the key was offered to that waiter (0), or is to be asked
 *   for in so many milliseconds.
 * An offer is the key with the waiter's token and a short ttl. */
#ifndef CLAIMD_REDLOCK_CORE_LINE_SCRIPTS_H
#define CLAIMD_REDLOCK_CORE_LINE_SCRIPTS_H

#include "redis/redis.h"

/* KEYS: the key, the canary; ARGV: P, the token, its score, the lease's ttl, an offer's length, a
 * session's (all in ms). Confirms an offer, takes a free key as the first in line, or joins the
 * line. Replies {1, canary, GAP}: it is ours, with that ttl; GAP < 0: clients that know no line
 * have been seen; GAP > 0: the line has had its turns, so the release is to leave it away for so
 * many ms. Else {0, canary, owner ("" = none), its ttl or how long the line stays away, in ms; our
 * rank}. */
extern const struct redis_script script_enter;

/* KEYS: keys, then P .. "any"; ARGV: P, an offer's length and the gap's (0 = none) in ms, "1" = the
 * one after the head of the line is told as well; then one token for all keys or each key's. Those
 * that are ours are offered to the first in line, else deleted; our tokens leave the lines. Replies
 * how many were ours, how many of these others may want, and the numbers of the others, as
 * script_release does (lock.R2, R6). */
extern const struct redis_script script_leave;

/* KEYS: the key; ARGV: P, our token, its score, an offer's length in ms, to whom ("" = nobody), a
 * session's length.
 * Gives up a vote and goes back into the line. Replies 1 = offered to him, 0 = not our key, −1 = it
 * is free: he does not wait here. */
extern const struct redis_script script_yield;

/* KEYS: keys; ARGV: P, the client, a session's length and an offer's in ms, then a token and a
 * score for each key. Keeps the session and the places in line, and lets the line go on where the
 * key is free. Replies for each key: −1 = nothing new, 0 = it was offered to us, n > 0: to be asked
 * for in n ms. */
extern const struct redis_script script_refresh;

#endif
