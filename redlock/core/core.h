/* SPDX-License-Identifier: Apache-2.0
 *
 * The internals of this library; only its own files include this header.
 *
 * A batch lives as long as it is referenced: by its owner (while it is being acquired, and then
 * until every won key is released) and by every request that refers to it. All user callbacks come
 * from the loop, never from inside a user's call. Work that must happen "soon" is done by one idle
 * handle, which also groups the releases of one turn. */
#ifndef CLAIMD_REDLOCK_CORE_CORE_H
#define CLAIMD_REDLOCK_CORE_CORE_H

#include "base/pool.h"
#include "base/rand.h"
#include "redis/redis.h"
#include "redlock/core/scripts.h"
#include "redlock/redlock_async.h"
#include "redlock/rules/clockwatch.h"
#include "redlock/rules/heap.h"
#include "redlock/rules/lease.h"
#include "redlock/rules/token.h"

#define EXTEND_KEYS_MAX 128
#define CORE_HANDLES 2
#define TTL_TEXT_SIZE 24
#define CANARY_SIZE 96 /* size of its value */
#define CANARY_WORD "canary"
#define TTL_MAX_WORD "ttl_max"
/* Keys that this library keeps beside the locks begin with a prefix. The key "any" exists while a
 * client waits. */
#define PREFIX_MAX 128
#define ANY_WORD "any"
#define ANY_WORD_LEN (sizeof ANY_WORD - 1)
#define LINE_WORD "line:" /* followed by the key: its line */
#define HOT_KEYS 256
#define LINE_SESSION_MS "3500" /* lifetime of the session of a client that waits (lock.L6) */

enum key_stage { KEY_ACQUIRING, KEY_HELD, KEY_RELEASING, KEY_GONE };

struct key {
    const char *bytes;
    void *user;
    struct lease lease;
    struct tally tally;
    uint16_t len;
    uint16_t ok_nodes; /* bit per node whose last answer was OK (lock.N2) */
    uint16_t refused_nodes;
    uint16_t bad_nodes;       /* nodes that replied with an error, were silent, or were not asked */
    uint16_t forbidden_nodes; /* those of the bad nodes where our user may not use this key */
    uint16_t stolen_nodes;    /* where a round found another owner before our lease ended */
    uint8_t result;           /* enum redlock_result */
    uint8_t stage;            /* enum key_stage */
    bool is_contended;        /* refused because several owners compete */
    uint32_t owner;           /* hash of the value that is in the way */
    bool is_in_round;         /* an extension round has it */
    uint8_t deleted;          /* numbers of nodes, by what the release found there (lock.R6) */
    uint8_t stolen;
    uint8_t missing;
    redlock_async_released_cb *told; /* called with the outcome; may be NULL */
    void *told_ctx;
};

/* The holder of a key that was refused. */
struct holder {
    char label[REDLOCK_LABEL_LEN_MAX + 1];
    int votes; /* nodes that named this holder minus those that named another one */
};

/* One node's part in an acquisition; the context of that node's request. */
struct ballot {
    struct redlock_batch *batch;
    size_t node;
    size_t keys_seen;  /* keys whose vote has arrived */
    bool is_witnessed; /* the canary was still there after the votes (lock.N9) */
    bool has_failed;
};

struct redlock_batch {
    struct redlock_async *lock;
    struct redlock_batch *prev; /* list of all batches of the lock */
    struct redlock_batch *next;
    size_t refs;
    char value[VALUE_SIZE];     /* value of its keys; lock->value_len characters */
    char ttl_ms[TTL_TEXT_SIZE]; /* for the commands being formatted, set by batch_set_ttl() */
    struct lease_terms terms;   /* end_us is set when it begins */
    int64_t min_validity_us;
    int64_t max_hold_us; /* lock.E9; 0 = no bound */
    bool is_not_kept;    /* only redlock_batch_extend() extends it */
    struct key *keys;
    uint16_t *order; /* order of the keys on the wire */
    /* Per key and node: when the key will be free, by its PTTL; INT64_MAX = unknown; NULL = not
     * wanted. */
    int64_t *free_at_us;
    struct holder *holders; /* per key; NULL = not wanted */
    size_t count;
    size_t held_count; /* keys in stage HELD; they keep the owner's reference alive */

