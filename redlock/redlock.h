/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock: locks over 1 to 9 independent Redis or Valkey masters. A lock is a lease: it ends when
 * its holder dies, and it is extended while the holder lives.
 *
 *     struct redlock_client *client = NULL;
 *     struct redlock_lock *lock = NULL;
 *     if (redlock_open(&(struct redlock_options){.nodes = "a,b,c:6380"}, &client, NULL) ==
 *             REDLOCK_OK &&
 *         redlock_lock_for(client, "nightly-backup", 5000, &lock) == REDLOCK_OK) {
 *         ...                               // runs only under the lock
 *         redlock_unlock(lock, NULL);
 *     }
 *     redlock_close(client);
 *
 * A holder that was stopped for longer than its lease no longer holds it, which it can't notice
 * while it is stopped. Work that must never be done twice also needs a fence: redlock(7). Rules
 * cited as lock.A7 are in docs/lock.md.
 *
 * 0 and NULL are the default everywhere. Times are milliseconds; their names end in _ms; -1 is
 * "forever" or "unknown". Text and keys that you pass are copied. Every function that can fail
 * returns an enum redlock_result, ends in bounded time, and may be called by any thread. Structs
 * will grow at their end only: set `size` to sizeof the struct to use members added after version
 * 0.1; 0 means the struct as it was then. Callbacks come from a thread of their own and may call
 * anything but redlock_close(): a slow one delays other callbacks, never a lease. The library
 * writes nothing to standard error, raises no signal, and has no global state. To run locks on your
 * own event loop, see redlock_async.h; to look at nodes and keys, redlock_status.h. */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_NODES_MAX 9
#define REDLOCK_KEYS_MAX 512     /* per request */
#define REDLOCK_KEY_LEN_MAX 1024 /* bytes */
#define REDLOCK_SLOTS_MAX 64     /* per key */
#define REDLOCK_READERS 16       /* by default */
#define REDLOCK_LABEL_LEN_MAX 64 /* bytes */
#define REDLOCK_TEXT_SIZE 256
#define REDLOCK_TTL_MAX_MS (INT64_C(24) * 3600 * 1000)

/* lock.A15 */
enum redlock_result {
    REDLOCK_OK,        /* you have the lock, or it is done */
    REDLOCK_HELD,      /* another client has it */
    REDLOCK_SPLIT,     /* several clients tried at once, and none has a majority: try again */
    REDLOCK_NO_QUORUM, /* too many nodes are down, silent, in quarantine, or refuse the key */
    REDLOCK_LOST, /* the lease is over, or the majority came too late: stop what it protected */
    REDLOCK_CANCELLED, /* by redlock_cancel() or redlock_close() */
    REDLOCK_INVALID,   /* a mistake in the call: report.message names it */
    REDLOCK_SYSTEM     /* no memory, thread, descriptor or randomness; or a forked child (F1) */
};
#define REDLOCK_RESULTS (REDLOCK_SYSTEM + 1)

/* SUSPECT: an extension failed, and the deadline still holds; a later extension may make it HELD
 * again. LOST is final (lock.W8). */
enum redlock_state { REDLOCK_STATE_HELD, REDLOCK_STATE_SUSPECT, REDLOCK_STATE_LOST };

enum redlock_vote {
    REDLOCK_VOTE_NONE,        /* not asked, or not answered yet */
    REDLOCK_VOTE_OK,          /* it gave us the key */
    REDLOCK_VOTE_REFUSED,     /* another owner has it there */
    REDLOCK_VOTE_ERROR,       /* an error reply, no reply in time, a lost connection */
    REDLOCK_VOTE_DOWN,        /* known to be disconnected: not waited for (lock.A13) */
    REDLOCK_VOTE_QUARANTINED, /* up, but its memory or its clock is not trusted yet (lock.N1, N4) */
    REDLOCK_VOTE_FORBIDDEN    /* its access list refuses this key to our user (lock.C8) */
};

