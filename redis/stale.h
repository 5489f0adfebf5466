/* SPDX-License-Identifier: Apache-2.0
 *
 * Our connections that are gone on our side but may live on in the server, with buffered commands
 * that it has yet to run (lock.R1). Each is named in the first command of every new connection,
 * until the server has confirmed one of these commands. No I/O. */
#ifndef CLAIMD_REDIS_STALE_H
#define CLAIMD_REDIS_STALE_H

#include "redis/redis.h"

#define STALE_MAX 8

struct stale {
    char run_id[41]; /* of the server whose ids these are; another one has its own ids */
    int64_t ids[STALE_MAX];
    size_t count;
    bool is_incomplete; /* one had no id, or found no room here */
};

/* To be called when a connection is lost; `info` is from its handshake. */
void stale_add(struct stale *s, const struct redis_server_info *info);
/* Forgets the connections to another server; then fills in info->can_kill. */
void stale_judge(struct stale *s, struct redis_server_info *info, bool may_kill);
/* CLIENT KILL for each, one reply each. */
enum status stale_append(const struct stale *s, struct buf *out, struct err *err) MUST_USE;

#endif
