/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock: locks over N independent Redis or Valkey masters, for C programs. One client holds one
 * connection per node and one thread, which extends won locks; any number of
 * threads may call it at once. For the same locks on your own event loop see redlock_async.h.
 *
 *     struct redlock_options options = REDLOCK_OPTIONS_INIT;
 *     const struct redlock_node nodes[] = {{.url = "a"}, {.url = "b"}, {.url = "c:6380"}};
 *     options.nodes = nodes;
 *     options.node_count = 3;
 *     struct redlock *client = NULL;
 *     struct redlock_error error;
 *     if (redlock_open(&options, &client, &error) != 0) { ... error.message ... }
 *     REDLOCK_WITH(lock, redlock_try(client, "nightly-backup", 0, &lock)) {
 *         ...                                   // runs only under the lock
 *     }
 *     redlock_close(client);
 *
 * A lock is a lease: it ends by itself when its holder dies, and a holder that was stopped for
 * longer than the lease no longer holds it, which it can't notice while it is stopped. Work that
 * must never be done twice also needs a fence: see redlock/README.md. Rules cited as lock.A7 are in
 * docs/lock.md.
 *
 * Times are int64_t milliseconds, and their names end in _ms. Functions return 0 or a negative
 * errno (−EINVAL, −ENOMEM, −EIO, −EOWNERDEAD after a fork), or an enum redlock_result. The library
 * writes nothing to standard error, raises no signal, and has no global state. */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_NODES_MAX 9
#define REDLOCK_KEYS_MAX 512     /* of one call */
#define REDLOCK_KEY_LEN_MAX 1024 /* bytes */
#define REDLOCK_TTL_MAX_MS (INT64_C(24) * 3600 * 1000)
#define REDLOCK_MESSAGE_SIZE 256

/* ---- results ---- */

#define REDLOCK_RESULT_MAP(X)                                    \
    X(WON, "won")                                                \
    X(HELD_BY_OTHER, "held by another")                          \
    X(SPLIT, "no quorum though enough nodes answered")           \
    X(NO_QUORUM, "too many nodes failed")                        \
    X(EXPIRED, "the quorum came too late, or the lease is over") \
    X(CANCELLED, "cancelled")                                    \
    X(INVALID, "invalid")

enum redlock_result { /* lock.A15 */
#define X(name, text) REDLOCK_##name,
                      REDLOCK_RESULT_MAP(X)
#undef X
};

const char *redlock_result_text(enum redlock_result result);

/* HELD → SUSPECT (an extension round failed, the deadline stands) → LOST, which is final (lock.W8,
 * E5, E8). */
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

const char *redlock_vote_text(enum redlock_vote vote);

struct redlock_error {
    int code;                           /* a negative errno; 0 = no error */
    char message[REDLOCK_MESSAGE_SIZE]; /* names the node or the option, and what to change */
};

/* ---- the client ---- */

struct redlock;

struct redlock_node {
    /* "host", "host:port", "[v6]:port", "unix:/path", "redis://[user[:password]@]host[:port][/db]",
     * "rediss://…" with TLS. */
    const char *url;
    const char *user; /* user and password are used where the URL has none; may be NULL */
    const char *password;
};

/* For nodes whose URL is rediss://. The server's certificate is always verified. */
struct redlock_tls {
    const char *ca_file;   /* PEM; NULL = the system's */
    const char *cert_file; /* of the client; NULL = none */
    const char *key_file;
    const char *server_name; /* expected in the certificate; NULL = the node's host */
};

enum redlock_node_event {
    REDLOCK_NODE_UP, /* connected, and it may vote */
    REDLOCK_NODE_DOWN,
    /* It has no vote: a replica, a cluster node, an evicting node, a duplicate. Or it answers with
     * errors, and has no vote for some seconds. */
    REDLOCK_NODE_REFUSED,
    /* Restarted, or its clock stepped forward: no vote until the quarantine is over (lock.N1,
     * N4). */
    REDLOCK_NODE_QUARANTINED,
    REDLOCK_NODE_VOTING, /* the quarantine is over */
    REDLOCK_NODE_WARNED  /* its clock went back: keys live longer there; it may vote (lock.N4) */
};

typedef void redlock_node_cb(void *ctx, size_t node, enum redlock_node_event event,
                             const char *why);

