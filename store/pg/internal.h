/* SPDX-License-Identifier: Apache-2.0
 *
 * The internals shared by the files of the connection: pg.c handles requests, session.c the
 * sessions below them, value.c parameters and results. */
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

/* One pipeline segment that waits for its sync: either a request or the preparation of a
 * statement. */
struct pg_op {
    struct pg_op *next;
    const struct pg_statement *prepares; /* NULL = a request */
    int64_t deadline_us;
    int step_count;
    int got;
    struct pg_result results[PG_STEPS_MAX];
    struct err err; /* the first error of the segment */
    pg_done_cb *done;
    void *ctx;
};

DEFINE_FIFO(pg_ops, pg_op);

/* The first statement of a session: with their own search path, users could put functions into its
 * schemas that fit the arguments of our statements better than PostgreSQL's. Done by SET, because
 * poolers refuse it as a startup option; startup options and settings of the role or database can't
 * undo it. */
#define PG_FIXED_PATH "SET search_path = pg_catalog, pg_temp;"

/* Writes libpq's text about a connection in one line, with a hint where one is known. */
#define PG_CONNECT_TEXT_SIZE 400
void pg_connect_text(const char *libpq, char ret_text[PG_CONNECT_TEXT_SIZE]);

/* Room for the reason that a server gives when it ends a session. */
#define PG_LAST_WORDS_SIZE 200

enum pg_stage {
    PG_AWAY,       /* waits until the next attempt is due */
    PG_RESOLVING,  /* libuv's thread pool looks up the hosts' names */
    PG_CONNECTING, /* in PQconnectPoll() */
    PG_ENDING,     /* ends the backend of the lost session */
    PG_SETTING_UP,
    PG_PROBING, /* is there a pooler in between, and in which mode? */
    PG_UP,
    PG_CLOSED
};

/* The socket that the loop polls. It is on the heap, since a handle outlives its uv_close() by a
 * turn of the loop, and libpq may change the socket while it connects. */
struct pg_poll {
    uv_poll_t poll;
    struct pg *pg;
    int fd;
    int events;
};

/* A server process. Its start time is needed because the pid may be reused. */
struct pg_backend {
    int pid; /* 0 = none */
    int64_t start_us;
};

struct pg_resolve;
struct pg_pooling;

struct pg {
    struct pg_options options; /* owns the texts */
    uv_timer_t timer;
    enum pg_stage stage;
    PGconn *conn;
    struct pg_poll *polled;
    struct pg_resolve *resolve;
    struct pg_pooling *pooling;
    struct rand rand;
    /* PG_AWAY: time of the next attempt; otherwise, until PG_UP: deadline of the stage */
    int64_t wake_us;
    int64_t retry_us; /* delay before the next attempt, without jitter */
    int64_t up_since_us;
    struct err stage_err; /* error of the session's first queries */
    bool is_probe;        /* this is the second connection, which looks for a pooler */
    bool is_asking_again; /* PROBING: asked again which server process is ours */
    int server_pid_now;
    bool is_old_alive; /* the old backend is still alive after waiting for its end */
    /* found while requests were sent or read; handled in the next turn of the loop */
    bool is_broken;
    struct err broken_why; /* set if the connection itself is fine */
    /* reason given by a server that ended the session; "" = none */
    char last_words[PG_LAST_WORDS_SIZE];
    size_t host_turn; /* index of the host that the next attempt tries first */
    int server_version;
    struct pg_backend backend; /* of the present session */
    struct pg_backend old;     /* the backend of a lost session that had requests in flight */
    struct pg_ops sent;
    struct pg_ops limbo; /* requests sent in a session that was lost */
    const struct pg_statement *prepared[PG_PREPARED_MAX];
    int prepared_count;
    struct err prepare_err; /* error of the last failed preparation */
};

/* pg.c */
void pg_op_free(struct pg_op *op);
void pg_requests_read(struct pg *pg);                    /* may call back */
void pg_limbo_end(struct pg *pg, const struct err *why); /* calls back with UNKNOWN */
void pg_timer_set(struct pg *pg);

/* session.c */
void pg_session_start(struct pg *pg);
void pg_session_tick(struct pg *pg, int64_t now_us);
/* Ends a session that is no longer usable: its requests move to limbo, and the next attempt is
 * scheduled. Calls on_down. */
void pg_session_lost(struct pg *pg, const struct err *why);
void pg_session_drop(struct pg *pg); /* closes the session without calling back */
void pg_session_poll(struct pg *pg);

/* resolve.c: looks up host names without blocking (INTERFACES rule 10); libpq would block while it
 * looks them up. */
struct pg_hosts { /* lists for the libpq keywords of the same names; NULL = as in conninfo */
    const char *host;
    const char *hostaddr;
    const char *port;
};
/* The hosts are borrowed until the callback returns. Never called after pg_resolve_cancel(). */
typedef void pg_resolved_cb(struct pg *pg, enum status st, const struct pg_hosts *hosts,
                            const struct err *err);
/* Looks up the hosts; may call back before it returns. NOT_FOUND: nothing to look up or to reorder,
 * so connect with conninfo as it is. */
enum status pg_resolve_start(struct pg *pg, pg_resolved_cb *done, struct err *err) MUST_USE;
void pg_resolve_cancel(struct pg *pg);

/* pooling.c */
enum pg_pooling_kind {
    PG_POOLING_UNKNOWN, /* the second connection can't be made */
    /* the second connection holds a server: check whether ours is still the same */
    PG_POOLING_LOOK_AGAIN,
    PG_POOLING_BY_TRANSACTION, /* the second connection holds our server */
};
typedef void pg_pooling_cb(struct pg *pg, enum pg_pooling_kind kind);
bool pg_pooling_is_possible(const struct pg *pg); /* of a session that is set up */
enum status pg_pooling_start(struct pg *pg, pg_pooling_cb *done, struct err *err) MUST_USE;
/* no callback comes after this; may be called from within one */
void pg_pooling_stop(struct pg *pg);

/* value.c */
/* takes the SQLSTATE and text of an error */
void pg_err_from(struct err *err, const PGresult *rows);

#endif
