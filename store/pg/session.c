/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: connect, end the predecessor's backend, set up, poll, handle its loss. */
#include "base/bug.h"
#include "base/clock.h"
#include "store/pg/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ± 50 %: after a failover we have a session again within 5 s */
#define RETRY_MAX_US (2 * US_PER_S)
/* after a session that lasted this long, the delays start again from the first */
#define SETTLED_US (2 * US_PER_S)
#define END_BACKEND_MS 3000
#define SETUP_TEXT_MAX 1024

/* Settings of a session. PLANS_ANEW makes plans for the table as it is now: a plan made on 20 rows
 * would scan a million (ARCHITECTURE §3). PLANS_ONCE plans each statement once and allows only
 * look-ups by index, for which it does not matter what the table was like then. JIT is off, since
 * compiling would take longer than our statements. The keepalives make PostgreSQL release locked
 * rows soon if our host vanishes in the middle of a segment. */
#define PLANS_ANEW "SET plan_cache_mode = force_custom_plan;"
#define PLANS_ONCE                                                        \
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;" \
    "SET enable_bitmapscan = off; SET enable_hashjoin = off;"             \
    "SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;"
#define SESSION_SETTINGS                                            \
    PG_FIXED_PATH                                                   \
    "SET TimeZone = 'UTC'; SET jit = off;"                          \
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2;" \
    "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 10000;"

/* An extra column, selected for its side effect: what was acknowledged to us must survive a crash
 * of PostgreSQL (G1), whatever the database or the role sets. Settings that wait for more than that
 * are kept. */
#define COMMIT_SETTING                             \
    ", CASE current_setting('synchronous_commit')" \
    " WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END"

static void on_poll(uv_poll_t *poll, int status, int events);

/* ---- the socket ---- */

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void poll_end(struct pg *pg)
{
    if (pg->polled != NULL) {
        uv_close((uv_handle_t *)&pg->polled->poll, on_poll_closed);
        pg->polled = NULL;
    }
}

/* libpq changes the socket when it tries the next address, perhaps to one with the same number, so
 * the caller ends the polling before it lets libpq continue. */
static bool poll_start(struct pg *pg, int events)
{
    int fd = PQsocket(pg->conn);
    if (fd < 0 || (pg->polled != NULL && pg->polled->fd != fd)) {
        return false; /* libpq closed it because it found the server gone */
    }
    if (pg->polled == NULL) {
        struct pg_poll *polled = calloc(1, sizeof *polled);
        if (polled == NULL || uv_poll_init(pg->options.loop, &polled->poll, fd) != 0) {
            free(polled);
            return false;
        }
        polled->pg = pg;
        polled->fd = fd;
        polled->poll.data = polled;
        pg->polled = polled;
    }
    if (pg->polled->events != events) {
        pg->polled->events = events;
        return uv_poll_start(&pg->polled->poll, events, on_poll) == 0;
    }
    return true;
}

void pg_session_poll(struct pg *pg)
{
    int left = pg->is_broken ? -1 : PQflush(pg->conn);
    int events = UV_READABLE | (left > 0 ? UV_WRITABLE : 0);
    if (left < 0 || !poll_start(pg, events)) {
        pg->is_broken = true;
        poll_end(pg); /* at once, since the number of a closed socket may be reused */
        pg_timer_set(pg);
    }
}

void pg_session_drop(struct pg *pg)
{
    pg_resolve_cancel(pg);
    pg_pooling_stop(pg);
    poll_end(pg);
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->is_broken = false;
    pg->broken_why = (struct err){0};
    pg->last_words[0] = '\0';
    pg->prepared_count = 0;
    pg->prepare_err = (struct err){0};
    pg->backend = (struct pg_backend){0};
}

static void to_limbo(struct pg *pg)
{
    bool has_requests = false;
    for (struct pg_op *op = pg_ops_pop(&pg->sent); op != NULL; op = pg_ops_pop(&pg->sent)) {
        if (op->prepares != NULL) {
            pg_op_free(op);
        } else {
            has_requests = true;
            pg_ops_push(&pg->limbo, op);
        }
    }
    if (has_requests) {
        pg->old = pg->backend;
    }
}

