/* SPDX-License-Identifier: Apache-2.0
 *
 * Redlock over N independent masters on the caller's event loop: the asynchronous core, on which
 * the client of redlock.h is built. K keys are locked together under one token, in one round to all
 * nodes at once, with a result per key; won keys are kept (extended at T/3) until they are
 * released. The rules are the numbered lines of docs/lock.md; comments and tests cite them.
 *
 * A lease is not a proof: code that acts on a resource under a lock also needs a fence
 * (lock.G1–G6). Decisions are pure (tally.h, lease.h, clockwatch.h); this module does the I/O. One
 * thread, one libuv loop, no global state. Every callback comes from the loop, never from inside a
 * call. Times are int64_t microseconds; deadlines are CLOCK_BOOTTIME (lock.A2). Functions that can
 * fail return 0 or a negative errno. */
#ifndef REDLOCK_ASYNC_H
#define REDLOCK_ASYNC_H

#include "redlock_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uv_loop_s uv_loop_t; /* as <uv.h> has it */

#define REDLOCK_MESSAGE_SIZE REDLOCK_TEXT_SIZE

struct redlock_error {
    int code;                           /* a negative errno; 0 = no error */
    char message[REDLOCK_MESSAGE_SIZE]; /* names the node or the option, and what to change */
};

#define REDLOCK_TOKEN_LEN 27  /* 20 random bytes in base64url (lock.K1) */
#define REDLOCK_PREFIX_LEN 12 /* the part drawn once per client; the rest is drawn per batch */
/* A key's value is TOKEN or TOKEN|LABEL (lock.K3). Longer values are those of other programs. */
#define REDLOCK_VALUE_LEN_MAX (REDLOCK_TOKEN_LEN + 1 + REDLOCK_LABEL_LEN_MAX)

/* ---- nodes ---- */

struct redlock_node {
    const char *url;  /* in one of the forms that struct redlock_options lists */
    const char *user; /* user and password are used if the URL has none; may be NULL */
    const char *password;
};

/* For nodes whose URL is rediss://. The server's certificate is always verified. */
struct redlock_tls {
    const char *ca_file;   /* PEM; NULL = the system's */
    const char *cert_file; /* of the client; NULL = none */
    const char *key_file;
    const char *server_name; /* expected in the certificate; NULL = the node's host */
};

/* ---- the client ---- */

struct redlock_async;
struct redlock_batch;

typedef void redlock_async_node_cb(void *ctx, size_t node, enum redlock_event_kind event,
                                   int64_t until_us, const char *why);

/* The state of a kept key has changed; called at most once per transition (lock.W8). `user` is the
 * key's. */
typedef void redlock_async_state_cb(void *ctx, struct redlock_batch *batch, size_t index,
                                    void *user, enum redlock_state state);

struct redlock_async_options {
    uv_loop_t *loop;
    const struct redlock_node *nodes; /* copied */
    size_t node_count;                /* 1 to REDLOCK_NODES_MAX */
    const struct redlock_tls *tls;    /* copied; may be NULL */
    int64_t ttl_us;                   /* T ≥ 1 s and ≥ 10 · node timeout (lock.A16) */
    int64_t ttl_max_us;               /* T_max of all clients: length of a quarantine; ≥ ttl */
    int64_t node_timeout_us;          /* τ */
    int64_t min_validity_us;          /* a lock counts as won only with at least this; 0 = T/2 */
    int drift_ppm;                    /* 10000 = 1 % */
    bool trust_fresh;                 /* for clusters that have just started their masters */
    bool allow_unsafe;
    bool allow_short_ttl; /* for tests: any T above the node timeout is allowed */
    bool no_line;         /* releases hand nothing over, and waiters poll (lock.L9) */
    const char *prefix; /* of the library's own keys, the same for all clients; NULL = "redlock:" */
    /* Identifies us to others that find our keys: 1 to 64 printable ASCII characters, copied; part
     * of the value of each key. NULL or "" = none. */
    const char *label;
    redlock_async_node_cb *on_node;   /* may be NULL */
    redlock_async_state_cb *on_state; /* may be NULL */
    void *ctx;
};

/* Starts connecting to all nodes. −EINVAL (bounds, duplicates, a character of the label), −ENOMEM,
 * −EIO (no randomness). */
int redlock_async_open(const struct redlock_async_options *options, struct redlock_async **ret_lock,
                       struct redlock_error *ret_error);

/* Sends pending releases, for at most τ, then closes every connection and frees everything; `done`
 * (may be NULL) is called when no libuv handle is left. Acquisitions in flight end as CANCELLED. */
typedef void redlock_async_closed_cb(void *ctx);
void redlock_async_close(struct redlock_async *lock, redlock_async_closed_cb *done, void *ctx);

/* Sets the password for nodes whose URL has none, from the next connection to each of them on;
 * existing connections are kept. −EINVAL: too long. */
int redlock_async_set_password(struct redlock_async *lock, const char *password,
                               struct redlock_error *ret_error);

