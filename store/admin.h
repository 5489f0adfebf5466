/* SPDX-License-Identifier: Apache-2.0
 *
 * One PostgreSQL session for programs that may wait: claimctl and tests. The calls block, but never
 * without a deadline: they use non-blocking libpq and poll(2), because a stopped server would block
 * libpq's own calls forever. There is no reconnect. Values are text both ways. The statements are
 * sql/queries/admin_*.sql.
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

/* Checks the syntax of conninfo. INVALID: libpq would not understand it. Pure. */
enum status admin_check_conninfo(const char *conninfo, struct err *err) MUST_USE;

/* Connects. `timeout_us` is the deadline for connecting and for each call below. If there are
 * several hosts, it uses the one that accepts writes; a host that does not answer gets its share of
 * the time. */
enum status admin_open(const char *conninfo, int64_t timeout_us, struct admin **ret,
                       struct err *err) MUST_USE;
void admin_close(struct admin *a);                           /* accepts NULL */
void admin_set_timeout(struct admin *a, int64_t timeout_us); /* for each call from now on */

int admin_server_version(const struct admin *a); /* such as 150020 */
/* the pid that the server sent at the start of the session, which reveals a pooler */
int admin_backend_pid(const struct admin *a);

/* Runs a statement and returns its rows. `params`: one text per parameter, NULL = SQL NULL. */
enum status admin_query(struct admin *a, const struct pg_statement *statement,
                        const char *const *params, struct admin_rows **ret,
                        struct err *err) MUST_USE;
/* Runs SQL whose result does not matter. */
enum status admin_exec(struct admin *a, const char *sql, struct err *err) MUST_USE;

void admin_rows_free(struct admin_rows *rows); /* accepts NULL */
int admin_row_count(const struct admin_rows *rows);
int admin_column_count(const struct admin_rows *rows);
const char *admin_column_name(const struct admin_rows *rows, int column); /* borrowed */
/* Returns the index of the column with that name; -1 = there is none. */
int admin_column(const struct admin_rows *rows, const char *name);
/* NULL = SQL NULL; borrowed from `rows`. */
const char *admin_value(const struct admin_rows *rows, int row, int column);

/* COPY … FROM STDIN in text form, in a transaction of its own. The error of a refusal begins with
 * "line N: …", counted in rows of this COPY. If an abort fails because the connection is lost, the
 * COPY is aborted all the same. */
enum status admin_copy_start(struct admin *a, const struct pg_statement *statement,
                             struct err *err) MUST_USE;
enum status admin_copy_send(struct admin *a, const char *bytes, size_t len,
                            struct err *err) MUST_USE;
enum status admin_copy_end(struct admin *a, struct err *err) MUST_USE;
void admin_copy_abort(struct admin *a);

struct schema_version; /* store/migrate.h */

/* Reads the version of the schema in this database. */
enum status admin_schema_version(struct admin *a, struct schema_version *ret,
                                 struct err *err) MUST_USE;
/* Returns CONFLICT if this build must not work with the schema; the text says which command to
 * run. */
enum status admin_check_schema(struct admin *a, struct err *err) MUST_USE;

#define auto_admin_rows CLEANUP(admin_rows_slot)
static inline void admin_rows_slot(struct admin_rows **slot)
{
    admin_rows_free(*slot);
}

#endif