void pg_session_lost(struct pg *pg, const struct err *why)
{
    int64_t now_us = clock_boot_us();
    if (pg->stage == PG_UP) {
        to_limbo(pg);
        pg->retry_us = now_us - pg->up_since_us > SETTLED_US ? PG_RETRY_FIRST_US : pg->retry_us;
    }
    pg_session_drop(pg);
    pg->stage = PG_AWAY;
    pg->wake_us = now_us + rand_jitter(&pg->rand, pg->retry_us, 50);
    pg->retry_us = pg->retry_us * 2 < RETRY_MAX_US ? pg->retry_us * 2 : RETRY_MAX_US;
    pg_timer_set(pg);
    if (pg->options.on_down != NULL) {
        pg->options.on_down(pg->options.ctx, why);
    }
}

/* No answer in time: this host may be gone, and another may have taken over. */
static void lost_by_silence(struct pg *pg, const struct err *why)
{
    pg->host_turn++;
    pg_session_lost(pg, why);
}

/* Prefers the server's last words: libpq has no text for an end that it did not detect itself, and
 * its text about a closed connection only guesses. */
static void lost_by_libpq(struct pg *pg, const char *what)
{
    struct err why = {0};
    char text[PG_CONNECT_TEXT_SIZE];
    pg_connect_text(pg->last_words[0] != '\0' ? pg->last_words : PQerrorMessage(pg->conn), text);
    err_set(&why, STATUS_UNAVAILABLE, 0, "%s: %s", what,
            text[0] != '\0' ? text : "closed without a message by the server or the network");
    pg_session_lost(pg, &why);
}

/* ---- stages ---- */

/* Notices are ignored, except that an idle session gets the reason for its end in one. */
static void on_notice(void *ctx, const PGresult *rows)
{
    struct pg *pg = ctx;
    const char *severity = PQresultErrorField(rows, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(rows, PG_DIAG_MESSAGE_PRIMARY);
    bool is_last =
        severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
    if (is_last && text != NULL) {
        (void)snprintf(pg->last_words, sizeof pg->last_words, "%s", text);
    }
}

/* Begins to connect. The keepalives free the socket of a host that vanished; they don't replace our
 * own deadline, since a stopped server still answers TCP. */
static PGconn *connect_start(const struct pg *pg, const struct pg_hosts *hosts)
{
    const char *names[16] = {"target_session_attrs", "dbname",          "application_name",
                             "client_encoding",      "keepalives_idle", "keepalives_interval",
                             "keepalives_count",     "tcp_user_timeout"};
    const char *values[16] = {
        "read-write", /* before conninfo, which may ask for another */
        pg->options.conninfo, pg->options.application_name, "UTF8", "5", "2", "3", "10000"};
    size_t count = 8;
    if (hosts->host != NULL) {
        const char *more[][2] = {
            {"host", hosts->host}, {"hostaddr", hosts->hostaddr}, {"port", hosts->port}};
        for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
            names[count] = more[i][0];
            values[count++] = more[i][1];
        }
    }
    return PQconnectStartParams(names, values, 1);
}

static void session_wait(struct pg *pg, enum pg_stage stage, int64_t timeout_us)
{
    pg->stage = stage;
    pg->wake_us = clock_boot_us() + timeout_us;
    pg->stage_err = (struct err){0};
    pg_timer_set(pg);
}

/* Sends one simple query; stage_end() acts on its result. */
static void stage_query(struct pg *pg, enum pg_stage stage, int64_t timeout_us, const char *sql)
{
    session_wait(pg, stage, timeout_us);
    if (PQsendQuery(pg->conn, sql) != 1) {
        lost_by_libpq(pg, "start a PostgreSQL session");
        return;
    }
    pg_session_poll(pg);
}