/* A read-write lock: up to `slots` readers share the key, or one writer has it alone. Readers that
 * arrive while a writer waits are behind it in line (lock.L11). */
enum redlock_mode { REDLOCK_MODE_PLAIN, REDLOCK_MODE_SHARED, REDLOCK_MODE_EXCLUSIVE };

const char *redlock_text(enum redlock_result result);
const char *redlock_vote_text(enum redlock_vote vote);

struct redlock_client; /* a client: a connection per node, for any number of threads */
struct redlock_lock;   /* a lock that was won; for one thread at a time, except for the getters */
struct redlock_owner;  /* for reentrancy and for cancelling */

/* The details of a result; filled in whatever the result is. Initialise it with {0}. */
struct redlock_report {
    size_t size;
    enum redlock_result result;
    int tries;
    int64_t waited_ms;
    int64_t left_ms;   /* OK: time left of the lease */
    int64_t holder_ms; /* HELD: time left of the holder's lease; -1 = unknown */
    /* Outcome of a release, in nodes × keys (lock.R6). */
    unsigned deleted;
    unsigned missing;
    unsigned stolen;  /* held by another although the lease had not ended: must be 0 */
    unsigned unknown; /* not acknowledged: the key ends there by its ttl */
    size_t node_count;
    enum redlock_vote votes[REDLOCK_NODES_MAX]; /* of the last try, in the order of the nodes */
    char holder[REDLOCK_LABEL_LEN_MAX + 1];     /* HELD: the holder's label; "" = none */
    /* One line: the result, and the nodes that failed and why. */
    char message[REDLOCK_TEXT_SIZE];
};

/* ---- the client ---- */

enum redlock_event_kind {
    REDLOCK_EVENT_UP, /* connected, and it may vote */
    REDLOCK_EVENT_DOWN,
    /* The node has no vote: it is a replica, a cluster node, an evicting node, or a duplicate; or
     * it answers with errors, then it has no vote for some seconds. */
    REDLOCK_EVENT_REFUSED,
    /* The node restarted, lost keys, or its clock went ahead: it has no vote for a while (lock.N1,
     * N4, N9). */
    REDLOCK_EVENT_QUARANTINED,
    REDLOCK_EVENT_VOTING, /* the quarantine is over */
    REDLOCK_EVENT_WARNED  /* it may vote, but something is wrong: `text` says what */
};

struct redlock_event {
    size_t size;
    size_t node;
    enum redlock_event_kind kind;
    const char *text; /* the node's name and what happened; valid until the callback returns */
};

struct redlock_options {
    size_t size;
    /* "host", "host:port", "[v6]:port", "unix:/path", "redis://[user[:password]@]host[:port][/db]",
     * or "rediss://…" for TLS; separated by commas. All clients must have the same nodes (lock.N8).
     * NULL = $REDLOCK_NODES, $REDLOCK_USER and $REDLOCK_PASSWORD. */
    const char *nodes;
    const char *user; /* user and password are used if a node's URL has none */
    const char *password;
    /* for rediss://, PEM; NULL = the system's. Certificates are always verified */
    const char *ca_file;
    const char *cert_file; /* the client's; NULL = none */
    const char *key_file;
    const char *server_name; /* expected in the certificate; NULL = the node's host */
    /* Identifies us; written into each lock: 1 to 64 printable bytes. Default: "user@host
     * program[pid]"; "" = none. */
    const char *label;
    int64_t ttl_ms; /* T, the length of a lease: 30 s; 1 s to 24 h, ≥ 10 node timeouts (lock.A16) */
    /* The longest T that this client uses. A restarted node has no vote for the longest T that any
     * client has sent to the nodes (lock.N1, N10). Default: ttl_ms. */
    int64_t ttl_max_ms;
    int64_t node_timeout_ms; /* τ: T/100, at least 10 and at most 100 (lock.A5) */
    int64_t open_ms;         /* how long redlock_open() waits for the nodes' first answers: 2 s */
    int drift_ppm;           /* how much the rates of two clocks may differ: 10000 = 1 % */
    /* open if a majority is suitable; the others are only reported to on_event */
    bool majority_opens;
    /* nodes that have just started may vote: only for the first start of a cluster */
    bool trust_fresh;
    bool allow_unsafe;  /* accepts replicas, cluster nodes, evicting nodes (lock.N3, N5) */
    bool no_line;       /* poll instead of waiting in line (lock.L9) */
    const char *prefix; /* of the library's own keys, the same for all clients: "redlock:" */
    void (*on_event)(void *ctx, const struct redlock_event *event);
    void *ctx;
};

