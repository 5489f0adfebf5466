/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock: locks over N independent Redis or Valkey masters, for C programs. One client holds one
 * connection per node and one thread, which keeps won locks alive and wakes who waits; any number
 * of threads may call it at once. The same locks on an own event loop: redlock_async.h.
 *
 *     struct redlock_options options = REDLOCK_OPTIONS_INIT;
 *     const struct redlock_node nodes[] = {{.url = "a"}, {.url = "b"}, {.url = "c:6380"}};
 *     options.nodes = nodes;
 *     options.node_count = 3;
 *     struct redlock *client = NULL;
 *     struct redlock_error error;
 *     if (redlock_open(&options, &client, &error) != 0) { ... error.message ... }
 *     REDLOCK_SCOPE(client, "nightly-backup", 30000) {
 *         ...                                   // runs only under the lock
 *     }
 *     redlock_close(client);
 *
 * A lock is a lease: it ends by itself when its holder dies, and a holder that was stopped for
 * longer than the lease holds it no more, without noticing while it is stopped. What must never be
 * done twice needs a fence besides: redlock/README.md. Rules cited as lock.A7 are in docs/lock.md.
 *
 * Times are int64_t milliseconds and named so. Functions return 0 or a negative errno (−EINVAL,
 * −ENOMEM, −EIO, −EOWNERDEAD after a fork), or an enum redlock_result. Nothing of this library
 * writes to standard error, and no signal is raised. No global state. */
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

/* HELD → SUSPECT (a round of extending failed, the deadline stands) → LOST, which is final
 * (lock.W8, E5, E8). */
enum redlock_state { REDLOCK_STATE_HELD, REDLOCK_STATE_SUSPECT, REDLOCK_STATE_LOST };

enum redlock_vote {
    REDLOCK_VOTE_NONE,       /* it was not asked, or has not answered yet */
    REDLOCK_VOTE_OK,         /* it gave us the key */
    REDLOCK_VOTE_REFUSED,    /* another owner has it there */
    REDLOCK_VOTE_ERROR,      /* an error reply, no reply in time, a lost connection */
    REDLOCK_VOTE_DOWN,       /* known to be disconnected: not waited for (lock.A13) */
    REDLOCK_VOTE_QUARANTINED /* up, but its memory or its clock is not trusted yet (lock.N1, N4) */
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
    const char *user; /* these two where the URL has none; may be NULL */
    const char *password;
};

/* For nodes whose URL is rediss://. The server's certificate is always verified. */
struct redlock_tls {
    const char *ca_file;   /* PEM; NULL = the system's */
    const char *cert_file; /* of the client; NULL = none */
    const char *key_file;
    const char *server_name; /* to expect in the certificate; NULL = the node's host */
};

enum redlock_node_event {
    REDLOCK_NODE_UP, /* connected, and it may vote */
    REDLOCK_NODE_DOWN,
    /* A replica, part of a cluster, evicting, a duplicate: no vote; or it answers with errors: no
       vote for some seconds. */
    REDLOCK_NODE_REFUSED,
    /* Restarted, or its clock went ahead: no vote until then (lock.N1, N4). */
    REDLOCK_NODE_QUARANTINED,
    REDLOCK_NODE_VOTING, /* the quarantine is over */
    REDLOCK_NODE_WARNED  /* its clock went back: keys live longer there; it votes (lock.N4) */
};

typedef void redlock_node_cb(void *ctx, size_t node, enum redlock_node_event event,
                             const char *why);

