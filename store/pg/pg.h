/* SPDX-License-Identifier: Apache-2.0
 *
 * One PostgreSQL connection on a libuv loop that is kept up permanently: non-blocking libpq in
 * pipeline mode, prepared statements, binary parameters and results, and our own deadline per
 * request. It reconnects with jitter. If there are several hosts, it uses the one that accepts
 * writes; a host that does not answer is tried last. Only store/ includes libpq-fe.h. One thread,
 * never used after fork.
 *
 * A request is one pipeline segment: its statements and a sync, hence one implicit transaction and
 * one commit. Rows count only when the sync has arrived: that is when `done` is called, once.
 *
 * If the connection is lost after sending (ARCHITECTURE §4.11), it first makes a new session, ends
 * the old backend from there and waits until it is gone, and only then reports STATUS_UNKNOWN, so
 * that the caller can read back at once. While PostgreSQL is unreachable such requests wait. */
#ifndef CLAIMD_STORE_PG_PG_H
#define CLAIMD_STORE_PG_PG_H

#include "base/buf.h"
#include "sql/statement.h"

#include <uv.h>

#define PG_PARAMS_MAX 24
#define PG_STEPS_MAX 20

struct pg;
struct pg_result; /* rows of one statement, borrowed until `done` returns */

/* Binary form of a parameter; bytes NULL = SQL NULL. pg_send() copies it. */
struct pg_param {
    const void *bytes;
    int len;
};

/* A statement is identified by its address and borrowed as long as the connection is open. A
 * statement with the name "" is parsed each time and only needs to live until pg_send() returns. */
struct pg_step {
    const struct pg_statement *statement;
    const struct pg_param *params;
};

/* Ends a request. OK: committed, results[i] belongs to step i. UNKNOWN: sent, the outcome is not
 * known, and the old backend is gone. Otherwise the server refused, and nothing of the segment
 * happened; err->code is the SQLSTATE (CL00x and 40… are CONFLICT; CL002, 22…, 23… and 54001 are
 * INVALID, the data are wrong; 55P03 and 57014 TIMEOUT; 08, 53, 57, 58, 25006 and a missing
 * partition UNAVAILABLE; 2200H LIMIT; others INTERNAL). The callback may call pg_send() and
 * pg_close(). */
typedef void pg_done_cb(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err);

struct pg_request {
    struct pg_step steps[PG_STEPS_MAX];
    int step_count;
    int64_t timeout_us; /* 0 = the connection's default */
    pg_done_cb *done;
    void *ctx;
};

/* A new session is ready: LISTEN is done, statements are prepared on first use. Called after the
 * UNKNOWNs of the previous session. */
typedef void pg_up_cb(void *ctx);
/* A session was lost or could not be made. Called for each attempt, so log it as a complaint.
 * INVALID: conninfo is wrong, or leads to a pooler in transaction mode; retrying will not help. */
typedef void pg_down_cb(void *ctx, const struct err *why);
typedef void pg_notify_cb(void *ctx, const char *channel, const char *payload);

struct pg_options {
    uv_loop_t *loop;
    const char *conninfo;         /* libpq keywords; copied; never logged */
    const char *application_name; /* copied */
    const char *listen;           /* channel, or NULL; copied */
    int64_t timeout_us;           /* default deadline of a request, and of connecting */
    int lock_timeout_ms;          /* 0 = none */
    int statement_timeout_ms;     /* 0 = none */
    /* Plan each statement only once: its statements must find their rows by indexes, however large
     * the tables are. A segment that has to read more begins with SQL_PLAN_ANEW. */
    bool plans_once;
    pg_up_cb *on_up; /* may be NULL, like the next two */
    pg_down_cb *on_down;
    pg_notify_cb *on_notify;
    void *ctx;
};

enum status pg_open(const struct pg_options *options, struct pg **ret_pg, struct err *err) MUST_USE;

/* Ends what was sent with UNKNOWN (without waiting) and closes; the memory is freed in the next
 * turn of the loop. Accepts NULL. */
void pg_close(struct pg *pg);

bool pg_is_up(const struct pg *pg);
/* Returns the BOOTTIME when the present session started; 0 = disconnected. */
int64_t pg_up_since_us(const struct pg *pg);
int pg_backend_pid(const struct pg *pg);
int pg_server_version(const struct pg *pg); /* such as 150020; 0 before the first session */

/* Queues the segment and writes what the socket accepts; never calls back from inside. UNAVAILABLE
 * when down (nothing is queued for later), LIMIT if too many requests wait, NOMEM. */
enum status pg_send(struct pg *pg, const struct pg_request *request, struct err *err) MUST_USE;
/* Sends one statement with the connection's deadline; params NULL = it has none. */
enum status pg_send_one(struct pg *pg, const struct pg_statement *statement,
                        const struct pg_param *params, pg_done_cb *done, void *ctx,
                        struct err *err) MUST_USE;

/* Readers of binary results; the column must have the type that the function's name says. Out of
 * range or NULL is a bug: assert. Select jsonb and numeric as text: their binary forms are not
 * supported. */
int pg_row_count(const struct pg_result *r);
bool pg_is_null(const struct pg_result *r, int row, int column);
int64_t pg_i64(const struct pg_result *r, int row, int column); /* int2, int4, int8 */
bool pg_bool(const struct pg_result *r, int row, int column);
int64_t pg_time_us(const struct pg_result *r, int row, int column); /* timestamptz → Unix µs */
/* Physical position of a row: block · 2^16 + number; 0 for (0,0), which no row has; NULL is
 * PG_TID_NULL. */
#define PG_TID_NULL (-1)
int64_t pg_tid(const struct pg_result *r, int row, int column);
/* The text is NUL-terminated and borrowed from the result; ret_len may be NULL. */
const char *pg_text(const struct pg_result *r, int row, int column, size_t *ret_len);

/* Builders of binary parameters; those of one-dimensional arrays write into a buf. */
struct pg_param pg_param_i64(int64_t value, char storage[8]);
struct pg_param pg_param_i32(int32_t value, char storage[4]);
struct pg_param pg_param_bool(bool value);
struct pg_param pg_param_text(const char *text); /* NULL = SQL NULL */
/* borrows the array that a builder below wrote */
struct pg_param pg_param_buf(const struct buf *array);
enum status pg_param_uuid(const char *text, char storage[16], struct pg_param *ret,
                          struct err *err) MUST_USE;
enum status pg_array_i64(struct buf *out, const int64_t *values, size_t count,
                         struct err *err) MUST_USE;
enum status pg_array_tid(struct buf *out, const int64_t *values, size_t count,
                         struct err *err) MUST_USE;
/* A NULL value is SQL NULL; lens may be NULL. */
enum status pg_array_text(struct buf *out, const char *const *values, const size_t *lens,
                          size_t count, struct err *err) MUST_USE;

#endif
