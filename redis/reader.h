/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses RESP2 with hiredis' reader; values are built in an arena that is reused for each reply, so
 * that steady traffic allocates nothing. Depth, bytes and items of one reply are bounded. */
#ifndef CLAIMD_REDIS_READER_H
#define CLAIMD_REDIS_READER_H

#include "redis/redis.h"

#define REDIS_REPLY_BYTES_MAX ((size_t)16 << 20)

struct reader;

enum status reader_new(struct reader **ret_reader, struct err *err) MUST_USE;
void reader_free(struct reader *r); /* accepts NULL */

/* Adds bytes. NOMEM, LIMIT: afterwards the connection is unusable. */
enum status reader_feed(struct reader *r, const char *bytes, size_t len, struct err *err) MUST_USE;

/* Returns the next whole reply, borrowed until the next call; NULL = more bytes are needed.
 * INVALID: not the protocol, or beyond a bound. */
enum status reader_next(struct reader *r, const struct redis_value **ret_value,
                        struct err *err) MUST_USE;

#endif