    struct ballot ballots[REDLOCK_NODES_MAX];
    redlock_async_acquired_cb *done; /* NULL once called */
    void *ctx;
    int64_t t0_us;
    int64_t first_t0_us; /* of the first round with this token */
    /* the waiter of a round in line (line.c), which is not sent as SETs; NULL once decided */
    struct redlock_wait *entrant;
    bool is_entry;
    bool is_part;  /* one of several keys waited for: its user does not know of its state yet */
    int gap_nodes; /* number of nodes that say that its release should suspend the line (lock.L8) */
    int gap_ms;    /* for how long */
    bool is_foreign_near; /* a client that does not use the line was seen, or may be there */
    unsigned written;     /* bit per node to which the SETs were sent */
    unsigned open;        /* bit per node whose reply is not complete: its votes don't count yet */
    unsigned down;        /* bit per node that was not asked, being known as down */
    unsigned quarantined;
    bool is_forbidden; /* some node refuses any script that names one of its keys (lock.C8) */
    bool is_soon;      /* decided; the idle handle will report it */
    struct redlock_batch *next_soon;

    struct heap_item due; /* the time of the next extension, or when the first lease ends */
    int64_t extend_us;    /* INT64_MAX: not planned, or never again */
    int64_t round_t0_us;
    size_t in_round;   /* number of its keys in the round */
    unsigned failures; /* failed rounds in a row */
    bool was_unsure;   /* in the round in flight */
    struct redlock_batch *next_due;

    bool is_releasing; /* it has keys to release at the end of the turn */
    size_t leaving;    /* how many */
    struct redlock_batch *next_releasing;
};

struct node_slot {
    struct redlock_async *lock;
    struct redis_node *redis;
    size_t index;
    char run_id[41]; /* of the server that was accepted last; "" = none so far */
    int64_t up_us;   /* when the present connection was made */
    int64_t down_us; /* when the last connection ended */
    int64_t quarantine_until_us;
    int64_t pause_us; /* length of the last pause after an error reply */
    int64_t pause_end_us;
    bool is_quarantined;     /* it has no vote before quarantine_until_us */
    int64_t lost_memory_us;  /* it may have forgotten older locks; 0 = no loss that counts */
    int64_t ttl_max_us;      /* T_max as it last reported it (lock.N10); 0 = not yet */
    int64_t ttl_max_told_us; /* when we last sent it ours */
    bool is_refused;
    struct redis_server_info info; /* from the last handshake or check, even if refused */
    int64_t check_us;              /* while it is up: time of the next check */
    int64_t check_sent_us;
    int64_t check_took_us; /* duration of the last check that was answered; 0 = none yet */
    /* The canary when it was last read; "" = no server was seen yet (lock.N9). */
    char canary[CANARY_SIZE];
    bool is_asked_for_canary;
    bool has_forgotten; /* in this quarantine, its answers about leases do not count */
    bool is_known; /* the canary was read on this connection; without that the node has no vote */
    bool is_up_untold; /* connected, but the event is not reported yet */
    bool is_first;     /* this is the first server seen at this address */
    char down_why[REDLOCK_MESSAGE_SIZE];
    char quarantine_why[REDLOCK_MESSAGE_SIZE];
    struct clockwatch clock;
    int64_t clock_offset_us; /* from our wall clock; INT64_MIN = unknown */
    int64_t asked_us;        /* when it was asked for its clock */
    bool is_asked;
    int64_t line_refused_until_us; /* until then, our user may not join lines on it */
};

/* A key that others wanted a moment ago: the next request for it joins the line at once. */
struct hot_key {
    uint32_t hash;
    int64_t until_us;
};

/* A round in line, under a token that stays the same (lock.L3). */
struct entry {
    struct redlock_wait *wait;
    const char *value; /* the token and our label */
    bool is_part;      /* part of a request for several keys: its state is not reported */
    struct redlock_batch *former; /* the batch of the previous round; NULL = none */
};

struct breaking;
struct fence;
struct inspect;
struct flush_waiter;
struct release;
struct waits;
struct round;
struct extend_call;

/* Hooks for the blocking client; all zero = none. */
struct core_hooks {
    void (*before_renewal)(void *ctx); /* called before leases are extended, to take unlocks (W6) */
    void (*on_deadline)(void *user);   /* the deadline of a kept key has changed (lock.E7) */
    void *ctx;
};