struct redlock_options {
    const struct redlock_node *nodes; /* copied */
    size_t node_count;             /* 1 to REDLOCK_NODES_MAX, the same list everywhere (lock.N8) */
    const struct redlock_tls *tls; /* copied; may be NULL */
    int64_t ttl_ms; /* T: 1000 to REDLOCK_TTL_MAX_MS, and ≥ 10 node timeouts (lock.A16) */
    /* The longest T that any client of these nodes uses: a restarted node has no vote for that
     * long. 0 = ttl_ms (lock.N1). */
    int64_t ttl_max_ms;
    int64_t node_timeout_ms; /* τ; 0 = T/100, at least 10 and at most 100 (lock.A5) */
    int64_t min_validity_ms; /* must be left for a lock to count as won; 0 = T/2 (lock.A7) */
    int drift_ppm;           /* how much the rates of two clocks may differ: 10000 = 1 % */
    int retries; /* of a call that does not wait, after SPLIT, NO_QUORUM, EXPIRED (lock.A14) */
    int64_t retry_base_ms;   /* a pause between tries is random, below this bound, which doubles */
    int64_t retry_cap_ms;    /* up to this */
    int64_t open_timeout_ms; /* how long redlock_open() waits for the nodes' first answers */
    /* Nodes that were started a moment ago may vote: for tests and for a cluster's first start
     * only. */
    bool trust_fresh;
    bool majority_opens;      /* enough nodes are suitable: the others are told by on_node alone */
    bool allow_unsafe;        /* accepts replicas, cluster nodes, evicting nodes (lock.N3, N5) */
    bool no_wakeups;          /* does not stand in line: waiters poll (lock.L9) */
    const char *wake_prefix;  /* of the lines' keys and channels; NULL = "redlock:" */
    redlock_node_cb *on_node; /* from the client's thread; may be NULL */
    void *ctx;
};

#ifndef __cplusplus
#define REDLOCK_OPTIONS_INIT                                                    \
    {                                                                           \
        .ttl_ms = 30000, .drift_ppm = 10000, .retries = 3, .retry_base_ms = 50, \
        .retry_cap_ms = 500, .open_timeout_ms = 2000                            \
    }
#else /* which has no designated initializers before C++20 */
static inline struct redlock_options redlock_options_init()
{
    struct redlock_options options = {};
    options.ttl_ms = 30000;
    options.drift_ppm = 10000;
    options.retries = 3;
    options.retry_base_ms = 50;
    options.retry_cap_ms = 500;
    options.open_timeout_ms = 2000;
    return options;
}
#define REDLOCK_OPTIONS_INIT redlock_options_init()
#endif

/* Connects, and waits (≤ open_timeout_ms) until each node has answered or failed once. −EINVAL
 * names the option or the node: a value out of bounds, a URL that can't be read, a duplicate node,
 * a wrong password, a port that is not Redis, a replica, a cluster node, a node that evicts; with
 * majority_opens, of one node too many. −EIO: no thread or loop. −ENOMEM. Nodes that are merely
 * down are no error: they are retried for ever. */
int redlock_open(const struct redlock_options *options, struct redlock **ret_client,
                 struct redlock_error *ret_error);

/* Cancels the calls that wait, releases what is still held (≤ τ), and ends the thread. Handles that
 * were not unlocked are LOST; they may still be read and unlocked. Accepts NULL. In a forked child
 * it closes the descriptors and sends nothing (lock.F1). */
void redlock_close(struct redlock *client);

/* ---- locking ---- */

struct redlock_lock;   /* one won lock; for one thread at a time, except for the getters */
struct redlock_owner;  /* for reentrancy */
struct redlock_cancel; /* to cancel from another thread */

/* A won lock changed its state. Called once per transition, from the client's thread, with no mutex
 * held: it may call any function of this library but redlock_close(). The watchdog keeps running
 * while such a call blocks; anything else that takes long delays extensions and callbacks. */
typedef void redlock_state_cb(void *ctx, struct redlock_lock *lock, enum redlock_state state);

struct redlock_request {
    const char *key; /* exact bytes; the Redis key's name */
    size_t key_len;  /* 0 = strlen(key) */
    int64_t ttl_ms;  /* 0 = the client's */
    /* 0 = give up at once where another holds it; −1 = as long as it takes. Waiters of all clients
     * stand in line, first come, first served (lock.L1). */
    int64_t wait_ms;
    int64_t max_hold_ms; /* the lease ends then at the latest (lock.E9); 0 = no bound */
    bool no_watchdog;    /* nobody extends it but redlock_extend() */
    bool wants_fence;    /* redlock_fence(): two more round trips; without a fence, no lock */
    struct redlock_owner *owner;   /* NULL = not reentrant */
    struct redlock_cancel *cancel; /* may be NULL */
    redlock_state_cb *on_state;    /* may be NULL */
    void *ctx;
};