/* Connects, and waits (≤ open_ms) until each node has answered or failed once. INVALID names the
 * option or the node: a value out of bounds, a URL that can't be parsed, a duplicate node, a wrong
 * password, a port that is not Redis, a replica, a cluster node, a node that evicts; with
 * majority_opens, only if there are too many such nodes. Nodes that are merely down are no error:
 * connecting is retried forever. */
enum redlock_result redlock_open(const struct redlock_options *options,
                                 struct redlock_client **ret_client,
                                 struct redlock_report *ret_report);

/* Cancels waiting calls, releases what is still held (≤ τ), and ends the threads. Handles that were
 * not unlocked are LOST; they may still be read and unlocked. Accepts NULL. In a forked child it
 * only closes the descriptors (lock.F1). */
void redlock_close(struct redlock_client *client);

/* ---- taking ---- */

struct redlock_key {
    const void *bytes;
    size_t len; /* 0 = strlen() */
};

struct redlock_request {
    size_t size;
    const char *key; /* one key: text. Or: */
    const struct redlock_key *keys;
    size_t count; /* 1 to REDLOCK_KEYS_MAX: all keys or none, under one lock */
    bool each;    /* a result and a lock for each key instead, in one round, without waiting */
    bool fence;   /* for redlock_fence(); takes two more round trips; without a fence, no lock */
    bool manual;  /* only redlock_extend() extends it */
    /* 0 = give up if another client has it. Waiters are served in line (lock.L1) */
    int64_t wait_ms;
    int64_t ttl_ms;      /* default: the client's */
    int64_t max_hold_ms; /* the lease ends at this age at the latest (lock.E9) */
    /* A semaphore: one of this many slots of the one key, which are the locks "key#1", "key#2", …
     * All clients must use the same number (lock.L10). 0 = a plain lock; with a read-write lock,
     * REDLOCK_READERS. */
    int slots;
    enum redlock_mode mode; /* all clients must use a key in the same way */
    struct redlock_owner *owner;
    /* Called after the state changed to `state`; changes in quick succession may cause a single
     * call. No such call begins after redlock_unlock() or redlock_close(). */
    void (*on_change)(void *ctx, struct redlock_lock *lock, enum redlock_state state);
    void *ctx;
};

/* Acquires locks. Blocks for some node timeouts, or for wait_ms. OK stores a lock, which must be
 * passed once to redlock_unlock() or redlock_abandon(). Both arrays have one member, or `count`
 * with `each`; `ret_reports` may be NULL. Returns the first result that is not OK. A vote that is
 * split, too late or without a quorum is repeated up to three times, after short pauses
 * (lock.A14). */
enum redlock_result redlock_acquire(struct redlock_client *client,
                                    const struct redlock_request *request,
                                    struct redlock_lock **ret_locks,
                                    struct redlock_report *ret_reports);

/* Acquire the lock of one key: without waiting, or waiting for at most wait_ms; -1 = forever. */
enum redlock_result redlock_try(struct redlock_client *client, const char *key,
                                struct redlock_lock **ret_lock);
enum redlock_result redlock_lock_for(struct redlock_client *client, const char *key,
                                     int64_t wait_ms, struct redlock_lock **ret_lock);

/* Does the same without blocking. OK: `done` will be called once, with as many locks and reports;
 * locks that are not NULL then belong to the callee, while the arrays end with the call. Otherwise
 * it is never called, and `ret_report` (or NULL) says why. */