struct redlock_async {
    struct redlock_async_options options;
    struct core_hooks hooks;
    size_t quorum;
    char prefix[REDLOCK_PREFIX_LEN + 1];
    char label[REDLOCK_LABEL_LEN_MAX + 1]; /* "" = none */
    size_t value_len;                      /* length of the value of each of our keys */
    struct redis_tls *tls; /* made from the options; NULL = none given, or no node uses TLS */
    struct node_slot nodes[REDLOCK_NODES_MAX];
    struct redlock_counters counters;
    struct rand rand;
    struct buf wire; /* commands that are formatted but not sent yet */
    struct pool pool;
    char canary_key[PREFIX_MAX + sizeof CANARY_WORD];   /* begins with the prefix */
    char ttl_max_key[PREFIX_MAX + sizeof TTL_MAX_WORD]; /* likewise */
    size_t prefix_len;
    char any_key[PREFIX_MAX + sizeof ANY_WORD]; /* likewise; exists if there is any line */

    struct redlock_batch *batches;
    size_t batch_count;
    struct heap kept;     /* batches */
    struct round *rounds; /* in flight */
    int64_t clocks_us;    /* when the nodes were last asked for their clocks */
    struct extend_call *calls_over;
    struct redlock_batch *soon;
    struct redlock_batch *releasing;
    struct redlock_batch *starting; /* to be sent at the end of the turn, newest first */
    bool is_send_next;              /* the idle handle is about to send both anyway */
    struct release *releases;       /* the oldest first */
    struct release *last_release;
    uint64_t release_seq;
    size_t release_keys;     /* number of keys in `releases` */
    int64_t release_wake_us; /* 0 = nothing waits to be sent again */
    bool has_untold;         /* some releases that could not be sent have a callback */
    struct flush_waiter *waiters;
    struct fence *fences_soon;
    struct inspect *inspects_over;
    struct breaking *breaks_over;
    struct waits *waits; /* NULL until a request waits */
    struct hot_key hot_keys[HOT_KEYS];
    int64_t last_score;

    uv_idle_t idle;
    uv_poll_t timer; /* on timer_fd, CLOCK_BOOTTIME */
    int timer_fd;
    int64_t timer_at_us;
    size_t handles_open;
    bool is_closing;
    redlock_async_closed_cb *closed;
    void *closed_ctx;
};

/* ---- async.c ---- */
void core_soon(struct redlock_async *lock); /* runs the idle handle once */
/* does the same, unless the idle handle is about to send anyway */
void core_send_soon(struct redlock_async *lock);
/* Makes the timer fire at that time at the latest. */
void core_wake_at(struct redlock_async *lock, int64_t at_us);

void core_print_i64(char ret_text[TTL_TEXT_SIZE], int64_t value);
/* Inserts a number into `count` numbers in rising order; there must be room for one more. */
void core_sort_in(int64_t *sorted, size_t count, int64_t value);

void core_hook(struct redlock_async *lock, const struct core_hooks *hooks);

/* ---- batch.c ---- */
/* Checks the keys. INVALID names the bound; otherwise *ret_bytes is their total size. */
enum status batch_check_keys(const struct redlock_async_key *keys, size_t count, size_t *ret_bytes,
                             struct err *err) MUST_USE;
/* Makes a batch with keys, terms and a token, and adds it to the lock's list. INVALID names what is
 * out of bounds. */
enum status batch_new(struct redlock_async *lock, const struct redlock_async_request *request,
                      struct redlock_batch **ret_batch, struct err *err) MUST_USE;
/* Begins the batch: sets t0, and with it the end of its longest hold (lock.A4, E9). */
void batch_begin(struct redlock_batch *b, int64_t t0_us);
/* Makes the batch a round in line, with the entry's token, after its former round. */
void batch_enters(struct redlock_batch *b, const struct entry *entry);
/* Sets `ttl_ms` for a round that begins at t0. */
void batch_set_ttl(struct redlock_batch *b, int64_t t0_us);
struct redis_arg batch_value(const struct redlock_batch *b);
/* True if this is the value of the batch's keys. */
bool batch_is_own(const struct redlock_batch *b, const struct redis_value *v);
void batch_ref(struct redlock_batch *b);
void batch_unref(struct redlock_batch *b);
void batch_free(struct redlock_batch *b); /* even if it is referenced */
/* Takes a held key to another stage; the last one drops the owner's reference. */
void batch_key_leaves(struct redlock_batch *b, size_t index, enum key_stage to);

/* ---- nodes.c ---- */
/* Parses URLs. INVALID names what is wrong: their number, an address, a duplicate. */
enum status nodes_parse(const struct redlock_node *nodes, size_t count,
                        struct redis_endpoint ret_endpoints[REDLOCK_NODES_MAX],
                        struct err *err) MUST_USE;
