/* SPDX-License-Identifier: Apache-2.0
 *
 * The internals shared by wait.c (the life of a waiter, its tries), wait_queue.c (waiters of this
 * client for the same keys), line.c (their place among all clients) and inbox.c (messages from the
 * nodes). */
#ifndef CLAIMD_REDLOCK_CORE_WAIT_H
#define CLAIMD_REDLOCK_CORE_WAIT_H

#include "redlock/core/core.h"
#include "redlock/rules/line_rules.h"
#include "redlock/rules/retry.h"

#define QUEUE_BUCKETS 4096
#define PLACE_BUCKETS 4096
#define LOOK_MAX_US (200 * US_PER_MS)

/* Waiters of this client for the same keys, in order of arrival; only the first one sends
 * anything. */
struct wait_queue {
    struct wait_queue *next; /* in the same bucket */
    size_t bucket;
    struct redlock_wait *first;
    struct redlock_wait *last;
    enum redlock_result result; /* of the last try; HELD before any */
};

/* A waiter's place in the line of one key, while it holds the keys before it. */
struct place {
    char value[VALUE_SIZE]; /* its token and our label */
    struct redlock_wait *next_in_bucket;
    struct redlock_wait *prev; /* list of all waiters in line, the one refreshed last at the end */
    struct redlock_wait *next;
    size_t key;                  /* index of the key it waits for; the keys before it are held */
    struct redlock_batch **held; /* one batch for each held key */
    /* the last round for this key, which is referenced; NULL = none yet */
    struct redlock_batch *asked;
    struct line_view *views; /* results of that round, one per node */
    unsigned kept;           /* bit per node whose vote was kept */
    int64_t kept_since_us;   /* 0 = no vote is kept */
    unsigned offered;        /* bit per node that has offered the key since the last round began */
    int64_t offered_us;      /* time of the first offer */
    bool is_hasty;      /* an offer that came during a round has brought the present one at once */
    int64_t look_us;    /* when to ask again according to the answers; INT64_MAX = no need */
    int64_t pause_us;   /* between two rounds that keep votes */
    uint32_t foreign;   /* hash of the foreign owner seen last */
    int64_t foreign_us; /* when it was first seen */
};

struct redlock_wait {
    struct redlock_async *lock;
    struct redlock_wait *prev; /* list of all that are not over */
    struct redlock_wait *next; /* … or of those to be reported */
    struct wait_queue *queue;  /* NULL = in no queue: it doesn't wait, or is over */
    struct redlock_wait *prev_in_queue;
    struct redlock_wait *next_in_queue;
    /* its keys and their bytes are stored behind this struct */
    struct redlock_async_request request;
    struct redlock_wait_options options;
    enum redlock_result result;
    struct redlock_batch *batch; /* of the last try, referenced; NULL = none */
    int64_t score;               /* time of its arrival, comparable among all clients (lock.L1) */
    struct place place;
    int tries;
    unsigned failures;    /* in a row; determines the pauses */
    int64_t at_us;        /* time of the next try; INT64_MAX = none planned */
    struct heap_item due; /* the next try or the deadline; in no heap while a try is in flight */
    bool is_in_line;
    bool is_trying;
    bool is_over;
    bool wants_holder_ttl; /* the caller wants it */
    bool is_reported;      /* reported while a try is in flight; freed when that ends */
};

struct inbox;

struct waits {
    struct redlock_wait *all; /* the latest first */
    struct redlock_wait *over;
    struct redlock_wait **over_end;
    size_t count;    /* number of waiters that are not over */
    struct heap due; /* of the waiters that are not over */
    struct wait_queue *queues[QUEUE_BUCKETS];
    bool is_any_due; /* a waiter is due now */

    struct redlock_wait *places[PLACE_BUCKETS]; /* by token */
    struct redlock_wait *first_in_line;         /* the one that was refreshed longest ago */
    struct redlock_wait *last_in_line;
    size_t in_line;
    struct inbox *inbox; /* NULL until a waiter joins a line */
};

/* ---- wait.c ---- */
void wait_plan(struct redlock_wait *w, int64_t at_us);
void wait_plan_not_later(struct redlock_wait *w, int64_t at_us);
void wait_be_due(struct redlock_wait *w); /* makes it try in this turn of the loop */
/* Ends a round in line; `batch` is as in redlock_async_acquired_cb. */
void wait_entered(void *ctx, struct redlock_batch *batch);

/* ---- wait_queue.c ---- */
bool queue_join(struct redlock_wait *w); /* returns false if memory runs out */
/* Leaves the queue; if it was the first, the next one tries. Does nothing if it is in no queue. */
void queue_leave(struct redlock_wait *w);

/* ---- line_terms.c ---- */
int64_t line_between(int64_t us, int64_t min_us, int64_t max_us);
/* Returns two of the slowest rounds, 2 to 200 ms: what is in flight now has arrived by then. */
int64_t line_moment_us(const struct redlock_async *lock);
/* True if another client wanted its key a moment ago. */
bool line_is_hot(const struct redlock_wait *w);

/* ---- line_answer.c ---- */
void line_look_not_later(struct place *p, int64_t at_us);

/* ---- line.c ---- */
/* Joins the line of its first key, from the next try on. Returns false if it can't (memory,
 * randomness). */
bool line_join(struct redlock_wait *w);
/* Asks for the key for which it waits in line, in one round. Returns 0 or a negative errno. */
int line_ask(struct redlock_wait *w, struct redlock_error *ret_error);
/* Continues after a round without a quorum: keeps votes or gives them up, and plans when to ask
 * again. */
void line_go_on(struct redlock_wait *w, struct redlock_batch *batch);
/* Takes a granted key; false = there is another key to wait for. */
bool line_granted(struct redlock_wait *w, struct redlock_batch *batch);
/* Joins the keys, which were won one by one, into one batch. Returns NULL if one of their leases is
 * over, or if memory runs out. */
struct redlock_batch *line_join_leases(struct redlock_wait *w);
/* Leaves the line: what it holds or has votes for goes to the next waiters. Does nothing if it is
 * in no line. */
void line_leave(struct redlock_wait *w);
void line_append(struct redlock_wait *w); /* appends it to the list of waiters in line */
void line_unlink(struct redlock_wait *w);
/* Handles a message for the waiter with that token: a node has offered it the key (0), or it should
 * ask for the key in `ms` milliseconds. */
void line_told(struct redlock_async *lock, size_t node, const char *token, int64_t ms);

/* ---- inbox.c ---- */
/* Opens the channel and keeps the session on each node: for messages to the waiters of this client,
 * and as a sign of life (lock.L6). Returns false if memory runs out. */
bool inbox_open(struct redlock_async *lock);
enum status inbox_set_password(struct redlock_async *lock, const char *password,
                               struct err *err) MUST_USE;
void inbox_nobody_waits(struct redlock_async *lock); /* closes it after a while */
int64_t inbox_tick(struct redlock_async *lock, int64_t now_us);
void inbox_close(struct redlock_async *lock);
void inbox_free(struct redlock_async *lock);

#endif