static void start_setup(struct pg *pg)
{
    char listen[SETUP_TEXT_MAX / 4] = "";
    if (pg->options.listen != NULL) {
        char *name = PQescapeIdentifier(pg->conn, pg->options.listen, strlen(pg->options.listen));
        (void)snprintf(listen, sizeof listen, "LISTEN %s;", name != NULL ? name : "claimd");
        PQfreemem(name);
    }
    char sql[SETUP_TEXT_MAX];
    (void)snprintf(
        sql, sizeof sql,
        SESSION_SETTINGS
        "%s SET lock_timeout = %d; SET statement_timeout = %d; %s"
        "SELECT pid, (extract(epoch FROM backend_start) * 1000000)::bigint " COMMIT_SETTING
        " FROM pg_stat_activity WHERE pid = pg_backend_pid()%s",
        pg->options.plans_once ? PLANS_ONCE : PLANS_ANEW, pg->options.lock_timeout_ms,
        pg->options.statement_timeout_ms, listen,
        SEEDED_BUG(7) ? "; SET synchronous_commit = off" : "");
    stage_query(pg, PG_SETTING_UP, pg->options.timeout_us, sql);
}

/* Ends the old backend: if it waits for a row, it would still commit later (ARCHITECTURE §4.11). */
static void start_ending(struct pg *pg)
{
    char sql[SETUP_TEXT_MAX];
    (void)snprintf(sql, sizeof sql,
                   PG_FIXED_PATH
                   "SET LOCAL statement_timeout = 0;"
                   "SELECT pg_terminate_backend(pid, %d) FROM pg_stat_activity WHERE pid = %d "
                   "AND (extract(epoch FROM backend_start) * 1000000)::bigint = %" PRId64,
                   END_BACKEND_MS, pg->old.pid, pg->old.start_us);
    stage_query(pg, PG_ENDING, END_BACKEND_MS * US_PER_MS + pg->options.timeout_us, sql);
}

static void session_up(struct pg *pg)
{
    if (PQenterPipelineMode(pg->conn) != 1) {
        lost_by_libpq(pg, "enter pipeline mode");
        return;
    }
    pg->stage = PG_UP;
    pg->up_since_us = clock_boot_us();
    pg_timer_set(pg);
    struct err why = {0};
    err_set(&why, STATUS_UNKNOWN, 0, "the connection was lost before the reply");
    pg_limbo_end(pg, &why);
    if (pg->stage == PG_UP && pg->options.on_up != NULL) {
        pg->options.on_up(pg->options.ctx);
    }
}

/* ---- looking for a pooler ---- */

static void pooled_by_transaction(struct pg *pg)
{
    struct err why = {0};
    err_set(&why, STATUS_INVALID, 0,
            "postgres.conninfo leads to a pooler in transaction mode: prepared statements and "
            "LISTEN need PostgreSQL itself, or a pooler in session mode");
    pg_session_lost(pg, &why);
}

static void on_pooling(struct pg *pg, enum pg_pooling_kind kind)
{
    if (pg->is_asking_again) {
        return; /* the reply is on its way */
    }
    switch (kind) {
    case PG_POOLING_UNKNOWN:
        pg_pooling_stop(pg);
        session_up(pg);
        break;
    case PG_POOLING_LOOK_AGAIN:
        pg->is_asking_again = true;
        stage_query(pg, PG_PROBING, pg->options.timeout_us, "SELECT pg_catalog.pg_backend_pid()");
        break;
    case PG_POOLING_BY_TRANSACTION:
        pooled_by_transaction(pg);
        break;
    }
}

static void start_probing(struct pg *pg)
{
    pg->is_asking_again = false;
    session_wait(pg, PG_PROBING, pg->options.timeout_us);
    if (pg_pooling_start(pg, on_pooling, NULL) != STATUS_OK) {
        session_up(pg);
    }
}

