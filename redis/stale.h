/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of ours that are gone here and may live on in the server, with commands in their
 * buffers that it has yet to run (lock.R1). Each is named in the first command of every new
 * connection until the server has confirmed one. No I/O. */
#ifndef CLAIMD_REDIS_STALE_H
#define CLAIMD_REDIS_STALE_H

#include "redis/redis.h"

#define STALE_MAX 8

struct stale {
    char run_id[41]; /* of the server whose ids these are: another one gives them to strangers */
    int64_t ids[STALE_MAX];
    size_t count;
    bool is_incomplete; /* one had no id, or found no room here */
};

/* A connection whose handshake told `info` was lost. */
void stale_add(struct stale *s, const struct redis_server_info *info);
/* Forgets what another server had; then fills in info->can_kill. */
void stale_judge(struct stale *s, struct redis_server_info *info, bool may_kill);
/* CLIENT KILL for each, one reply each. */
enum status stale_append(const struct stale *s, struct buf *out, struct err *err) MUST_USE;

#endif