enum status nodes_open(struct redlock_async *lock, const struct redis_endpoint *endpoints,
                       struct err *err) MUST_USE;
void nodes_close(struct redlock_async *lock);
bool node_may_vote(const struct node_slot *n);
/* Handles an error reply; call it for each. If the node is in trouble or refuses us (memory, rights
 * and the like), it has no vote for a while, and an event says why (lock.C8). */
void node_note_error(struct node_slot *n, const struct redis_value *v);
/* Reports something that does not cost the node its vote. */
void node_warn(struct node_slot *n, const char *text);
/* Handles a canary that has changed or is gone: the node has forgotten locks, so it has no vote for
 * a while, and its earlier answers do not count (lock.N9, N2). */
void node_forgot(struct node_slot *n);
/* Handles a canary that was read: the node may vote, unless it has lost its keys since the last
 * reading. */
void node_known(struct node_slot *n, bool is_another, int64_t age_us);
/* Handles a step of the node's clock. Forward: keys may have ended early, so it has no vote for a
 * while. Backward: keys live longer, which only delays waiters (lock.N4). */
void node_clock_stepped(struct node_slot *n, int64_t step_us);
/* Ends quarantines that are over, and checks nodes. Returns when to call it again; INT64_MAX =
 * never. */
int64_t nodes_tick(struct redlock_async *lock, int64_t now_us);

/* Handles a node's report of how long the locks of any client may be (lock.N10). */
void node_said_ttl_max(struct node_slot *n, int64_t ttl_max_us);

/* ---- ttl_max.c (lock.N10) ---- */
void ttl_max_ask(struct node_slot *n); /* also sends it our own */
/* Appends the command that reads it to `out`. Its reply is for ttl_max_take(), which calls
 * ttl_max_ask() if the node must be updated. */
enum status ttl_max_put(const struct redlock_async *lock, struct buf *out) MUST_USE;
void ttl_max_take(struct node_slot *n, const struct redis_value *v);

/* ---- canary.c (lock.N9) ---- */
struct redis_arg canary_arg(const struct redlock_async *lock); /* the key */
/* Appends the command that reads it to `wire`; its reply is for canary_take(). */
enum status canary_put(struct redlock_async *lock, struct err *err) MUST_USE;
bool canary_take(struct node_slot *n, const struct redis_value *v);
/* Checks the canary's value: true if the node still knows what it stored before, so that its
 * answers count. */
bool canary_is_alive(struct node_slot *n, const struct redis_value *v);
/* Reads the canary, or sets it if there is none: then calls node_known(), or the node is
 * refused. */
void canary_ask(struct node_slot *n);

/* ---- acquire.c ---- */
void acquire_report(struct redlock_async *lock); /* reports batches that are decided */
void acquire_send(struct redlock_async *lock);   /* call it after release_send_all() */
void acquire_cancel(struct redlock_async *lock); /* ends acquisitions in flight as CANCELLED */
/* Turns the node's OKs into errors for acquisitions in flight: it may have forgotten them
 * (lock.N2). */
void acquire_drop_votes(struct redlock_async *lock, size_t node);

/* Asks for one key in line (lock.L3). If the key is not won, the batch is not released, since its
 * waiter goes on. Returns 0 or a negative errno, like redlock_async_acquire(). */
int acquire_enter(struct redlock_async *lock, const struct redlock_async_request *request,
                  const struct entry *entry, struct redlock_error *ret_error);

/* ---- line_answer.c ---- */
/* Takes a node's answer to a round in line; false = an error, which has been noted. */
bool line_take_answer(struct redlock_batch *b, size_t node, const struct redis_value *v,
                      bool *ret_is_witnessed);

/* Checks whether the error says that our user may not join lines there. If so, a warning is
 * reported, and the client polls for a while (lock.L9). */
bool line_note_refused(struct node_slot *n, const struct redis_value *v);

/* ---- line_rights.c ---- */
void line_ask_rights(struct node_slot *n); /* call it once per connection */

/* ---- line_terms.c ---- */
bool line_is_usable_on(const struct node_slot *n);
/* True if this client may join lines. If a quorum does not allow it, the client polls, and its
 * tokens look like those of a client that does not use the line (lock.L9). */
bool line_is_usable(const struct redlock_async *lock);
/* Returns the score of a request that begins to wait now; it is higher than all earlier ones of
 * this client. */