struct redlock_options {
    const struct redlock_node *nodes; /* copied */
    size_t node_count;             /* 1 to REDLOCK_NODES_MAX, the same list everywhere (lock.N8) */
    const struct redlock_tls *tls; /* copied; may be NULL */
    int64_t ttl_ms; /* T: 1000 to REDLOCK_TTL_MAX_MS, and ≥ 10 node timeouts (lock.A16) */
    /* The longest T that any client of these nodes uses, as long a restarted node has no vote; 0 =
     * ttl_ms (lock.N1). */
    int64_t ttl_max_ms;
    int64_t node_timeout_ms; /* τ; 0 = T/100, at least 10 and at most 100 (lock.A5) */
    int64_t min_validity_ms; /* that must be left to count as won; 0 = T/2 (lock.A7) */
    int drift_ppm;           /* how far two clocks may part: 10000 = 1 % */
    int retries;             /* further tries of a call that does not wait; 0 = none (lock.A14) */
    int64_t retry_base_ms;   /* they are a random time below this apart, doubled each time, */
    int64_t retry_cap_ms;    /* up to this */
    int64_t open_timeout_ms; /* how long redlock_open() waits for the nodes' first answers */
    /* Nodes that were started a moment ago may vote: for tests and for a cluster's first start
     * only. */
    bool trust_fresh;
    bool allow_unsafe;       /* replicas, clusters and evicting nodes as well (lock.N3, N5) */
    bool no_wakeups;         /* neither publishes releases nor listens for them */
    const char *wake_prefix; /* of the channels and of one marker key per node; NULL = "redlock:" */
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

/* Connects, and waits (≤ open_timeout_ms) until each node has answered or failed once. −EINVAL,
 * with the option or the node named: a value out of bounds, a URL that can't be read, a node twice,
 * a wrong password, a port that is not Redis, a replica, a cluster's node, a node that evicts.
 * −EIO: no thread or loop. −ENOMEM. Nodes that are merely down are no error: they are tried again
 * for ever. */
int redlock_open(const struct redlock_options *options, struct redlock **ret_client,
                 struct redlock_error *ret_error);

/* Cancels who waits, releases what is still held (≤ τ), ends the thread. Handles that were not
 * given back may still be read and unlocked, and are LOST. Accepts NULL. In a forked child it
 * closes the descriptors and sends nothing (lock.F1). */
void redlock_close(struct redlock *client);

/* ---- locking ---- */

struct redlock_lock;   /* one won lock; one thread at a time may use it, but for the getters */
struct redlock_owner;  /* for reentrancy */
struct redlock_cancel; /* to cancel from another thread */

/* A won lock changed its state; once per transition, from the client's thread, outside of any lock:
 * it may call anything of this library but redlock_close(). A call that blocks there keeps the
 * watchdog going; whatever else takes long keeps it from extending, and from calling back. */
typedef void redlock_state_cb(void *ctx, struct redlock_lock *lock, enum redlock_state state);

struct redlock_request {
    const char *key;     /* exact bytes; the Redis key's name */
    size_t key_len;      /* 0 = strlen(key) */
    int64_t ttl_ms;      /* 0 = the client's */
    int64_t wait_ms;     /* 0 = one try and the client's retries; −1 = as long as it takes */
    int64_t max_hold_ms; /* not extended after that (lock.E9); 0 = no bound */
    bool no_watchdog;    /* nobody extends it but redlock_extend() */
    bool wants_fence;    /* redlock_fence(): two more round trips; no fence, no lock */
    struct redlock_owner *owner;   /* reentrant: NULL = not */
    struct redlock_cancel *cancel; /* may be NULL */
    redlock_state_cb *on_state;    /* may be NULL */
    void *ctx;
};

/* What happened, for whoever wants to know; filled whatever the result is. */
struct redlock_report {
    enum redlock_result result;
    int tries;
    int64_t validity_ms;   /* WON: what is left of the lease */
    int64_t holder_ttl_ms; /* HELD_BY_OTHER: after so long the holder's lease ends; −1 = unknown */
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

/* Several keys in one round to all nodes, a result for each; `request` says everything but the key.
 * One try, no waiting. ret_locks[i] is NULL where ret_results[i] is not WON. Returns WON if all
 * are, else the first result that is not. INVALID: 0 or more than REDLOCK_KEYS_MAX keys. */
enum redlock_result redlock_acquire_many(struct redlock *client,
                                         const struct redlock_request *request,
                                         const char *const *keys, size_t count,
                                         struct redlock_lock **ret_locks,
                                         enum redlock_result *ret_results);

/* All keys or none, under one handle; waits as `request` says. The keys travel in one order
 * (sorted, doubles dropped), so that two such calls can't each hold a part for long. */
enum redlock_result redlock_acquire_all(struct redlock *client,
                                        const struct redlock_request *request,
                                        const char *const *keys, size_t count,
                                        struct redlock_lock **ret_lock,
                                        struct redlock_report *ret_report);

/* Extends now, to a full ttl from now on. EXPIRED: the lease is over, or was taken: stop what it
 * protected. NO_QUORUM or SPLIT: not confirmed, the old deadline stands. Blocks ≤ τ. */
enum redlock_result redlock_extend(struct redlock_lock *lock);

/* How a release went, in nodes × keys (lock.R6). */
struct redlock_released {
    unsigned deleted;
    unsigned not_owner; /* held by another though our lease had not ended: a safety event */
    unsigned missing;
    unsigned unknown; /* not acknowledged: that node's key ends by its ttl */
};

/* Gives the lock back and frees the handle; nothing extends it any more when this returns
 * (lock.W6). With `ret_released` it waits for the nodes' answers (≤ τ), else it returns at once
 * (lock.R5). Of a reentrant lock only the last one does. Returns 0; −EINVAL for an owner's lock
 * that was unlocked more often than locked (while it is one of the last 16 that he unlocked);
 * −EOWNERDEAD in a forked child, where it frees the handle only (lock.F1). Accepts NULL. Not bound
 * by any cancel. */
int redlock_unlock(struct redlock_lock *lock, struct redlock_released *ret_released);

/* ---- what a lock is like: no I/O, from any thread (lock.E7) ---- */

enum redlock_state redlock_state(const struct redlock_lock *lock);
int64_t redlock_validity_ms(const struct redlock_lock *lock); /* 0 = lost */
static inline bool redlock_is_held(const struct redlock_lock *lock)
{
    return redlock_validity_ms(lock) > 0;
}
/* An eventfd that becomes readable at SUSPECT and at LOST (for poll(); read 8 bytes, then ask
 * redlock_state()); made by the first call, closed by redlock_unlock(). −1: none left. */
int redlock_fd(struct redlock_lock *lock);
/* Rises with every grant of the key; 0 = not asked for. Only as good as the masters' memory: they
 * must not forget it (appendonly yes, appendfsync always). */
uint64_t redlock_fence(const struct redlock_lock *lock);
/* The key's bytes, with a NUL behind them; of several keys those of the first in their order. */
const char *redlock_key(const struct redlock_lock *lock, size_t *ret_len);

/* ---- reentrancy ---- */

/* Whoever passes the same owner again gets the same lock again, without a round trip: as many
 * unlocks as locks give it back. Of several keys under one lock each may be asked for alone; some
 * of them together with others are INVALID, and a lock that is lost meanwhile is EXPIRED until it
 * was unlocked. An owner may be shared by threads; the nodes know nothing of it. */
int redlock_owner_new(struct redlock *client, struct redlock_owner **ret_owner);
void redlock_owner_free(struct redlock_owner *owner); /* after its locks were given back; or NULL */

/* ---- cancelling ---- */

int redlock_cancel_new(struct redlock *client, struct redlock_cancel **ret_cancel);
/* Ends each call that waits with it, now and later, as CANCELLED; from any thread. */
void redlock_cancel_fire(struct redlock_cancel *cancel);
void redlock_cancel_free(struct redlock_cancel *cancel); /* when no call uses it; or NULL */

/* ---- the scoped guard ---- */

/* REDLOCK_SCOPE(client, key, ttl_ms) { body }: tries the lock (with the client's retries) and runs
 * the body once if it was won; leaving it by its end, break, return, goto or continue unlocks.
 * REDLOCK_SCOPE_AS also names the handle: `struct redlock_lock *lock` inside the body. */
struct redlock_guard {
    struct redlock_lock *lock;
    bool is_entered;
};
struct redlock_guard redlock_guard_begin(struct redlock *client, const char *key, int64_t ttl_ms);
void redlock_guard_end(struct redlock_guard *guard);
static inline struct redlock_lock *redlock_guard_enter(struct redlock_guard *guard)
{
    bool is_first = !guard->is_entered;
    guard->is_entered = true;
    return is_first ? guard->lock : NULL;
}
/* NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared takes none */
#define REDLOCK_CONCAT_(a, b) a##b
#define REDLOCK_UNIQUE_(a, b) REDLOCK_CONCAT_(a, b)
#define REDLOCK_SCOPE_AS(name, client, key, ttl_ms)                               \
    for (struct redlock_guard REDLOCK_UNIQUE_(redlock_guard_, __LINE__)           \
             __attribute__((cleanup(redlock_guard_end))) =                        \
                 redlock_guard_begin((client), (key), (ttl_ms));                  \
         !REDLOCK_UNIQUE_(redlock_guard_, __LINE__).is_entered;)                  \
        for (struct redlock_lock *name =                                          \
                 redlock_guard_enter(&REDLOCK_UNIQUE_(redlock_guard_, __LINE__)); \
             name != NULL; name = NULL)
#define REDLOCK_SCOPE(client, key, ttl_ms) \
    REDLOCK_SCOPE_AS(REDLOCK_UNIQUE_(redlock_scope_, __LINE__), client, key, ttl_ms)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- looking ---- */

#define REDLOCK_LATENCY_BUCKETS 20

struct redlock_stats {
    uint64_t results[REDLOCK_INVALID + 1]; /* of keys, by result */
    uint64_t node_errors;
    uint64_t extended;
    uint64_t lost;
    uint64_t healed; /* copies that a node had lost and got again (lock.E6) */
    uint64_t release_deleted;
    uint64_t release_not_owner;
    uint64_t release_missing;
    uint64_t release_unknown;
    uint64_t wakeups;
    uint64_t held;    /* now */
    uint64_t waiting; /* now */
    /* Of won rounds: bucket i counts those ≤ 2^i · 10 µs that are in no smaller one; the last one
     * the rest. */
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

/* 16 hexadecimal digits that are equal where the lists of nodes are, whatever their order: two
 * programs with different ones may hold the same lock at once (lock.N8). */
#define REDLOCK_FINGERPRINT_SIZE 17
int redlock_fingerprint(const struct redlock_node *nodes, size_t count,
                        char ret_text[REDLOCK_FINGERPRINT_SIZE], struct redlock_error *ret_error);

const char *redlock_version(void);

#ifdef __cplusplus
}
#endif

#endif