/* What happened; filled whatever the result is. */
struct redlock_report {
    enum redlock_result result;
    int tries;
    int64_t validity_ms;   /* WON: what is left of the lease */
    int64_t holder_ttl_ms; /* HELD_BY_OTHER: time until the holder's lease ends; −1 = unknown */
    size_t node_count;
    enum redlock_vote votes[REDLOCK_NODES_MAX]; /* of the last try, in the order of the nodes */
    /* One line: the result, and the nodes that failed and why. */
    char message[REDLOCK_MESSAGE_SIZE];
};

/* Blocks for at most τ per try plus the pauses between tries, or wait_ms. WON stores a handle,
 * which must be given to redlock_unlock() once. `ret_report` may be NULL. */
enum redlock_result redlock_acquire(struct redlock *client, const struct redlock_request *request,
                                    struct redlock_lock **ret_lock,
                                    struct redlock_report *ret_report);

/* redlock_acquire() of one key without waiting; ttl_ms 0 = the client's. */
enum redlock_result redlock_try(struct redlock *client, const char *key, int64_t ttl_ms,
                                struct redlock_lock **ret_lock);

/* Acquires several keys in one round to all nodes, with a result for each; `request` says
 * everything but the keys. One try, no waiting. ret_locks[i] is NULL where ret_results[i] is not
 * WON. Returns WON if all keys were won, else the first result that is not WON. INVALID: 0 or more
 * than REDLOCK_KEYS_MAX keys. */
enum redlock_result redlock_acquire_many(struct redlock *client,
                                         const struct redlock_request *request,
                                         const char *const *keys, size_t count,
                                         struct redlock_lock **ret_locks,
                                         enum redlock_result *ret_results);

/* Acquires all keys or none, under one handle; waits as `request` says. The keys are always sent in
 * the same order (sorted, without duplicates), so that two such calls can't each hold a part for
 * long. */
enum redlock_result redlock_acquire_all(struct redlock *client,
                                        const struct redlock_request *request,
                                        const char *const *keys, size_t count,
                                        struct redlock_lock **ret_lock,
                                        struct redlock_report *ret_report);

/* Extends the lock to a full ttl from now. EXPIRED: the lease is over, or another owner has the
 * lock; stop what it protected. NO_QUORUM or SPLIT: not confirmed; the old deadline stands. Blocks
 * ≤ τ. */
enum redlock_result redlock_extend(struct redlock_lock *lock);

/* How a release went, in nodes × keys (lock.R6). */
struct redlock_released {
    unsigned deleted;
    unsigned not_owner; /* held by another although our lease had not ended: a safety event */
    unsigned missing;
    unsigned unknown; /* not acknowledged: the key on that node ends by its ttl */
};

/* Releases the lock and frees the handle; nothing extends the lock after this returns (lock.W6).
 * With `ret_released` it waits for the nodes' answers (≤ τ), else it returns at once (lock.R5). A
 * reentrant lock is released by its last unlock only. Returns 0; −EINVAL for an owner's lock that
 * was unlocked more often than locked (known for the last 16 locks that the owner unlocked);
 * −EOWNERDEAD in a forked child, where it only frees the handle (lock.F1). Accepts NULL. Can't be
 * cancelled. */
int redlock_unlock(struct redlock_lock *lock, struct redlock_released *ret_released);

/* ---- the state of a lock: no I/O, from any thread (lock.E7) ---- */

enum redlock_state redlock_state(const struct redlock_lock *lock);
int64_t redlock_validity_ms(const struct redlock_lock *lock); /* 0 = lost */
static inline bool redlock_is_held(const struct redlock_lock *lock)
{
    return redlock_validity_ms(lock) > 0;
}
/* An eventfd that becomes readable at SUSPECT and at LOST (for poll(); read 8 bytes, then ask
 * redlock_state()); opened by the first call, closed by redlock_unlock(). −1: no descriptor is
 * left. */
int redlock_fd(struct redlock_lock *lock);
/* Rises with every grant of the key, of several keys with every grant of each; 0 = not requested.
 * Only as good as the masters' memory: they must not forget it (appendonly yes, appendfsync
 * always). It may begin anew when a key was not granted with a fence for 90 days. */
uint64_t redlock_fence(const struct redlock_lock *lock);
/* The key's bytes, followed by a NUL; of several keys, those of the first in sorted order. */
const char *redlock_key(const struct redlock_lock *lock, size_t *ret_len);