typedef void redlock_done(void *ctx, size_t count, struct redlock_lock *const *locks,
                          const struct redlock_report *const *reports);
enum redlock_result redlock_start(struct redlock_client *client,
                                  const struct redlock_request *request, redlock_done *done,
                                  void *ctx, struct redlock_report *ret_report);

/* ---- holding: no I/O, except by the calls that return a result ---- */

enum redlock_state redlock_state(const struct redlock_lock *lock);
/* time left of the lease, rounded down (lock.E7) */
int64_t redlock_left_ms(const struct redlock_lock *lock);
/* Returns a descriptor that becomes readable at SUSPECT and at LOST (for poll(); read 8 bytes, then
 * call redlock_state()). The first call opens it, redlock_unlock() closes it. -1: no descriptor is
 * available. */
int redlock_fd(struct redlock_lock *lock);
/* Returns the fence, which rises with every grant of the key, or of each of several keys; 0 = not
 * requested. It is only as reliable as the masters' memory: they must not forget it (appendonly
 * yes, appendfsync always). It may start again from the beginning if a key was not granted with a
 * fence for 90 days. */
uint64_t redlock_fence(const struct redlock_lock *lock);
/* Returns the key's bytes, followed by a NUL; of several keys, those of the first in sorted order;
 * of a semaphore, "key#3". */
const char *redlock_lock_key(const struct redlock_lock *lock, size_t *ret_len);

/* Extends the lease to a full ttl from now. LOST: the lease is over, or another owner has the key.
 * NO_QUORUM or SPLIT: not confirmed; the old deadline still holds. Blocks ≤ τ. */
enum redlock_result redlock_extend(struct redlock_lock *lock);

/* Releases the lock and frees the handle; nothing extends the lock after this returns (lock.W6).
 * With a report it waits for the nodes' answers (≤ τ), otherwise it returns at once (lock.R5).
 * Can't be cancelled. INVALID: an owner's lock was unlocked more often than locked, which is
 * detected for the last 16 of them. SYSTEM: in a forked child, where it only frees the handle.
 * Accepts NULL. */
enum redlock_result redlock_unlock(struct redlock_lock *lock, struct redlock_report *ret_report);
/* Stops extending the lock without releasing it: the lease ends by its ttl. Frees the handle. */
void redlock_abandon(struct redlock_lock *lock);

/* ---- owners ---- */

/* Creates an owner. A request with an owner that holds all its keys under one lock enters that lock
 * again, without a round trip; as many unlocks as locks release it. A request for some of them
 * together with other keys is INVALID; a request for a lock that was lost is LOST until that lock
 * is unlocked. Threads may share an owner; the nodes know nothing of it. */
enum redlock_result redlock_owner_new(struct redlock_client *client,
                                      struct redlock_owner **ret_owner);
/* Ends the owner's requests as CANCELLED, present and future ones; the locks that it holds stay. */
void redlock_cancel(struct redlock_owner *owner);
/* call it when no call uses the owner; accepts NULL */
void redlock_owner_free(struct redlock_owner *owner);

/* ---- a lock for one block ---- */

/* REDLOCK_WITH(lock, result = redlock_try(client, key, &lock)) { body } declares `lock`, makes the
 * call, and runs the body once if it returned OK; leaving the body by its end, break, return, goto
 * or continue unlocks. The call may be any that returns a result and stores one lock. */
void redlock_unlock_at(struct redlock_lock **lock);
/* NOLINTBEGIN(bugprone-macro-parentheses): a declared name takes no parentheses */
#define REDLOCK_WITH(name, call)                                                        \
    for (struct redlock_lock * name __attribute__((cleanup(redlock_unlock_at))) = NULL, \
                                    *name##_done = NULL;                                \
         name##_done == NULL && (call) == REDLOCK_OK; name##_done = name)
/* NOLINTEND(bugprone-macro-parentheses) */

#ifdef __cplusplus
}
#endif

#endif
