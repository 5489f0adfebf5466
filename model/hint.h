/* SPDX-License-Identifier: Apache-2.0
 *
 * A hint is the id of a due job in a Redis sorted set: it may be wrong and is never authoritative.
 * This is its format (INTERFACES, "Redis"); pure. Changing it requires a new key prefix, since
 * hosts of both versions share the sets. */
#ifndef CLAIMD_MODEL_HINT_H
#define CLAIMD_MODEL_HINT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define HINT_KEY_MAX 256
#define HINT_PRIORITY_STEP INT64_C(10000000000000) /* 10^13 ms: three centuries of due times */
#define HINT_ID_TEXT_MAX 20

/* Returns the score: priority · 10^13 + due time in ms since 1970; both parts are clamped, so it is
 * exact in a double. */
int64_t hint_score(int priority, int64_t due_unix_us);

/* Parses a score as Redis writes it, clamped to the possible range. */
int64_t hint_score_parse(const char *text);
int64_t hint_score_ms(int64_t score); /* the time in it */
int hint_score_priority(int64_t score);

/* Parses a member: a canonical decimal in 1…2^63−1. INVALID is junk: drop and count it
 * (fault.H3). */
enum status hint_id_parse(const char *text, size_t len, int64_t *ret_id, struct err *err) MUST_USE;

/* Writes "<prefix>:hints:<queue>" or, for a kind that not every worker of the queue serves,
 * "…:<kind>" (kind may be NULL). Returns the length; ret_key has HINT_KEY_MAX bytes. */
size_t hint_key(char *ret_key, const char *prefix, const char *queue, const char *kind);

/* Writes "<prefix>:hints:!<worker id>": a set that holds no hints. A member in it ends the blocked
 * pop of that worker. No queue's name begins with "!". Returns the length; ret_key as above. */
size_t hint_wake_key(char *ret_key, const char *prefix, const char *worker_id);

/* job_lock_key() writes "<prefix>:job:<id>", the key of the job's lock; ret_key has LOCK_KEY_MAX
 * bytes. job_lock_prefix() writes "<prefix>:job:", with the same room. */
#define LOCK_KEY_MAX 96
void job_lock_prefix(char *ret_prefix, const char *prefix);
size_t job_lock_key(char *ret_key, const char *prefix, int64_t id);

#endif