int64_t line_draw_score(struct redlock_async *lock);
/* Returns how long an offer lasts: 20 of the slowest rounds, 100 ms to 1 s. */
int64_t line_offer_us(const struct redlock_async *lock);
/* The same in ms, and the prefix of the line's keys, as arguments of the scripts. */
void line_print_offer(const struct redlock_async *lock, char ret_text[TTL_TEXT_SIZE]);
struct redis_arg line_prefix_arg(const struct redlock_async *lock);
/* Notes whether others want the key. If so, this client's next request for it joins the line at
 * once. */
void line_note_contended(struct redlock_async *lock, const char *key, size_t len,
                         bool is_contended);

/* ---- votes.c ---- */
/* Takes the reply to SET … NX GET, the former value (lock.A11). Returns false for an error. A
 * node's consent counts only once votes_count() confirms that the canary was there after it
 * (lock.N9). */
bool votes_take(struct redlock_batch *b, size_t index, size_t node, const struct redis_value *v);
/* Notes that another client has the key there. `owner` is its value, or the error reply for a key
 * of another type. */
void votes_refuse(struct redlock_batch *b, size_t index, size_t node,
                  const struct redis_value *owner);
bool votes_is_other_type(const struct redis_value *v); /* true for WRONGTYPE */
/* True if too many nodes forbid the key for it ever to be won. */
bool votes_are_forbidden(const struct redlock_batch *b, size_t index);
void votes_take_ttl(struct redlock_batch *b, size_t index, size_t node,
                    const struct redis_value *v);
void votes_count(struct redlock_batch *b, size_t node, bool is_witnessed);
/* Notes that the node does not vote on the keys from `keys_seen` on, in the order on the wire. */
void votes_silence(struct redlock_batch *b, size_t node, size_t keys_seen);

/* ---- clocks.c ---- */
/* asks unless it did so a moment ago */
void clocks_ask(struct redlock_async *lock, int64_t now_us);

/* ---- keeper.c ---- */
void keeper_add(struct redlock_batch *b); /* heap_reserve() has made room */
int64_t keeper_tick(struct redlock_async *lock, int64_t now_us);
/* calls back the results of redlock_batch_extend() */
void keeper_report(struct redlock_async *lock);
/* Applies the verdict of a round for one key. `call` is the redlock_batch_extend() that asked for
 * it; NULL = the keeper itself. */
void keeper_settle(struct redlock_batch *b, size_t index, const struct extend_tally *tally,
                   int64_t t0_us, struct extend_call *call);
/* Drops the node's earlier confirmations: it may have forgotten them (lock.N2). */
void keeper_drop_votes(struct redlock_async *lock, size_t node);

/* ---- round.c ---- */
struct round *round_new(struct redlock_async *lock, int64_t t0_us, struct extend_call *call);
/* Returns true if the round is full and must be sent. */
bool round_add(struct round *round, struct redlock_batch *b, size_t index);
/* the round settles each key from the loop, then frees itself */
void round_send(struct round *round);
/* settles rounds that could not be sent to any node */
void rounds_settle(struct redlock_async *lock);
void rounds_drop_votes(struct redlock_async *lock, size_t node);

/* ---- release.c ---- */
/* Marks the key for release, which is sent at the end of the turn, before the SETs of this turn. */
void release_key_soon(struct redlock_batch *b, size_t index);
void release_tell(struct redlock_async *lock);     /* calls back for releases that get no reply */
void release_send_all(struct redlock_async *lock); /* sends what was released, in groups */
void release_node_up(struct redlock_async *lock, size_t node);
int64_t release_tick(struct redlock_async *lock, int64_t now_us);
/* Returns the sequence number of the oldest one; UINT64_MAX = none. */
uint64_t release_oldest_in_flight(const struct redlock_async *lock);
void release_free_all(struct redlock_async *lock);

/* ---- wait.c ---- */
void wait_report(struct redlock_async *lock);
int64_t wait_tick(struct redlock_async *lock, int64_t now_us);
/* ends all waiters as CANCELLED; the loop calls back */
void wait_close(struct redlock_async *lock);
void wait_free(struct redlock_async *lock);

/* ---- fence.c ---- */
/* reports fences that could not be sent to enough nodes */
void fence_report(struct redlock_async *lock);

/* ---- inspect.c ---- */
void inspect_report(struct redlock_async *lock); /* the same for inspections */

/* ---- break.c ---- */
void break_report(struct redlock_async *lock); /* the same for breaks */

/* ---- flush.c ---- */
void release_report_flushed(struct redlock_async *lock);

#endif
