/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that are gone on our side but may still exist in the server, with buffered commands
 * that it has not run yet (lock.R1). The first commands of every new connection kill them, until
 * the server has confirmed that. No I/O. */
#ifndef CLAIMD_REDIS_STALE_H
#define CLAIMD_REDIS_STALE_H

#include "redis/redis.h"

#define STALE_MAX 8

struct stale {
    char run_id[41]; /* of the server to which these ids belong; another server has its own ids */
    int64_t ids[STALE_MAX];
    size_t count;
    bool is_incomplete; /* one had no id, or there was no room for it */
};

/* Adds a lost connection; `info` is from its handshake. */
void stale_add(struct stale *s, const struct redis_server_info *info);
/* Forgets connections to another server; then fills in info->can_kill. */
void stale_judge(struct stale *s, struct redis_server_info *info, bool may_kill);
/* Appends a CLIENT KILL for each; each gives one reply. */
enum status stale_append(const struct stale *s, struct buf *out, struct err *err) MUST_USE;

#endif