static void end_probing(struct pg *pg)
{
    if (!pg->is_asking_again) {
        return; /* other input arrived */
    }
    if (pg->server_pid_now != pg->backend.pid) {
        pooled_by_transaction(pg);
        return;
    }
    pg_pooling_stop(pg);
    session_up(pg);
}

/* Handles a deadline without an answer: either the second connection waits for a server (session
 * mode, all are in use), or we wait for the one that it holds. */
static void probing_late(struct pg *pg)
{
    if (pg->is_asking_again) {
        pooled_by_transaction(pg);
    } else {
        on_pooling(pg, PG_POOLING_UNKNOWN);
    }
}

static void stage_take(struct pg *pg, const PGresult *rows)
{
    ExecStatusType kind = PQresultStatus(rows);
    if (kind == PGRES_TUPLES_OK && pg->stage == PG_ENDING && PQntuples(rows) > 0) {
        bool is_gone = strcmp(PQgetvalue(rows, 0, 0), "t") == 0;
        pg->is_old_alive = !is_gone;
    } else if (kind == PGRES_TUPLES_OK && pg->stage == PG_PROBING && PQntuples(rows) > 0) {
        pg->server_pid_now = (int)strtol(PQgetvalue(rows, 0, 0), NULL, 10);
    } else if (kind == PGRES_TUPLES_OK && pg->stage == PG_SETTING_UP && PQntuples(rows) > 0) {
        pg->backend.pid = (int)strtol(PQgetvalue(rows, 0, 0), NULL, 10);
        pg->backend.start_us = strtoll(PQgetvalue(rows, 0, 1), NULL, 10);
    } else if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
        pg_err_from(&pg->stage_err, rows);
    }
}

static void stage_end(struct pg *pg)
{
    if (pg->stage_err.status != STATUS_OK) {
        struct err why = pg->stage_err;
        err_prefix(&why, "start a PostgreSQL session");
        pg_session_lost(pg, &why);
    } else if (pg->stage == PG_SETTING_UP && pg_pooling_is_possible(pg)) {
        start_probing(pg);
    } else if (pg->stage == PG_SETTING_UP) {
        session_up(pg);
    } else if (pg->stage == PG_PROBING) {
        end_probing(pg);
    } else if (pg->is_old_alive) {
        pg->is_old_alive = false;
        start_ending(pg);
    } else {
        pg->old = (struct pg_backend){0};
        start_setup(pg);
    }
}

static void stage_read(struct pg *pg)
{
    while (PQisBusy(pg->conn) == 0) {
        PGresult *rows = PQgetResult(pg->conn);
        if (rows == NULL) {
            stage_end(pg);
            return;
        }
        stage_take(pg, rows);
        PQclear(rows);
    }
}

static void connect_go_on(struct pg *pg)
{
    poll_end(pg);
    PostgresPollingStatusType next = PQconnectPoll(pg->conn);
    if (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
        if (!poll_start(pg, next == PGRES_POLLING_READING ? UV_READABLE : UV_WRITABLE)) {
            lost_by_libpq(pg, "watch the connection to PostgreSQL");
        }
        return;
    }
    if (next != PGRES_POLLING_OK || PQsetnonblocking(pg->conn, 1) != 0) {
        lost_by_libpq(pg, "connect to PostgreSQL");
        return;
    }
    (void)PQsetNoticeReceiver(pg->conn, on_notice, pg);
    pg->server_version = PQserverVersion(pg->conn);
    if (pg->limbo.first != NULL && pg->old.pid != 0) {
        start_ending(pg);
    } else {
        start_setup(pg);
    }
}

static void connect_to(struct pg *pg, const struct pg_hosts *hosts)
{
    pg->conn = connect_start(pg, hosts);
    pg->stage = PG_CONNECTING;
    if (pg->conn == NULL || PQstatus(pg->conn) == CONNECTION_BAD || !poll_start(pg, UV_WRITABLE)) {
        lost_by_libpq(pg, "connect to PostgreSQL");
    }
}

