/* SPDX-License-Identifier: Apache-2.0
 *
 * A session of PostgreSQL with a deadline for every step, for requests to a server that may be
 * stopped, killed or locked at that moment. It connects on demand. Independent of the code under
 * test. */
#ifndef CLAIMD_TESTS_CHAOS_SESSION_H
#define CLAIMD_TESTS_CHAOS_SESSION_H

#include "base/err.h"
#include "cluster/servers.h"

#include <libpq-fe.h>
#include <stdint.h>

struct session {
    char conninfo[2 * SERVER_PATH_MAX];
    int64_t timeout_us;
    PGconn *conn;
};

void session_init(struct session *s, const char *conninfo, int64_t timeout_us);
void session_close(struct session *s); /* accepts a zeroed one; may be used again */

/* Connects if it is not connected. UNAVAILABLE, TIMEOUT. */
enum status session_open(struct session *s, struct err *err) MUST_USE;
bool session_is_open(const struct session *s);

/* Runs one statement with text parameters. INVALID: the server refused it, err->code has the
 * SQLSTATE, and the session continues. UNAVAILABLE: nothing was sent. UNKNOWN: the connection was
 * lost, or the deadline passed and the session was closed. The caller owns *ret_result (NULL: not
 * wanted). */
enum status session_run(struct session *s, const char *sql, const char *const *params, int count,
                        PGresult **ret_result, struct err *err) MUST_USE;

/* Sends a statement without waiting for its end; it ends by itself or with the session. */
enum status session_send(struct session *s, const char *sql, struct err *err) MUST_USE;

/* Like session_run(), with a formatted statement: the first without a result, the second with one
 * number (NOT_FOUND without a row). */
enum status session_do(struct session *s, struct err *err, const char *format, ...) MUST_USE
    PRINTF_LIKE(3, 4);
enum status session_i64(struct session *s, int64_t *ret, struct err *err, const char *format,
                        ...) MUST_USE PRINTF_LIKE(4, 5);

#endif
