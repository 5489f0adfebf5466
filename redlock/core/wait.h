/* SPDX-License-Identifier: Apache-2.0
 *
 * What wait.c (the life of a waiter, its tries), wait_queue.c (waiters of this client for the same
 * keys), line.c (their place among all clients) and inbox.c (what the nodes tell) share. */
#ifndef CLAIMD_REDLOCK_CORE_WAIT_H
#define CLAIMD_REDLOCK_CORE_WAIT_H

#include "redlock/core/core.h"
#include "redlock/rules/line_rules.h"
#include "redlock/rules/retry.h"

#define QUEUE_BUCKETS 4096
#define PLACE_BUCKETS 4096
#define LOOK_MAX_US (200 * US_PER_MS)

/* Waiters of this client for the same keys, the first one at the head; only that one sends
 * anything. */
struct wait_queue {
    struct wait_queue *next; /* in its bucket */
    size_t bucket;
    struct redlock_wait *first;
    struct redlock_wait *last;
    enum redlock_result result; /* of the last try; HELD before any */
};

/* Where a waiter stands: in the line of one key, while it holds those before. */
struct place {
    char value[VALUE_SIZE]; /* its token, and our label */
    struct redlock_wait *next_in_bucket;
    struct redlock_wait *prev; /* all in line, the one that was refreshed last at the end */
    struct redlock_wait *next;
    size_t key;                  /* waited for; the ones before it are held */
    struct redlock_batch **held; /* one for each of these */
    struct redlock_batch *asked; /* the last round for this key, referenced; NULL = none yet */
    struct line_view *views;     /* of that round, one for each node */
    unsigned kept;               /* bit per node whose vote was kept */
    int64_t kept_since_us;       /* 0 = none is */
    unsigned offered;            /* bit per node, since the last round began */
    int64_t offered_us;          /* the first of them */
    bool is_hasty;               /* offers that came during a round brought the next one at once */
    int64_t look_us;             /* the round's answers say: look again then; INT64_MAX = no need */
    int64_t pause_us;            /* between two rounds that keep votes */
    uint32_t foreign;            /* hash of the foreign owner seen last */
    int64_t foreign_us;          /* since then */
};

struct redlock_wait {
    struct redlock_async *lock;
    struct redlock_wait *prev; /* all that are not over */
    struct redlock_wait *next; /* … or those to be reported */
    struct wait_queue *queue;  /* NULL = it is in no queue: it doesn't wait, or is over */
    struct redlock_wait *prev_in_queue;
    struct redlock_wait *next_in_queue;
    struct redlock_async_request request; /* its keys and their bytes lie behind this */
    struct redlock_wait_options options;
    enum redlock_result result;
    struct redlock_batch *batch; /* of the last try, referenced; NULL = none */
    int64_t score;               /* its arrival, for all clients (lock.L1) */
    struct place place;
    int tries;
    unsigned failures;    /* for the pauses */
    int64_t at_us;        /* of the next try; INT64_MAX = none planned */
    struct heap_item due; /* at the next try or the deadline; in no heap while it tries */
    bool is_in_line;
    bool is_trying;
    bool is_over;
    bool wants_holder_ttl; /* the caller does */
    bool is_reported;      /* but a try is still under way; freed when that ends */
};

struct inbox;

struct waits {
    struct redlock_wait *all; /* the latest first */
    struct redlock_wait *over;
    struct redlock_wait **over_end;
    size_t count;    /* of those that are not over */
    struct heap due; /* these */
    struct wait_queue *queues[QUEUE_BUCKETS];
    bool is_any_due; /* at_us is now */

    struct redlock_wait *places[PLACE_BUCKETS]; /* by token */
    struct redlock_wait *first_in_line;         /* refreshed longest ago */
    struct redlock_wait *last_in_line;
    size_t in_line;
    struct inbox *inbox; /* NULL until somebody stands in line */
};

/* ---- wait.c ---- */
void wait_plan(struct redlock_wait *w, int64_t at_us);
void wait_plan_not_later(struct redlock_wait *w, int64_t at_us);
void wait_be_due(struct redlock_wait *w); /* tries in this turn of the loop */
/* A round in line is over; `batch` as redlock_async_acquired_cb has it. */
void wait_entered(void *ctx, struct redlock_batch *batch);

/* ---- wait_queue.c ---- */
bool queue_join(struct redlock_wait *w); /* false = no memory */
/* If it was the first, the next one tries. Does nothing if it is in no queue. */
void queue_leave(struct redlock_wait *w);

/* ---- line_terms.c ---- */
int64_t line_between(int64_t us, int64_t min_us, int64_t max_us);
/* Two of the slowest rounds, 2 to 200 ms: what is on its way now has come by then. */
int64_t line_moment_us(const struct redlock_async *lock);
/* Has another client waited for its key a moment ago? */
bool line_is_hot(const struct redlock_wait *w);

/* ---- line_answer.c ---- */
void line_look_not_later(struct place *p, int64_t at_us);

/* ---- line.c ---- */
/* Stands in the line of its first key from the next try on. False = it can't (memory,
 * randomness). */
bool line_join(struct redlock_wait *w);
/* One round of asking for the key that it stands in line for. 0 or a negative errno. */
int line_ask(struct redlock_wait *w, struct redlock_error *ret_error);
/* After a round without a quorum: votes are kept or given up, and the next look is planned. */
void line_go_on(struct redlock_wait *w, struct redlock_batch *batch);
/* The key was granted; false = there is another one to wait for. */
bool line_granted(struct redlock_wait *w, struct redlock_batch *batch);
/* One batch of all the keys, which are held one by one; NULL = a lease of them is over, or there is
 * no memory. */
struct redlock_batch *line_join_leases(struct redlock_wait *w);
/* Out of the line: what it holds or has votes for goes to the next ones. Does nothing if it is in
 * no line. */
void line_leave(struct redlock_wait *w);
void line_append(struct redlock_wait *w); /* to the list of those in line */
void line_unlink(struct redlock_wait *w);
/* A node has offered the key to the waiter with that token (0), or it is to be asked for in so many
 * ms. */
void line_told(struct redlock_async *lock, size_t node, const char *token, int64_t ms);

/* ---- inbox.c ---- */
/* What the nodes tell the waiters of this client, and that they live (lock.L6): one session and one
 * channel per node. False = no memory. */
bool inbox_open(struct redlock_async *lock);
enum status inbox_set_password(struct redlock_async *lock, const char *password,
                               struct err *err) MUST_USE;
void inbox_nobody_waits(struct redlock_async *lock); /* it is closed in a while */
int64_t inbox_tick(struct redlock_async *lock, int64_t now_us);
void inbox_close(struct redlock_async *lock);
void inbox_free(struct redlock_async *lock);

#endif
