/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of redis_command(), for commands whose arguments come from several arrays. Both
 * append; on failure the caller drops what was appended. */
#ifndef CLAIMD_REDIS_COMMAND_H
#define CLAIMD_REDIS_COMMAND_H

#include "redis/redis.h"

enum status redis_command_head(struct buf *out, size_t count, struct err *err) MUST_USE;
enum status redis_command_args(struct buf *out, const struct redis_arg *args, size_t count,
                               struct err *err) MUST_USE;

#endif
