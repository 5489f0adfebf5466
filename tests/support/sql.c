/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sql.h"

#include <check.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>

#define STATEMENT_MAX 16384

struct sql {
    PGconn *conn;
    char statement[STATEMENT_MAX];
};

struct sql *sql_open(const char *conninfo)
{
    struct sql *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->conn = PQconnectdb(conninfo);
    ck_assert_msg(PQstatus(s->conn) == CONNECTION_OK, "%s", PQerrorMessage(s->conn));
    return s;
}

void sql_close(struct sql *s)
{
    if (s != NULL) {
        PQfinish(s->conn);
        free(s);
    }
}

__attribute__((__format__(__printf__, 2, 0))) static void put(struct sql *s, const char *format,
                                                              va_list args)
{
    int n = vsnprintf(s->statement, sizeof s->statement, format, args);
    ck_assert_int_gt(n, 0);
    ck_assert_int_lt(n, STATEMENT_MAX);
}

#define PUT(s, format)             \
    do {                           \
        va_list args_;             \
        va_start(args_, format);   \
        put((s), (format), args_); \
        va_end(args_);             \
    } while (0)

static PGresult *take(struct sql *s, PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);
    ck_assert_msg(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s: %s", s->statement,
                  PQerrorMessage(s->conn));
    return r;
}

void sql_run(struct sql *s, const char *format, ...)
{
    PUT(s, format);
    PQclear(take(s, PQexec(s->conn, s->statement)));
}

int64_t sql_i64(struct sql *s, const char *format, ...)
{
    PUT(s, format);
    PGresult *r = take(s, PQexec(s->conn, s->statement));
    ck_assert_msg(PQntuples(r) == 1, "%s: %d rows", s->statement, PQntuples(r));
    int64_t value = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return value;
}

void sql_text(struct sql *s, char *ret_text, size_t size, const char *format, ...)
{
    PUT(s, format);
    PGresult *r = take(s, PQexec(s->conn, s->statement));
    (void)snprintf(ret_text, size, "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
}

void sql_refusal(struct sql *s, char ret_code[6], const char *format, ...)
{
    PUT(s, format);
    PGresult *r = PQexec(s->conn, s->statement);
    const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    (void)snprintf(ret_code, 6, "%s", code == NULL ? "" : code);
    PQclear(r);
}

void sql_send(struct sql *s, const char *format, ...)
{
    PUT(s, format);
    ck_assert_msg(PQsendQuery(s->conn, s->statement) == 1, "%s", PQerrorMessage(s->conn));
}

void sql_wait(struct sql *s)
{
    for (PGresult *r = PQgetResult(s->conn); r != NULL; r = PQgetResult(s->conn)) {
        PQclear(take(s, r));
    }
}
