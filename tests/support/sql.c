/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sql.h"

#include <check.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>

#define STATEMENT_MAX 16384

struct text {
    struct text *next;
    char bytes[];
};

struct sql {
    PGconn *conn;
    struct text *texts; /* those returned */
    char statement[STATEMENT_MAX];
};

static void ignore_notice(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

struct sql *sql_open(const char *conninfo)
{
    struct sql *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->conn = PQconnectdb(conninfo);
    ck_assert_msg(PQstatus(s->conn) == CONNECTION_OK, "%s", PQerrorMessage(s->conn));
    (void)PQsetNoticeProcessor(s->conn, ignore_notice, NULL);
    PQclear(PQexec(s->conn, "SET TimeZone = 'UTC'")); /* not that of the host */
    return s;
}

void sql_close(struct sql *s)
{
    if (s == NULL) {
        return;
    }
    PQfinish(s->conn);
    for (struct text *t = s->texts; t != NULL; t = s->texts) {
        s->texts = t->next;
        free(t);
    }
    free(s);
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

static const char *keep(struct sql *s, const char *text)
{
    size_t size = strlen(text) + 1;
    struct text *t = malloc(sizeof *t + size);
    ck_assert_ptr_nonnull(t);
    t->next = s->texts;
    s->texts = t;
    return memcpy(t->bytes, text, size);
}

/* Frees the result. */
static const char *first_value(struct sql *s, PGresult *r)
{
    const char *text = keep(s, PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return text;
}

void sql_run(struct sql *s, const char *format, ...)
{
    PUT(s, format);
    PQclear(take(s, PQexec(s->conn, s->statement)));
}

int64_t sql_number(struct sql *s, const char *format, ...)
{
    PUT(s, format);
    PGresult *r = take(s, PQexec(s->conn, s->statement));
    ck_assert_msg(PQntuples(r) == 1, "%s: %d rows", s->statement, PQntuples(r));
    int64_t value = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return value;
}

const char *sql_text(struct sql *s, const char *format, ...)
{
    PUT(s, format);
    return first_value(s, take(s, PQexec(s->conn, s->statement)));
}

const char *sql_refusal(struct sql *s, const char *format, ...)
{
    char why[1024] = "";
    PUT(s, format);
    PGresult *r = PQexec(s->conn, s->statement);
    const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    if (code != NULL) {
        (void)snprintf(why, sizeof why, "%s %s", code,
                       PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
    } else {
        take(s, r);
    }
    PQclear(r);
    return keep(s, why);
}

void sql_send(struct sql *s, const char *format, ...)
{
    PUT(s, format);
    ck_assert_msg(PQsendQuery(s->conn, s->statement) == 1, "%s", PQerrorMessage(s->conn));
}

const char *sql_wait(struct sql *s)
{
    PGresult *last = NULL;
    for (PGresult *r = PQgetResult(s->conn); r != NULL; r = PQgetResult(s->conn)) {
        PQclear(last);
        last = take(s, r);
    }
    return first_value(s, last);
}