static void on_resolved(struct pg *pg, enum status st, const struct pg_hosts *hosts,
                        const struct err *err)
{
    if (st != STATUS_OK) {
        pg_session_lost(pg, err);
        return;
    }
    connect_to(pg, hosts);
}

void pg_session_start(struct pg *pg)
{
    const struct pg_hosts as_given = {0};
    struct err why = {0};
    session_wait(pg, PG_RESOLVING, pg->options.timeout_us);
    enum status st = pg_resolve_start(pg, on_resolved, &why);
    if (st == STATUS_NOT_FOUND) {
        connect_to(pg, &as_given);
    } else if (st != STATUS_OK) {
        pg_session_lost(pg, &why);
    }
}

/* ---- events ---- */

static void notifications_read(struct pg *pg)
{
    while (pg->stage == PG_UP) {
        PGnotify *n = PQnotifies(pg->conn);
        if (n == NULL) {
            return;
        }
        if (pg->options.on_notify != NULL) {
            pg->options.on_notify(pg->options.ctx, n->relname, n->extra);
        }
        PQfreemem(n);
    }
}

/* May change the stage, even to PG_CLOSED. */
static void session_read(struct pg *pg)
{
    bool is_alive = PQconsumeInput(pg->conn) == 1;
    if (pg->stage == PG_UP) {
        pg_requests_read(pg);
        notifications_read(pg);
    } else {
        stage_read(pg);
    }
    if (pg->stage == PG_CLOSED || pg->stage == PG_AWAY) {
        return;
    }
    if (!is_alive || PQstatus(pg->conn) == CONNECTION_BAD) {
        lost_by_libpq(pg, "connection to PostgreSQL lost");
        return;
    }
    pg_session_poll(pg);
    pg_timer_set(pg);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct pg_poll *polled = poll->data;
    struct pg *pg = polled->pg;
    if (status < 0 && pg->stage != PG_CONNECTING) {
        lost_by_libpq(pg, "connection to PostgreSQL lost");
    } else if (pg->stage == PG_CONNECTING) {
        connect_go_on(pg);
    } else {
        session_read(pg);
    }
}

static bool is_overdue(const struct pg *pg, int64_t now_us)
{
    for (const struct pg_op *op = pg->sent.first; op != NULL; op = op->next) {
        if (op->deadline_us <= now_us) {
            return true;
        }
    }
    return false;
}

void pg_session_tick(struct pg *pg, int64_t now_us)
{
    struct err why = {0};
    if (pg->stage == PG_UP && !pg->is_broken && is_overdue(pg, now_us)) {
        session_read(pg); /* the process may have been suspended: the reply may have arrived */
    }
    if (pg->stage == PG_CLOSED) {
        return;
    }
    if (pg->is_broken && pg->broken_why.status != STATUS_OK) {
        why = pg->broken_why;
        pg_session_lost(pg, &why);
    } else if (pg->is_broken) {
        lost_by_libpq(pg, "connection to PostgreSQL lost");
    } else if (pg->stage == PG_UP && is_overdue(pg, now_us)) {
        err_set(&why, STATUS_TIMEOUT, 0, "no reply from PostgreSQL in time: connection dropped");
        lost_by_silence(pg, &why);
    } else if (pg->stage == PG_AWAY && now_us >= pg->wake_us) {
        pg_session_start(pg);
    } else if (pg->stage == PG_PROBING && now_us >= pg->wake_us) {
        probing_late(pg);
    } else if (pg->stage != PG_UP && pg->stage != PG_AWAY && now_us >= pg->wake_us) {
        const char *host = pg->conn == NULL ? NULL : PQhost(pg->conn);
        err_set(&why, STATUS_TIMEOUT, 0, "no PostgreSQL session with %s within %lld ms",
                host == NULL || host[0] == '\0' ? "the host" : host,
                (long long)(pg->options.timeout_us / US_PER_MS));
        lost_by_silence(pg, &why);
    } else {
        pg_timer_set(pg);
    }
}