/* ---- reentrancy ---- */

/* A call that passes the same owner again gets the same lock, without a round trip; as many unlocks
 * as locks release it. Any of several keys under one lock may be requested alone. A request for
 * some of them together with other keys is INVALID; a request for a lock that was lost is EXPIRED
 * until that lock is unlocked. Threads may share an owner; the nodes know nothing of it. */
int redlock_owner_new(struct redlock *client, struct redlock_owner **ret_owner);
void redlock_owner_free(struct redlock_owner *owner); /* after its locks were unlocked; or NULL */

/* ---- cancelling ---- */

int redlock_cancel_new(struct redlock *client, struct redlock_cancel **ret_cancel);
/* Ends every call that uses this handle, now and later, as CANCELLED; from any thread. */
void redlock_cancel_fire(struct redlock_cancel *cancel);
void redlock_cancel_free(struct redlock_cancel *cancel); /* when no call uses it; or NULL */

/* ---- a lock for one block ---- */

/* REDLOCK_WITH(lock, result = redlock_try(client, key, 0, &lock)) { body }: declares `lock`, makes
 * the call, and runs the body once if the call returned WON; leaving the body by its end, break,
 * return, goto or continue unlocks. The call may be any that returns a result and stores one lock;
 * its result tells a lock that another holds from one that could not be asked for. */
void redlock_unlock_at(struct redlock_lock **lock);
/* NOLINTBEGIN(bugprone-macro-parentheses): a declared name takes no parentheses */
#define REDLOCK_WITH(name, call)                                                        \
    for (struct redlock_lock * name __attribute__((cleanup(redlock_unlock_at))) = NULL, \
                                    *name##_done = NULL;                                \
         name##_done == NULL && (call) == REDLOCK_WON; name##_done = name)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- inspection ---- */

#define REDLOCK_LATENCY_BUCKETS 20

struct redlock_stats {
    uint64_t results[REDLOCK_INVALID + 1]; /* of keys, by result */
    uint64_t node_errors;
    uint64_t extended;
    uint64_t lost;
    uint64_t not_owner; /* nodes where another had a key before our lease of it ended: must be 0 */
    uint64_t healed;    /* copies that a node had lost and got again (lock.E6) */
    uint64_t release_deleted;
    uint64_t release_missing;
    uint64_t release_unknown;
    uint64_t wakeups;
    uint64_t held;    /* now */
    uint64_t waiting; /* now */
    /* Durations of won rounds: bucket i counts those ≤ 2^i · 10 µs that are in no smaller bucket;
     * the last one counts the rest. */
    uint64_t latency[REDLOCK_LATENCY_BUCKETS];
};
void redlock_stats(struct redlock *client, struct redlock_stats *ret_stats);

struct redlock_node_info {
    char name[272];  /* "host:port" or "unix:/path"; never a password */
    char server[16]; /* "redis" or "valkey"; "" = never connected */
    char version[24];
    char run_id[41];
    char evict_policy[24];
    bool is_up;
    bool may_vote;
    bool is_master;
    bool has_native; /* compare-and-set and compare-and-delete without scripts (lock.C9) */
    int64_t uptime_ms;
    int64_t quarantine_ms;   /* what is left of it */
    int64_t clock_offset_us; /* of its wall clock from ours at the last sample; INT64_MIN = none */
    char why[REDLOCK_MESSAGE_SIZE]; /* why it may not vote */
};
size_t redlock_nodes(struct redlock *client, struct redlock_node_info *ret_nodes, size_t max);

/* Who holds a key on which node. Blocks ≤ τ. */
struct redlock_holding {
    enum redlock_vote vote; /* OK = free there, REFUSED = held, else no answer */
    char holder[9];         /* the first 8 characters of its token, never all of it */
    int64_t ttl_ms;         /* −1 = without expiry */
};
int redlock_inspect(struct redlock *client, const char *key,
                    struct redlock_holding ret_holdings[REDLOCK_NODES_MAX],
                    struct redlock_error *ret_error);

/* 16 hexadecimal digits, equal for equal lists of nodes, whatever their order. Two programs with
 * different lists may hold the same lock at once (lock.N8). */
#define REDLOCK_FINGERPRINT_SIZE 17
int redlock_fingerprint(const struct redlock_node *nodes, size_t count,
                        char ret_text[REDLOCK_FINGERPRINT_SIZE], struct redlock_error *ret_error);

const char *redlock_version(void);

#ifdef __cplusplus
}
#endif

#endif
