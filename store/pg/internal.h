/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the connection share: pg.c has the requests, session.c the sessions under
 * them, value.c parameters and results. */
#ifndef CLAIMD_STORE_PG_INTERNAL_H
#define CLAIMD_STORE_PG_INTERNAL_H

#include "base/clock.h"
#include "base/fifo.h"
#include "base/rand.h"
#include "store/pg/pg.h"

#include <libpq-fe.h>

#define PG_OPS_MAX 256
#define PG_RETRY_FIRST_US (50 * US_PER_MS)
#define PG_PREPARED_MAX 128
#define PG_NAME_MAX 63 /* NAMEDATALEN - 1 */

struct pg_result {
    PGresult *rows;
};

/* One pipeline segment that waits for its sync: a request, or the preparation of a statement. */
struct pg_op {
    struct pg_op *next;
    const struct pg_statement *prepares; /* NULL: a request */
    int64_t deadline_us;
    int step_count;
    int got;
    struct pg_result results[PG_STEPS_MAX];
    struct err err; /* the first refusal of the segment */
    pg_done_cb *done;
    void *ctx;
};

DEFINE_FIFO(pg_ops, pg_op);

/* Before all else in a session: users may put functions into the schemas of its own path that fit
 * the arguments of our statements better than PostgreSQL's. By SET, since poolers refuse it as a
 * startup option; a startup option or a setting of the role or database can't undo it. */
#define PG_FIXED_PATH "SET search_path = pg_catalog, pg_temp;"

/* What libpq says of a connection, in one line, with what to do about it where that is known. */
#define PG_CONNECT_TEXT_SIZE 400
void pg_connect_text(const char *libpq, char ret_text[PG_CONNECT_TEXT_SIZE]);

/* Why a server ends a session, in its own words. */
#define PG_LAST_WORDS_SIZE 200

enum pg_stage {
    PG_AWAY,       /* waits for the time of the next attempt */
    PG_RESOLVING,  /* libuv's pool looks up the names of the hosts */
    PG_CONNECTING, /* in PQconnectPoll() */
    PG_ENDING,     /* ends the predecessor's backend */
    PG_SETTING_UP,
    PG_PROBING, /* is there a pooler in between, and of which kind? */
    PG_UP,
    PG_CLOSED
};

/* The socket that the loop polls. On the heap, since a handle outlives its uv_close() by a turn of
 * the loop, and libpq may change the socket while it connects. */
struct pg_poll {
    uv_poll_t poll;
    struct pg *pg;
    int fd;
    int events;
};

/* A server process: the pid alone may be somebody else's by now. */
struct pg_backend {
    int pid; /* 0 = none */
    int64_t start_us;
};

struct pg_resolve;
struct pg_pooling;

struct pg {
    struct pg_options options; /* its texts are owned */
    uv_timer_t timer;
    enum pg_stage stage;
    PGconn *conn;
    struct pg_poll *polled;
    struct pg_resolve *resolve;
    struct pg_pooling *pooling;
    struct rand rand;
    int64_t wake_us;  /* AWAY: next attempt; until UP: deadline of the stage */
    int64_t retry_us; /* distance to the next attempt, before jitter */
    int64_t up_since_us;
    struct err stage_err; /* refusal of a session's first queries */
    bool is_probe;        /* the second connection that looks for a pooler */
    bool is_asking_again; /* PROBING: which server is ours now? */
    int server_pid_now;
    bool is_old_alive;     /* still, after waiting for its end */
    bool is_broken;        /* found while requests came and went, acted on in the next turn */
    struct err broken_why; /* where the connection itself is fine */
    char last_words[PG_LAST_WORDS_SIZE]; /* of a server that ended the session; "" = none */
    size_t host_turn;                    /* with which of several hosts the next attempt begins */
    int server_version;
    struct pg_backend backend; /* of the present session */
    struct pg_backend old;     /* had requests in flight when it was lost */
    struct pg_ops sent;
    struct pg_ops limbo; /* sent in a session that was lost */
    const struct pg_statement *prepared[PG_PREPARED_MAX];
    int prepared_count;
    struct err prepare_err; /* why the last failed preparation failed */
};

/* pg.c */
void pg_op_free(struct pg_op *op);
void pg_requests_read(struct pg *pg);                    /* calls back */
void pg_limbo_end(struct pg *pg, const struct err *why); /* calls back with UNKNOWN */
void pg_timer_set(struct pg *pg);

/* session.c */
void pg_session_start(struct pg *pg);
void pg_session_tick(struct pg *pg, int64_t now_us);
/* The session is of no more use: what was sent goes to limbo, the next attempt is timed. Calls
 * on_down. */
void pg_session_lost(struct pg *pg, const struct err *why);
void pg_session_drop(struct pg *pg); /* closes, says nothing */
void pg_session_poll(struct pg *pg);

/* resolve.c: hosts that are names get their addresses without blocking (INTERFACES rule 10);
 * libpq would look them up itself, and wait. */
struct pg_hosts { /* lists for libpq's keywords of these names; NULL = as in conninfo */
    const char *host;
    const char *hostaddr;
    const char *port;
};
/* Borrowed until it returns. Never called after pg_resolve_cancel(). */
typedef void pg_resolved_cb(struct pg *pg, enum status st, const struct pg_hosts *hosts,
                            const struct err *err);
/* May call back at once. NOT_FOUND: there is nothing to look up or to order, connect with conninfo
 * as it is. */
enum status pg_resolve_start(struct pg *pg, pg_resolved_cb *done, struct err *err) MUST_USE;
void pg_resolve_cancel(struct pg *pg);

/* pooling.c */
enum pg_pooling_kind {
    PG_POOLING_UNKNOWN,        /* the second connection can't be made */
    PG_POOLING_LOOK_AGAIN,     /* it holds a server: is ours still the one that it was? */
    PG_POOLING_BY_TRANSACTION, /* it holds ours */
};
typedef void pg_pooling_cb(struct pg *pg, enum pg_pooling_kind kind);
bool pg_pooling_is_possible(const struct pg *pg); /* of a session that is set up */
enum status pg_pooling_start(struct pg *pg, pg_pooling_cb *done, struct err *err) MUST_USE;
void pg_pooling_stop(struct pg *pg); /* never called back after it; also from within */

/* value.c */
void pg_err_from(struct err *err, const PGresult *rows); /* a refusal's SQLSTATE and text */

#endif
