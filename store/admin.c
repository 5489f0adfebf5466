/* SPDX-License-Identifier: Apache-2.0 */
#include "store/admin.h"

#include "base/clock.h"
#include "sql/errors.h"
#include "sql/queries.h"
#include "store/migrate.h"
#include "store/pg/internal.h"

#include <assert.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>

struct admin {
    PGconn *conn;
    int64_t timeout_us;
};

/* Wraps the PGresult, so that the header need not include libpq. */
struct admin_rows {
    PGresult *result;
};

/* ---- waiting ---- */

static enum status wait_socket(struct admin *a, short events, int64_t deadline_us, struct err *err)
{
    for (;;) {
        int64_t left_us = deadline_us - clock_boot_us();
        if (left_us <= 0) {
            const char *host = PQhost(a->conn);
            return err_fail(err, STATUS_TIMEOUT, "PostgreSQL%s%s did not answer within %lld ms",
                            host == NULL || host[0] == '\0' ? "" : " at ", host == NULL ? "" : host,
                            (long long)(a->timeout_us / US_PER_MS));
        }
        struct pollfd p = {.fd = PQsocket(a->conn), .events = events};
        int n = poll(&p, 1, (int)(left_us / US_PER_MS) + 1);
        if (n > 0) {
            return STATUS_OK;
        }
        if (n < 0 && errno != EINTR) {
            return err_fail_sys(err, STATUS_INTERNAL, errno, "poll");
        }
    }
}

static enum status connection_lost(struct admin *a, struct err *err)
{
    char text[PG_CONNECT_TEXT_SIZE];
    pg_connect_text(PQerrorMessage(a->conn), text);
    return err_fail(err, STATUS_UNAVAILABLE, "PostgreSQL: %s", text);
}

static enum status flush(struct admin *a, int64_t deadline_us, struct err *err)
{
    for (;;) {
        int left = PQflush(a->conn);
        if (left == 0) {
            return STATUS_OK;
        }
        if (left < 0) {
            return connection_lost(a, err);
        }
        /* Read as well: a server that cannot send its own output reads no more of ours. */
        enum status st = wait_socket(a, POLLIN | POLLOUT, deadline_us, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (PQconsumeInput(a->conn) == 0) {
            return connection_lost(a, err);
        }
    }
}

/* ---- refusals ---- */

static enum status status_of_code(const char *code)
{
    static const struct {
        const char *code; /* prefix of an SQLSTATE */
        enum status status;
    } map[] = {SQL_ERRORS,
               {"22", STATUS_INVALID},
               {"23", STATUS_INVALID},
               {"08", STATUS_UNAVAILABLE},
               {"57P", STATUS_UNAVAILABLE},
               {"53", STATUS_UNAVAILABLE},
               {"57014", STATUS_TIMEOUT},
               {"55P03", STATUS_CONFLICT}};
    for (size_t i = 0; i < ARRAY_COUNT(map); i++) {
        if (strncmp(code, map[i].code, strlen(map[i].code)) == 0) {
            return map[i].status;
        }
    }
    return STATUS_INTERNAL;
}

/* Puts the line of the COPY in front of the error. The server's context has it: "COPY job, line 3,
 * column args: …". */
static void prefix_copy_line(const PGresult *r, struct err *err)
{
    const char *context = PQresultErrorField(r, PG_DIAG_CONTEXT);
    const char *copy = context == NULL ? NULL : strstr(context, "COPY ");
    const char *line = copy == NULL ? NULL : strstr(copy, "line ");
    if (line != NULL) {
        err_prefix(err, "line %.*s", (int)strspn(line + 5, "0123456789"), line + 5);
    }
}

static enum status refused(struct admin *a, const PGresult *r, struct err *err)
{
    const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    if (code == NULL || text == NULL) {
        return connection_lost(a, err);
    }
    struct err local = {0};
    enum status st = status_of_code(code);
    err_set(&local, st, 0, "%s", text);
    (void)snprintf(local.code, sizeof local.code, "%s", code);
    prefix_copy_line(r, &local);
    if (strcmp(code, "55P03") == 0) {
        err_prefix(&local, "another session has what this needs locked, try again");
    }
    if (err != NULL && err->status == STATUS_OK) {
        *err = local;
    }
    return st;
}

/* ---- connection ---- */

static enum status connect_poll(struct admin *a, int64_t deadline_us, struct err *err)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED) {
            return connection_lost(a, err);
        }
        short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        enum status st = wait_socket(a, events, deadline_us, err);
        if (st != STATUS_OK) {
            return st;
        }
        next = PQconnectPoll(a->conn);
    }
    return STATUS_OK;
}

