/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain blocking session for tests, like an operator's psql, independent of the code under test.
 * A failing statement fails the test. */
#ifndef CLAIMD_TESTS_SUPPORT_SQL_H
#define CLAIMD_TESTS_SUPPORT_SQL_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sql;

struct sql *sql_open(const char *conninfo);
void sql_close(struct sql *s); /* accepts NULL */

void sql_run(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* Returns the number in the only row. */
int64_t sql_i64(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* Returns one row with one text, cut to the size; "" for NULL or no row. */
void sql_text(struct sql *s, char *ret_text, size_t size, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Returns the SQLSTATE with which a statement is refused; "" if it succeeds. */
void sql_refusal(struct sql *s, char ret_code[6], const char *format, ...) PRINTF_LIKE(3, 4);
/* The first starts a statement without waiting; the second waits for its end. */
void sql_send(struct sql *s, const char *format, ...) PRINTF_LIKE(2, 3);
void sql_wait(struct sql *s);

#endif
