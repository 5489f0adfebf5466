/* SPDX-License-Identifier: Apache-2.0
 *
 * A session of PostgreSQL whose every step has a deadline, for those who ask a server that may be
 * stopped, killed or locked at that moment. It connects when it is needed. Independent of the code
 * under test. */
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
void session_close(struct session *s); /* accepts a zeroed one; it may be used again */

/* Connects if it is not connected. UNAVAILABLE, TIMEOUT. */
enum status session_open(struct session *s, struct err *err) MUST_USE;
bool session_is_open(const struct session *s);

/* One statement with texts as its parameters. INVALID: the server refused it, err->code says why,
 * the session goes on; UNAVAILABLE: nothing was sent; UNKNOWN: the connection was lost, or the
 * deadline passed and it was closed. *ret_result (NULL: not wanted) is the caller's. */
enum status session_run(struct session *s, const char *sql, const char *const *params, int count,
                        PGresult **ret_result, struct err *err) MUST_USE;

/* Sends a statement whose end nobody waits for; it is over when it is, or with the session. */
enum status session_send(struct session *s, const char *sql, struct err *err) MUST_USE;

/* The same, formatted, without an answer; and one number (NOT_FOUND without a row). */
enum status session_do(struct session *s, struct err *err, const char *format, ...) MUST_USE
    PRINTF_LIKE(3, 4);
enum status session_i64(struct session *s, int64_t *ret, struct err *err, const char *format,
                        ...) MUST_USE PRINTF_LIKE(4, 5);

#endif