static void ignore_notice(void *ctx, const PGresult *result)
{
    (void)ctx;
    (void)result;
}

/* Sets the session's parameters. A request that waits for another session's lock must end before we
 * give up on it, so that it certainly did nothing. JIT is off because compiling our short
 * statements costs more than running them. */
static enum status prepare_session(struct admin *a, struct err *err)
{
    char sql[120];
    (void)snprintf(sql, sizeof sql, PG_FIXED_PATH "SET lock_timeout = %lld; SET jit = off",
                   (long long)(a->timeout_us / US_PER_MS / 2));
    return admin_exec(a, sql, err);
}

enum status admin_check_conninfo(const char *conninfo, struct err *err)
{
    if (strchr(conninfo, '=') == NULL && strstr(conninfo, "://") == NULL) {
        return STATUS_OK; /* only a database name */
    }
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &why);
    enum status st = STATUS_OK;
    if (options == NULL) {
        size_t len = why == NULL ? 0 : strcspn(why, "\n");
        st = err_fail(err, STATUS_INVALID, "%.*s", (int)len, why == NULL ? "" : why);
    }
    PQconninfoFree(options);
    PQfreemem(why);
    return st;
}

/* The lists in conninfo that describe its hosts, with one entry per host. */
enum { LIST_HOST, LIST_HOSTADDR, LIST_PORT, LIST_COUNT };

struct hosts {
    char *lists[LIST_COUNT]; /* NULL = not given */
    size_t count;
};

static void hosts_release(struct hosts *h)
{
    for (size_t i = 0; i < LIST_COUNT; i++) {
        free(h->lists[i]);
    }
}

static size_t entries(const char *list)
{
    size_t count = 1;
    for (const char *c = list == NULL ? "" : list; *c != '\0'; c++) {
        count += *c == ',';
    }
    return count;
}

static struct hosts hosts_of(const char *conninfo)
{
    static const char *const keywords[LIST_COUNT] = {"host", "hostaddr", "port"};
    struct hosts h = {.count = 1};
    bool is_name = strchr(conninfo, '=') == NULL && strstr(conninfo, "://") == NULL;
    PQconninfoOption *options = is_name ? NULL : PQconninfoParse(conninfo, NULL);
    for (const PQconninfoOption *o = options; o != NULL && o->keyword != NULL; o++) {
        for (size_t i = 0; i < LIST_COUNT && o->val != NULL; i++) {
            if (strcmp(o->keyword, keywords[i]) == 0) {
                h.lists[i] = strdup(o->val);
                h.count = i != LIST_PORT && entries(o->val) > h.count ? entries(o->val) : h.count;
            }
        }
    }
    PQconninfoFree(options);
    return h;
}

/* Moves the first entry of a list to its end: "a,b,c" → "b,c,a". */
static void rotate(char *list)
{
    char *comma = list == NULL ? NULL : strchr(list, ',');
    autofree char *first = comma == NULL ? NULL : strndup(list, (size_t)(comma - list));
    if (first != NULL) {
        size_t rest = strlen(comma + 1);
        memmove(list, comma + 1, rest);
        list[rest] = ',';
        memcpy(list + rest + 1, first, strlen(first) + 1);
    }
}

