/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/session.h"

#include "base/clock.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

#define STATEMENT_MAX 16384

static void ignore_notice(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

void session_init(struct session *s, const char *conninfo, int64_t timeout_us)
{
    *s = (struct session){.timeout_us = timeout_us};
    (void)snprintf(s->conninfo, sizeof s->conninfo, "%s", conninfo);
}

void session_close(struct session *s)
{
    if (s->conn != NULL) {
        PQfinish(s->conn);
        s->conn = NULL;
    }
}

bool session_is_open(const struct session *s)
{
    return s->conn != NULL;
}

/* Returns false if the deadline has passed. */
static bool wait_fd(const struct session *s, short events, int64_t end_us)
{
    int64_t left_ms = (end_us - clock_boot_us() + US_PER_MS - 1) / US_PER_MS;
    struct pollfd p = {.fd = PQsocket(s->conn), .events = events};
    return left_ms > 0 && poll(&p, 1, (int)left_ms) > 0;
}

static enum status fail_open(struct session *s, enum status st, struct err *err)
{
    err_set(err, st, 0, "connect: %s", s->conn != NULL ? PQerrorMessage(s->conn) : "no memory");
    session_close(s);
    return st;
}

enum status session_open(struct session *s, struct err *err)
{
    int64_t end_us = clock_boot_us() + s->timeout_us;
    if (s->conn != NULL) {
        return STATUS_OK;
    }
    s->conn = PQconnectStart(s->conninfo);
    PostgresPollingStatusType at = PGRES_POLLING_WRITING;
    if (s->conn == NULL || PQstatus(s->conn) == CONNECTION_BAD) {
        return fail_open(s, STATUS_UNAVAILABLE, err);
    }
    while (at == PGRES_POLLING_WRITING || at == PGRES_POLLING_READING) {
        if (!wait_fd(s, at == PGRES_POLLING_READING ? POLLIN : POLLOUT, end_us)) {
            return fail_open(s, STATUS_TIMEOUT, err);
        }
        at = PQconnectPoll(s->conn);
    }
    if (at != PGRES_POLLING_OK) {
        return fail_open(s, STATUS_UNAVAILABLE, err);
    }
    (void)PQsetNoticeProcessor(s->conn, ignore_notice, NULL);
    return STATUS_OK;
}

/* Returns the last result of a statement; NULL: the deadline has passed. */
static PGresult *take_result(struct session *s)
{
    int64_t end_us = clock_boot_us() + s->timeout_us;
    PGresult *last = NULL;
    for (;;) {
        while (PQisBusy(s->conn)) {
            if (!wait_fd(s, POLLIN, end_us)) {
                PQclear(last);
                return NULL;
            }
            if (PQconsumeInput(s->conn) == 0) {
                break;
            }
        }
        PGresult *r = PQgetResult(s->conn);
        if (r == NULL) {
            return last;
        }
        PQclear(last);
        last = r;
    }
}

static enum status judge(struct session *s, const char *sql, PGresult *r, struct err *err)
{
    ExecStatusType status = PQresultStatus(r); /* PGRES_FATAL_ERROR for NULL */
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return STATUS_OK;
    }
    const char *code = r != NULL ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    bool is_lost = r == NULL || code == NULL || PQstatus(s->conn) == CONNECTION_BAD;
    enum status st = is_lost ? STATUS_UNKNOWN : STATUS_INVALID;
    if (r == NULL && PQstatus(s->conn) != CONNECTION_BAD) {
        err_set(err, st, 0, "%.80s: no answer within %lld s", sql,
                (long long)(s->timeout_us / US_PER_S));
    } else {
        err_set(err, st, 0, "%.80s: %s", sql, PQerrorMessage(s->conn));
    }
    if (err != NULL && code != NULL) {
        (void)snprintf(err->code, sizeof err->code, "%s", code);
    }
    if (is_lost) {
        session_close(s);
    }
    return st;
}

enum status session_run(struct session *s, const char *sql, const char *const *params, int count,
                        PGresult **ret_result, struct err *err)
{
    enum status st = session_open(s, err);
    if (st != STATUS_OK) {
        return STATUS_UNAVAILABLE;
    }
    int is_sent = params == NULL
                      ? PQsendQuery(s->conn, sql)
                      : PQsendQueryParams(s->conn, sql, count, NULL, params, NULL, NULL, 0);
    PGresult *r = is_sent == 1 ? take_result(s) : NULL;
    st = judge(s, sql, r, err);
    if (st == STATUS_OK && ret_result != NULL) {
        *ret_result = r;
        return STATUS_OK;
    }
    PQclear(r);
    return st;
}

enum status session_send(struct session *s, const char *sql, struct err *err)
{
    enum status st = session_open(s, err);
    if (st == STATUS_OK && PQsendQuery(s->conn, sql) != 1) {
        st = err_fail(err, STATUS_UNAVAILABLE, "%.80s: %s", sql, PQerrorMessage(s->conn));
        session_close(s);
    }
    return st;
}

enum status session_do(struct session *s, struct err *err, const char *format, ...)
{
    char sql[STATEMENT_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (n < 0 || n >= STATEMENT_MAX) {
        return err_fail(err, STATUS_LIMIT, "a statement of %d bytes", n);
    }
    return session_run(s, sql, NULL, 0, NULL, err);
}

enum status session_i64(struct session *s, int64_t *ret, struct err *err, const char *format, ...)
{
    char sql[STATEMENT_MAX];
    PGresult *r = NULL;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (n < 0 || n >= STATEMENT_MAX) {
        return err_fail(err, STATUS_LIMIT, "a statement of %d bytes", n);
    }
    enum status st = session_run(s, sql, NULL, 0, &r, err);
    if (st == STATUS_OK && PQntuples(r) < 1) {
        st = err_fail(err, STATUS_NOT_FOUND, "%.80s: no row", sql);
    } else if (st == STATUS_OK) {
        *ret = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    }
    PQclear(r);
    return st;
}