size_t redlock_async_quorum(const struct redlock_async *lock);
/* Returns the number of nodes that are up and may vote now. */
size_t redlock_async_voting(const struct redlock_async *lock);
static inline bool redlock_async_has_quorum(const struct redlock_async *lock)
{
    return redlock_async_voting(lock) >= redlock_async_quorum(lock);
}
/* Returns the REDLOCK_PREFIX_LEN characters with which every token of this client begins. */
const char *redlock_async_prefix(const struct redlock_async *lock);
int64_t redlock_async_drift_us(const struct redlock_async *lock); /* D for the client's T */

/* ---- acquiring ---- */

struct redlock_async_key {
    const char *bytes; /* copied */
    size_t len;
    void *user;
};

/* The results are known, and the caller owns the batch: every key that was OK must be passed once
 * to redlock_batch_release() or redlock_batch_drop(). The others are already being released
 * everywhere (lock.A10). The batch may be read until its last won key has been released or dropped;
 * if none was won, until this callback returns. */
typedef void redlock_async_acquired_cb(void *ctx, struct redlock_batch *batch);

struct redlock_async_request {
    const struct redlock_async_key *keys;
    size_t count;        /* 1 to REDLOCK_KEYS_MAX */
    int64_t ttl_us;      /* 0 = the client's */
    int64_t max_hold_us; /* the lease ends at this age at the latest (lock.E9); 0 = no bound */
    bool is_not_kept;    /* only redlock_batch_extend() extends it */
    /* Sends the keys in the given order. Otherwise they are shuffled, so that two overlapping
     * batches don't collide on the same keys in the same order. */
    bool is_ordered;
    /* For redlock_batch_holder() and …_holder_ttl_us(); costs a PTTL per key and node. */
    bool wants_holder_ttl;
    redlock_async_acquired_cb *done;
    void *ctx;
};

/* Acquires the keys in one round, ≤ τ. Its commands are sent at the end of this turn of the loop,
 * after everything that is released in this turn. −EINVAL (bounds, an empty key), −ENOMEM, −EIO (no
 * randomness), −ESHUTDOWN (closing). */
int redlock_async_acquire(struct redlock_async *lock, const struct redlock_async_request *request,
                          struct redlock_error *ret_error);

size_t redlock_batch_count(const struct redlock_batch *batch);
void *redlock_batch_user(const struct redlock_batch *batch, size_t index);
enum redlock_result redlock_batch_result(const struct redlock_batch *batch, size_t index);
enum redlock_vote redlock_batch_vote(const struct redlock_batch *batch, size_t index, size_t node);
/* Returns the label of the holder of a refused key: the one that most of the refusing nodes name,
 * if they agree; otherwise one that some node names. "" = it has none, or is unknown. Printable,
 * but anyone may have written it. Valid as long as the batch. */
const char *redlock_batch_holder(const struct redlock_batch *batch, size_t index);
/* Returns the time until the lease of a refused key's holder ends, according to the nodes; −1 =
 * unknown. */
int64_t redlock_batch_holder_ttl_us(const struct redlock_batch *batch, size_t index);
enum redlock_state redlock_batch_state(const struct redlock_batch *batch, size_t index);
/* Returns the local deadline of the key's lease: t0 + T − D of the last confirmed round (lock.A4,
 * E4, E7). */
int64_t redlock_batch_deadline_us(const struct redlock_batch *batch, size_t index);

/* ---- extending and releasing ---- */

/* The outcome of a release, in nodes × keys (lock.R6). */
struct redlock_released {
    unsigned deleted;
    unsigned stolen; /* held by another although our lease had not ended: a safety event */
    unsigned missing;
    unsigned unknown; /* not acknowledged: the key on that node ends by its ttl */
};

/* Runs an extension round for this key now. `done` gets OK (confirmed), LOST (lost), or SPLIT or
 * NO_QUORUM (not confirmed, the old deadline still holds). −EINVAL: the key is no longer held;
 * −ENOMEM. A release of the key meanwhile ends the round as CANCELLED. */
typedef void redlock_async_extended_cb(void *ctx, enum redlock_result result);
int redlock_batch_extend(struct redlock_batch *batch, size_t index, redlock_async_extended_cb *done,
                         void *ctx);

/* Releases the key by compare-and-delete on all nodes (lock.R2), without making the caller wait
 * (R5). All keys released in one turn of the loop are sent in as few commands per node as
 * possible. */
void redlock_batch_release(struct redlock_batch *batch, size_t index);

/* Does the same; `done` (may be NULL) gets the outcome, after τ at the latest. */
typedef void redlock_async_released_cb(void *ctx, const struct redlock_released *released);
void redlock_batch_release_tell(struct redlock_batch *batch, size_t index,
                                redlock_async_released_cb *done, void *ctx);

/* Stops extending the key without releasing it: it ends by its ttl (lock.R7). */
void redlock_batch_drop(struct redlock_batch *batch, size_t index);

