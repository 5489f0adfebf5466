/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain blocking session for tests, like an operator's psql, independent of the code under test.
 * A failing statement fails the test. Texts belong to the session. */
#ifndef CLAIMD_TESTS_SUPPORT_SQL_H
#define CLAIMD_TESTS_SUPPORT_SQL_H

#include "base/cleanup.h"

#include <stdint.h>
#include <string.h>

struct sql;

struct sql *sql_open(const char *conninfo);
void sql_close(struct sql *s); /* accepts NULL */

void sql_run(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* Returns the number in the only row; 0 for NULL. */
int64_t sql_number(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* Returns the first value of the first row; "" for NULL or no row. */
const char *sql_text(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* Returns the SQLSTATE and the message with which a statement is refused, such as "42601 syntax
 * error at …"; "" if it succeeds. */
const char *sql_refusal(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* The first starts a statement without waiting; the second waits for its end and returns what
 * sql_text() would. */
void sql_send(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
const char *sql_wait(struct sql *s);

#define ASSERT_REFUSED(s, sql, sqlstate, part)                                               \
    do {                                                                                     \
        const char *why_ = sql_refusal((s), "%s", (sql));                                    \
        ck_assert_msg(strncmp(why_, (sqlstate), 5) == 0 && strstr(why_ + 5, (part)) != NULL, \
                      "%s: %s", (sql), why_);                                                \
    } while (0)

#endif
