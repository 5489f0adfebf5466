/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocking sessions for programs without a loop: plain libpq and hiredis, for loads that claimd is
 * compared with. */
#ifndef CLAIMD_BENCH_RAW_H
#define CLAIMD_BENCH_RAW_H

#include "base/buf.h"

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

void raw_pg_close(PGconn *pg);            /* accepts NULL */
void raw_redis_close(redisContext *node); /* likewise */

/* The caller owns the session. */
enum status raw_pg_open(const char *conninfo, PGconn **ret_pg, struct err *err) MUST_USE;
enum status raw_pg_prepare(PGconn *pg, const char *name, const char *sql, struct err *err) MUST_USE;
/* Checks that the result is the expected one; else UNAVAILABLE with the server's message. The
 * caller keeps the result. */
enum status raw_pg_check(PGconn *pg, const PGresult *result, ExecStatusType expected,
                         struct err *err) MUST_USE;
/* For pipeline mode: the first takes the result of the next statement, which the caller clears; the
 * second takes the end of a segment. */
enum status raw_pg_take(PGconn *pg, ExecStatusType expected, PGresult **ret_result,
                        struct err *err) MUST_USE;
enum status raw_pg_take_sync(PGconn *pg, struct err *err) MUST_USE;
/* Returns a value of a binary result. */
int64_t raw_pg_i64(const PGresult *result, int row, int column);

enum status raw_redis_open(const char *path, redisContext **ret_node, struct err *err) MUST_USE;
#define RAW_SHA_SIZE 41
enum status raw_redis_load(redisContext *node, const char *script, char ret_sha[RAW_SHA_SIZE],
                           struct err *err) MUST_USE;
enum status raw_redis_write(redisContext *node, const struct buf *commands,
                            struct err *err) MUST_USE;
/* Takes the next reply, which the caller frees. An error reply is UNAVAILABLE. */
enum status raw_redis_take(redisContext *node, redisReply **ret_reply, struct err *err) MUST_USE;

#endif