static enum status connect_to(struct admin *a, const char *conninfo, const struct hosts *h,
                              int64_t timeout_us, struct err *err)
{
    /* If there are several hosts, use the one that accepts writes, unless conninfo requests
     * another. */
    const char *const names[] = {"target_session_attrs",
                                 "dbname",
                                 "fallback_application_name",
                                 "client_encoding",
                                 "host",
                                 "hostaddr",
                                 "port",
                                 NULL};
    const char *const values[] = {h->count > 1 ? "read-write" : NULL,
                                  conninfo,
                                  "claimctl",
                                  "UTF8",
                                  h->lists[LIST_HOST],
                                  h->lists[LIST_HOSTADDR],
                                  h->lists[LIST_PORT],
                                  NULL};
    PQfinish(a->conn);
    a->conn = PQconnectStartParams(names, values, 1);
    if (a->conn == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    if (PQstatus(a->conn) == CONNECTION_BAD) {
        return connection_lost(a, err);
    }
    return connect_poll(a, clock_boot_us() + timeout_us, err);
}

/* Tries the hosts in turn, each first with its share of the time, since libpq spends all of the
 * time on a first host that does not answer. */
static enum status connect_any(struct admin *a, const char *conninfo, struct err *err)
{
    struct hosts h = hosts_of(conninfo);
    struct err why = {0};
    enum status st = STATUS_TIMEOUT;
    for (size_t i = 0; i < h.count && st == STATUS_TIMEOUT; i++) {
        struct err this_time = {0};
        st = connect_to(a, conninfo, &h, a->timeout_us / (int64_t)h.count, &this_time);
        why = this_time;
        for (size_t k = 0; k < LIST_COUNT; k++) {
            rotate(h.lists[k]);
        }
    }
    hosts_release(&h);
    if (st != STATUS_OK && err != NULL && err->status == STATUS_OK) {
        *err = why;
    }
    return st;
}

enum status admin_open(const char *conninfo, int64_t timeout_us, struct admin **ret,
                       struct err *err)
{
    struct admin *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    a->timeout_us = timeout_us;
    enum status st = connect_any(a, conninfo, err);
    if (st == STATUS_OK && PQsetnonblocking(a->conn, 1) != 0) {
        st = connection_lost(a, err);
    }
    if (st == STATUS_OK) {
        (void)PQsetNoticeReceiver(a->conn, ignore_notice, NULL);
        st = prepare_session(a, err);
    }
    if (st != STATUS_OK) {
        admin_close(a);
        return st;
    }
    *ret = a;
    return STATUS_OK;
}

void admin_set_timeout(struct admin *a, int64_t timeout_us)
{
    a->timeout_us = timeout_us;
}

void admin_close(struct admin *a)
{
    if (a != NULL) {
        PQfinish(a->conn);
        free(a);
    }
}

int admin_server_version(const struct admin *a)
{
    return PQserverVersion(a->conn);
}

int admin_backend_pid(const struct admin *a)
{
    return PQbackendPID(a->conn);
}

/* ---- results ---- */

/* Returns the last result of the statements in flight, or the first that failed or that asks for
 * COPY data. */
static enum status take_result(struct admin *a, PGresult **ret, struct err *err)
{
    int64_t deadline_us = clock_boot_us() + a->timeout_us;
    PGresult *kept = NULL;
    enum status st = flush(a, deadline_us, err);
    while (st == STATUS_OK) {
        while (st == STATUS_OK && PQisBusy(a->conn) != 0) {
            st = wait_socket(a, POLLIN, deadline_us, err);
            if (st == STATUS_OK && PQconsumeInput(a->conn) == 0) {
                st = connection_lost(a, err);
            }
        }
        PGresult *next = st == STATUS_OK ? PQgetResult(a->conn) : NULL;
        if (next == NULL) {
            break;
        }
        bool is_better = kept == NULL || PQresultStatus(kept) != PGRES_FATAL_ERROR;
        PQclear(is_better ? kept : next);
        kept = is_better ? next : kept;
        if (PQresultStatus(next) == PGRES_COPY_IN) {
            break;
        }
    }
    if (st == STATUS_OK && kept == NULL) {
        st = connection_lost(a, err);
    } else if (st == STATUS_OK && PQresultStatus(kept) == PGRES_FATAL_ERROR) {
        st = refused(a, kept, err);
    }
    if (st != STATUS_OK) {
        PQclear(kept);
        return st;
    }
    *ret = kept;
    return STATUS_OK;
}

static enum status run(struct admin *a, const struct pg_statement *statement,
                       const char *const *params, PGresult **ret, struct err *err)
{
    if (PQsendQueryParams(a->conn, statement->sql, statement->type_count, statement->types, params,
                          NULL, NULL, 0) == 0) {
        return connection_lost(a, err);
    }
    return take_result(a, ret, err);
}

enum status admin_query(struct admin *a, const struct pg_statement *statement,
                        const char *const *params, struct admin_rows **ret, struct err *err)
{
    struct admin_rows *rows = calloc(1, sizeof *rows);
    if (rows == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = run(a, statement, params, &rows->result, err);
    if (st != STATUS_OK) {
        free(rows);
        return st;
    }
    *ret = rows;
    return STATUS_OK;
}

enum status admin_exec(struct admin *a, const char *sql, struct err *err)
{
    PGresult *result = NULL;
    if (PQsendQuery(a->conn, sql) == 0) {
        return connection_lost(a, err);
    }
    enum status st = take_result(a, &result, err);
    PQclear(result);
    return st;
}

void admin_rows_free(struct admin_rows *rows)
{
    if (rows != NULL) {
        PQclear(rows->result);
        free(rows);
    }
}

int admin_row_count(const struct admin_rows *rows)
{
    return PQntuples(rows->result);
}

int admin_column_count(const struct admin_rows *rows)
{
    return PQnfields(rows->result);
}

const char *admin_column_name(const struct admin_rows *rows, int column)
{
    return PQfname(rows->result, column);
}

int admin_column(const struct admin_rows *rows, const char *name)
{
    return PQfnumber(rows->result, name);
}

const char *admin_value(const struct admin_rows *rows, int row, int column)
{
    assert(row < PQntuples(rows->result) && column < PQnfields(rows->result));
    return PQgetisnull(rows->result, row, column) ? NULL : PQgetvalue(rows->result, row, column);
}

/* ---- COPY ---- */

enum status admin_copy_start(struct admin *a, const struct pg_statement *statement, struct err *err)
{
    PGresult *result = NULL;
    enum status st = run(a, statement, NULL, &result, err);
    if (st == STATUS_OK && PQresultStatus(result) != PGRES_COPY_IN) {
        st = err_fail(err, STATUS_INTERNAL, "%s is not a COPY FROM STDIN", statement->name);
    }
    PQclear(result);
    return st;
}

enum status admin_copy_send(struct admin *a, const char *bytes, size_t len, struct err *err)
{
    assert(len <= INT32_MAX);
    if (PQputCopyData(a->conn, bytes, (int)len) < 0) {
        return connection_lost(a, err);
    }
    return flush(a, clock_boot_us() + a->timeout_us, err);
}

static enum status end_copy(struct admin *a, const char *abort_reason, struct err *err)
{
    int sent = 0;
    while (sent == 0) {
        sent = PQputCopyEnd(a->conn, abort_reason);
        enum status st = sent == 0 ? flush(a, clock_boot_us() + a->timeout_us, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (sent < 0) {
        return connection_lost(a, err);
    }
    PGresult *result = NULL;
    enum status st = take_result(a, &result, err);
    PQclear(result);
    return st;
}

enum status admin_copy_end(struct admin *a, struct err *err)
{
    return end_copy(a, NULL, err);
}

void admin_copy_abort(struct admin *a)
{
    struct err refusal = {0};
    enum status st = end_copy(a, "refused by the client", &refusal);
    assert(st != STATUS_OK); /* either the refusal that we asked for, or the connection was lost */
}

/* ---- schema ---- */

enum status admin_schema_version(struct admin *a, struct schema_version *ret, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    struct err why = {0};
    enum status st = admin_query(a, &SQL_ADMIN_SCHEMA_VERSION, NULL, &rows, &why);
    bool is_absent = strcmp(why.code, "42P01") == 0 || strcmp(why.code, "3F000") == 0;
    if (st != STATUS_OK && !is_absent) {
        if (err != NULL && err->status == STATUS_OK) {
            *err = why;
        }
        return st;
    }
    bool has_row = st == STATUS_OK && admin_row_count(rows) == 1;
    *ret = (struct schema_version){.version = 0};
    if (has_row) {
        ret->version = (int)strtol(admin_value(rows, 0, 0), NULL, 10);
        ret->oldest_program = (int)strtol(admin_value(rows, 0, 1), NULL, 10);
        ret->part = (int)strtol(admin_value(rows, 0, 2), NULL, 10);
    }
    return STATUS_OK;
}

enum status admin_check_schema(struct admin *a, struct err *err)
{
    struct schema_version schema = {0};
    enum status st = admin_schema_version(a, &schema, err);
    if (st != STATUS_OK) {
        return st;
    }
    return migrate_compare(schema, err);
}