/* Calls back when all nodes that are up have acknowledged every release so far, after τ at the
 * latest. −ENOMEM. */
typedef void redlock_async_flushed_cb(void *ctx);
int redlock_async_flush(struct redlock_async *lock, redlock_async_flushed_cb *done, void *ctx,
                        struct redlock_error *ret_error);

/* Frees keys whose token starts with a dead predecessor's prefix. Calls back after ≤ τ. */
int redlock_async_free_prefix(struct redlock_async *lock, const char *prefix,
                              const struct redlock_async_key *keys, size_t count,
                              redlock_async_flushed_cb *done, void *ctx,
                              struct redlock_error *ret_error);

/* For operators: takes a key away from its holder, or hands it over to the first in line, on each
 * node where the value is still the one just read (lock.R8). `done` gets the outcome after ≤ τ,
 * counted in nodes: deleted; missing: it was free, or is by now; stolen: another owner came in
 * between and keeps it; unknown: no answer, or a key of another type, which stays. The holder gets
 * LOST at its next extension, as for a theft, which it is; until then it relies on a lock that
 * another client may have. It restores copies as long as a quorum has them (lock.E6): the lock is
 * broken once at least N − Q + 1 nodes have deleted it. −EINVAL, −ENOMEM. */
int redlock_async_break(struct redlock_async *lock, const char *key, size_t key_len,
                        redlock_async_released_cb *done, void *ctx);

/* ---- waiting (wait.c) ---- */

/* Acquires all keys of the request, or none. Waits in line until `deadline_us` (lock.L1–L9); of
 * several keys, it waits for one after the other, holding those before. If the deadline is in the
 * past, it makes up to `retries` more tries, with full jitter (lock.A14). Waiters of one client for
 * the same keys take turns. `done` gets one result; with OK also the batch, whose keys then belong
 * to the caller. */
struct redlock_wait;
typedef void redlock_async_waited_cb(void *ctx, enum redlock_result result, int tries,
                                     struct redlock_batch *batch);
struct redlock_wait_options {
    int64_t deadline_us; /* 0 = no waiting; INT64_MAX = no deadline */
    int retries;
    int64_t retry_base_us;
    int64_t retry_cap_us;
    /* Gets the batch of the last try, to read votes from until the callback returns; NULL if there
     * was no try. */
    redlock_async_waited_cb *done;
    void *ctx;
};
int redlock_async_wait(struct redlock_async *lock, const struct redlock_async_request *request,
                       const struct redlock_wait_options *options, struct redlock_wait **ret_wait,
                       struct redlock_error *ret_error);
/* Cancels the wait: `done` gets CANCELLED, from the loop; a batch won meanwhile is released. Must
 * not be called after `done`. */
void redlock_wait_cancel(struct redlock_wait *wait);

/* ---- fencing tokens (fence.c) ---- */

/* Gets one number for `count` won keys, beginning with `first`, that is higher than any that a
 * quorum knows for one of them: reads the nodes' counters ("<prefix>fence:KEY") and writes the
 * highest + 1 to those that hold our locks; it is valid once a quorum has it for each key. 0 = no
 * quorum confirmed it. −EINVAL: one key is no longer held; −ENOMEM. */
typedef void redlock_async_fenced_cb(void *ctx, uint64_t fence);
int redlock_batch_fence(struct redlock_batch *batch, size_t first, size_t count,
                        redlock_async_fenced_cb *done, void *ctx);

/* ---- inspection ---- */

struct redlock_counters {
    uint64_t results[REDLOCK_RESULTS];
    uint64_t node_errors;
    uint64_t extended;
    uint64_t lost;
    uint64_t stolen; /* a safety event (lock.E3, R6) */
    uint64_t healed;
    uint64_t wakeups;
    uint64_t release_deleted;
    uint64_t release_missing;
    uint64_t release_unknown;
    uint64_t latency[REDLOCK_LATENCY_BUCKETS]; /* of won rounds, like in struct redlock_stats */
};
const struct redlock_counters *redlock_async_counters(const struct redlock_async *lock);

void redlock_async_node(const struct redlock_async *lock, size_t node,
                        struct redlock_node_info *ret_info);

/* Values from the last INFO of a node, which is sent every few seconds; 0 = unknown, or the node is
 * down. */
struct redlock_async_load {
    int64_t reply_us; /* from request to reply */
    int64_t memory_bytes;
};
void redlock_async_load(const struct redlock_async *lock, size_t node,
                        struct redlock_async_load *ret_load);

/* Finds out who holds a key and how many wait for it. Calls `done` after ≤ τ, with one entry per
 * node. −EINVAL, −ENOMEM. */
typedef void redlock_async_inspected_cb(void *ctx, const struct redlock_holding *holdings);
int redlock_async_inspect(struct redlock_async *lock, const char *key, size_t key_len,
                          redlock_async_inspected_cb *done, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
