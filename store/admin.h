/* SPDX-License-Identifier: Apache-2.0
 *
 * One PostgreSQL session for programs that may wait: claimctl and tests. Blocks, but never without
 * a deadline: non-blocking libpq and poll(2) below (a stopped server would hold libpq's own calls
 * for ever). No reconnect. Values are text both ways. The statements are sql/queries/admin_*.sql.
 *
 * Statuses: UNAVAILABLE (cannot connect, connection lost), TIMEOUT, INVALID (refused data: SQLSTATE
 * classes 22 and 23, CL002), CONFLICT (CL003 to CL005), INTERNAL (any other refusal). err->code has
 * the SQLSTATE. */
#ifndef CLAIMD_STORE_ADMIN_H
#define CLAIMD_STORE_ADMIN_H

#include "base/err.h"
#include "sql/statement.h"

#include <stddef.h>
#include <stdint.h>

struct admin;
struct admin_rows;

/* INVALID: libpq would not understand it. Pure. */
enum status admin_check_conninfo(const char *conninfo, struct err *err) MUST_USE;

/* `timeout_us` is the deadline of the connect and of each call below. Of several hosts the one that
 * takes writes is found; a silent one has its share of the time. */
enum status admin_open(const char *conninfo, int64_t timeout_us, struct admin **ret,
                       struct err *err) MUST_USE;
void admin_close(struct admin *a);                           /* accepts NULL */
void admin_set_timeout(struct admin *a, int64_t timeout_us); /* of each call from now on */

int admin_server_version(const struct admin *a); /* 150020 */
int admin_backend_pid(const struct admin *a); /* as the server said at start: what a pooler hides */

/* `params`: one text per parameter, NULL = SQL NULL. */
enum status admin_query(struct admin *a, const struct pg_statement *statement,
                        const char *const *params, struct admin_rows **ret,
                        struct err *err) MUST_USE;
/* Without a result worth reading. */
enum status admin_exec(struct admin *a, const char *sql, struct err *err) MUST_USE;

void admin_rows_free(struct admin_rows *rows); /* accepts NULL */
int admin_row_count(const struct admin_rows *rows);
/* The place of the column of that name; -1: there is none. */
int admin_column(const struct admin_rows *rows, const char *name);
/* NULL = SQL NULL; borrowed from `rows`. */
const char *admin_value(const struct admin_rows *rows, int row, int column);

/* COPY … FROM STDIN in text form: one transaction of its own. A refusal says "line N: …", counted
 * in rows of this COPY. An abort that fails (the connection is lost) is one all the same. */
enum status admin_copy_start(struct admin *a, const struct pg_statement *statement,
                             struct err *err) MUST_USE;
enum status admin_copy_send(struct admin *a, const char *bytes, size_t len,
                            struct err *err) MUST_USE;
enum status admin_copy_end(struct admin *a, struct err *err) MUST_USE;
void admin_copy_abort(struct admin *a);

struct schema_version; /* store/migrate.h */

/* Version of the schema in this database. */
enum status admin_schema_version(struct admin *a, struct schema_version *ret,
                                 struct err *err) MUST_USE;
/* CONFLICT when this build may not work with it; the text says what to run. */
enum status admin_check_schema(struct admin *a, struct err *err) MUST_USE;

#define auto_admin_rows CLEANUP(admin_rows_slot)
static inline void admin_rows_slot(struct admin_rows **slot)
{
    admin_rows_free(*slot);
}

#endif
