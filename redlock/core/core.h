/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this library share; no other file includes it.
 *
 * A batch lives as long as it is referenced: by its owner (while it is being acquired, and then
 * until every won key is released) and by every request that names it. All user callbacks come from
 * the loop, never from inside a user's call. What must happen "soon" is done by one idle handle,
 * which also groups the releases of one turn. */
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
#define CANARY_SIZE 96 /* of its value */
#define CANARY_WORD "canary"
#define TTL_MAX_WORD "ttl_max"
/* Of the keys that this library keeps beside the locks; its marker says that somebody waits. */
#define PREFIX_MAX 128
#define ANY_WORD "any"
#define ANY_WORD_LEN (sizeof ANY_WORD - 1)
#define LINE_WORD "line:" /* … and the line of a key */
#define HOT_KEYS 256
#define LINE_SESSION_MS "3500" /* of a client that waits (lock.L6) */

enum key_stage { KEY_ACQUIRING, KEY_HELD, KEY_RELEASING, KEY_GONE };

struct key {
    const char *bytes;
    void *user;
    struct lease lease;
    struct tally tally;
    uint16_t len;
    uint16_t ok_nodes; /* bit per node whose last answer was OK (lock.N2) */
    uint16_t refused_nodes;
    uint16_t bad_nodes;       /* error reply, silence, or not asked */
    uint16_t forbidden_nodes; /* of the bad ones: our user may not touch this key there */
    uint16_t stolen_nodes;    /* where a round found another owner before our lease ended */
    uint8_t result;           /* enum redlock_result */
    uint8_t stage;            /* enum key_stage */
    bool is_contended;        /* refused because of several owners */
    uint32_t owner;           /* hash of the value in the way */
    bool is_in_round;         /* of extensions */
    uint8_t deleted;          /* nodes, by what the release found there (lock.R6) */
    uint8_t stolen;
    uint8_t missing;
    redlock_async_released_cb *told; /* gets the outcome; may be NULL */
    void *told_ctx;
};

/* Who has a key that was refused. */
struct holder {
    char label[REDLOCK_LABEL_LEN_MAX + 1];
    int votes; /* so many more nodes named this one than another */
};

/* One node's part in an acquisition; the context of its request. */
struct ballot {
    struct redlock_batch *batch;
    size_t node;
    size_t keys_seen;  /* whose vote has arrived */
    bool is_witnessed; /* the canary was there behind them (lock.N9) */
    bool has_failed;
};

struct redlock_batch {
    struct redlock_async *lock;
    struct redlock_batch *prev; /* all of the lock's batches */
    struct redlock_batch *next;
    size_t refs;
    char value[VALUE_SIZE];     /* of its keys; lock->value_len characters */
    char ttl_ms[TTL_TEXT_SIZE]; /* for the round that is being formatted: batch_set_ttl() */
    struct lease_terms terms;   /* their end is set when it begins */
    int64_t min_validity_us;
    int64_t max_hold_us; /* lock.E9; 0 = no bound */
    bool is_not_kept;    /* nobody extends it but redlock_batch_extend() */
    struct key *keys;
    uint16_t *order; /* of the keys on the wire */
    /* Per key and node, as its PTTL said; INT64_MAX = unknown; NULL = unasked. */
    int64_t *free_at_us;
    struct holder *holders; /* per key; NULL = unasked */
    size_t count;
    size_t held_count; /* keys in stage HELD: they keep the owner's reference */

    struct ballot ballots[REDLOCK_NODES_MAX];
    redlock_async_acquired_cb *done; /* NULL once called */
    void *ctx;
    int64_t t0_us;
    int64_t first_t0_us;          /* of the first round with this token */
    struct redlock_wait *entrant; /* it is a round in line (line.c), not SETs; NULL once decided */
    bool is_entry;
    bool is_part;  /* one of several keys that are waited for: nobody has been told of it yet */
    int gap_nodes; /* so many say that its release is to leave the line away (lock.L8) … */
    int gap_ms;    /* … for so long */
    bool is_foreign_near; /* a client that knows no line was seen, or may be there */
    unsigned written;     /* bit per node that was sent the SETs */
    unsigned open;        /* bit per node whose answer is not complete: its votes don't count yet */
    unsigned down;        /* bit per node that was not, being known as down */
    unsigned quarantined;
    bool is_forbidden; /* some node refuses any script that names one of its keys (lock.C8) */
    bool is_soon;      /* decided; the idle handle is to report it */
    struct redlock_batch *next_soon;

    struct heap_item due; /* at the extension, or when the first lease ends */
    int64_t extend_us;    /* INT64_MAX: not planned, or never again */
    int64_t round_t0_us;
    size_t in_round;   /* keys */
    unsigned failures; /* rounds in a row */
    bool was_unsure;   /* the round under way */
    struct redlock_batch *next_due;

    bool is_releasing; /* has keys to release at the end of the turn */
    size_t leaving;    /* how many */
    struct redlock_batch *next_releasing;
};

struct node_slot {
    struct redlock_async *lock;
    struct redis_node *redis;
    size_t index;
    char run_id[41]; /* of the last server that was accepted; "" = none so far */
    int64_t up_us;   /* connected since then */
    int64_t down_us; /* when the last connection ended */
    int64_t quarantine_until_us;
    int64_t pause_us; /* length of the last pause after an error reply */
    int64_t pause_end_us;
    bool is_quarantined;     /* no vote before quarantine_until_us */
    int64_t lost_memory_us;  /* it may have forgotten locks from before; 0 = none that count */
    int64_t ttl_max_us;      /* as it said last (lock.N10); 0 = it has not */
    int64_t ttl_max_told_us; /* when we told it ours */
    bool is_refused;
    struct redis_server_info info; /* of the last handshake or check, even if refused */
    int64_t check_us;              /* while it is up: time of the next check */
    int64_t check_sent_us;
    int64_t check_took_us; /* duration of the last one answered; 0 = none yet */
    /* As it was when it was last asked; "" = no server has been there yet (lock.N9). */
    char canary[CANARY_SIZE];
    bool is_asked_for_canary;
    bool has_forgotten; /* in this quarantine: what it says of leases does not count */
    bool is_known;      /* the canary is of this connection: without one it has no vote */
    bool is_up_untold;  /* connected, but not known yet */
    bool is_first;      /* this server is the first one that was seen there */
    char down_why[REDLOCK_MESSAGE_SIZE];
    char quarantine_why[REDLOCK_MESSAGE_SIZE];
    struct clockwatch clock;
    int64_t clock_offset_us; /* from our wall clock; INT64_MIN = unknown */
    int64_t asked_us;        /* for its clock */
    bool is_asked;
    int64_t line_refused_until_us; /* our user may not stand in line there */
};

/* A key that others wanted a moment ago: who wants it next asks in line at once. */
struct hot_key {
    uint32_t hash;
    int64_t until_us;
};

/* A round in line, under a token that is kept (lock.L3). */
struct entry {
    struct redlock_wait *wait;
    const char *value;            /* the token, and our label */
    bool is_part;                 /* of a request for several keys: nobody is told of its state */
    struct redlock_batch *former; /* the round before; NULL = none */
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
    void (*before_renewal)(void *ctx); /* before leases are extended: takes unlocks (W6) */
    void (*on_deadline)(void *user);   /* a kept key has a new deadline (lock.E7) */
    void *ctx;
};

struct redlock_async {
    struct redlock_async_options options;
    struct core_hooks hooks;
    size_t quorum;
    char prefix[REDLOCK_PREFIX_LEN + 1];
    char label[REDLOCK_LABEL_LEN_MAX + 1]; /* "" = none */
    size_t value_len;                      /* of each of our keys */
    struct redis_tls *tls; /* of the options; NULL = none were given, or no node needs it */
    struct node_slot nodes[REDLOCK_NODES_MAX];
    struct redlock_counters counters;
    struct rand rand;
    struct buf wire; /* commands that are formatted but not yet sent */
    struct pool pool;
    char canary_key[PREFIX_MAX + sizeof CANARY_WORD];   /* begins with the prefix */
    char ttl_max_key[PREFIX_MAX + sizeof TTL_MAX_WORD]; /* likewise */
    size_t prefix_len;
    char any_key[PREFIX_MAX + sizeof ANY_WORD]; /* likewise: is there any line? */

    struct redlock_batch *batches;
    size_t batch_count;
    struct heap kept;     /* batches */
    struct round *rounds; /* under way */
    int64_t clocks_us;    /* when the nodes were last asked for theirs */
    struct extend_call *calls_over;
    struct redlock_batch *soon;
    struct redlock_batch *releasing;
    struct redlock_batch *starting; /* to be sent at the end of the turn, newest first */
    bool is_send_next;              /* the idle handle is about to send both */
    struct release *releases;       /* the oldest first */
    struct release *last_release;
    uint64_t release_seq;
    size_t release_keys;     /* in `releases` */
    int64_t release_wake_us; /* 0 = nothing waits to be sent again */
    bool has_untold;         /* releases that could not be sent have a callback */
    struct flush_waiter *waiters;
    struct fence *fences_soon;
    struct inspect *inspects_over;
    struct breaking *breaks_over;
    struct waits *waits; /* NULL until somebody waits */
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
void core_soon(struct redlock_async *lock);      /* runs the idle handle once */
void core_send_soon(struct redlock_async *lock); /* the same, unless it is about to send anyway */
/* The timer is to fire at that time at the latest. */
void core_wake_at(struct redlock_async *lock, int64_t at_us);

void core_print_i64(char ret_text[TTL_TEXT_SIZE], int64_t value);
/* Into its place among `count` numbers, the least of them first; there is room for one more. */
void core_sort_in(int64_t *sorted, size_t count, int64_t value);

void core_hook(struct redlock_async *lock, const struct core_hooks *hooks);

/* ---- batch.c ---- */
/* INVALID names the bound; else yields their total size in bytes. */
enum status batch_check_keys(const struct redlock_async_key *keys, size_t count, size_t *ret_bytes,
                             struct err *err) MUST_USE;
/* A new batch with keys, terms and a token, in the lock's list. INVALID names what is out of
 * bounds. */
enum status batch_new(struct redlock_async *lock, const struct redlock_async_request *request,
                      struct redlock_batch **ret_batch, struct err *err) MUST_USE;
/* It begins now: t0, and with it the end of its longest hold (lock.A4, E9). */
void batch_begin(struct redlock_batch *b, int64_t t0_us);
/* It is a round in line: under the entry's token, after its former round. */
void batch_enters(struct redlock_batch *b, const struct entry *entry);
/* Sets `ttl_ms` for a round that begins at t0. */
void batch_set_ttl(struct redlock_batch *b, int64_t t0_us);
struct redis_arg batch_value(const struct redlock_batch *b);
/* Is this the value of its keys? */
bool batch_is_own(const struct redlock_batch *b, const struct redis_value *v);
void batch_ref(struct redlock_batch *b);
void batch_unref(struct redlock_batch *b);
void batch_free(struct redlock_batch *b); /* even if referenced */
/* A held key leaves its stage; the last one drops the owner's reference. */
void batch_key_leaves(struct redlock_batch *b, size_t index, enum key_stage to);

/* ---- nodes.c ---- */
/* Parses URLs; INVALID names what is wrong: their number, an address, a duplicate. */
enum status nodes_parse(const struct redlock_node *nodes, size_t count,
                        struct redis_endpoint ret_endpoints[REDLOCK_NODES_MAX],
                        struct err *err) MUST_USE;
enum status nodes_open(struct redlock_async *lock, const struct redis_endpoint *endpoints,
                       struct err *err) MUST_USE;
void nodes_close(struct redlock_async *lock);
bool node_may_vote(const struct node_slot *n);
/* To be called with each error reply. If the node is in trouble or refuses us (memory, rights and
 * the like), it has no vote for a while, and the user is told why (lock.C8). */
void node_note_error(struct node_slot *n, const struct redis_value *v);
/* Tells the user of what costs no vote. */
void node_warn(struct node_slot *n, const char *text);
/* Its canary is another one, or gone: it has forgotten locks, so it has no vote for a while, and
 * what it said so far does not count (lock.N9, N2). */
void node_forgot(struct node_slot *n);
/* Its canary was read: it may vote, unless it has lost its keys since the last look. */
void node_known(struct node_slot *n, bool is_another, int64_t age_us);
/* Forward: keys may have ended early there, so it has no vote for a while. Backward: keys live
 * longer, which only delays waiters (lock.N4). */
void node_clock_stepped(struct node_slot *n, int64_t step_us);
/* Ends quarantines that are over; yields when to look again, INT64_MAX = never. */
int64_t nodes_tick(struct redlock_async *lock, int64_t now_us);

/* It said how long the locks of any client may be (lock.N10). */
void node_said_ttl_max(struct node_slot *n, int64_t ttl_max_us);

/* ---- ttl_max.c (lock.N10) ---- */
void ttl_max_ask(struct node_slot *n); /* tells it ours, too */
/* The command of a look, appended to `out`; its reply is for ttl_max_take(), which asks if the node
 * must be told. */
enum status ttl_max_put(const struct redlock_async *lock, struct buf *out) MUST_USE;
void ttl_max_take(struct node_slot *n, const struct redis_value *v);

/* ---- canary.c (lock.N9) ---- */
struct redis_arg canary_arg(const struct redlock_async *lock); /* the key */
/* The command that reads it, appended to `wire`; its reply is for canary_take(). */
enum status canary_put(struct redlock_async *lock, struct err *err) MUST_USE;
bool canary_take(struct node_slot *n, const struct redis_value *v);
/* Its value: true if the node still knows what it was told before, and what it says counts. */
bool canary_is_alive(struct node_slot *n, const struct redis_value *v);
/* Which one is there? node_known() is called with it, or the node is refused. */
void canary_ask(struct node_slot *n);

/* ---- acquire.c ---- */
void acquire_report(struct redlock_async *lock); /* those that are decided */
void acquire_send(struct redlock_async *lock);   /* after release_send_all() */
void acquire_cancel(struct redlock_async *lock); /* those under way end as CANCELLED */
/* The node may have forgotten what it said OK to: for acquisitions under way this is an error now
 * (lock.N2). */
void acquire_drop_votes(struct redlock_async *lock, size_t node);

/* Asks for one key in line (lock.L3). The batch is not released by itself if the key is not won, as
 * its waiter goes on. 0 or a negative errno, as redlock_async_acquire(). */
int acquire_enter(struct redlock_async *lock, const struct redlock_async_request *request,
                  const struct entry *entry, struct redlock_error *ret_error);

/* ---- line_answer.c ---- */
/* The answer of a node to a round in line; false = an error, which has been noted. */
bool line_take_answer(struct redlock_batch *b, size_t node, const struct redis_value *v,
                      bool *ret_is_witnessed);

/* If it says that our user may not stand in line there: it is warned of, and the client polls for
 * a while (lock.L9). */
bool line_note_refused(struct node_slot *n, const struct redis_value *v);

/* ---- line_rights.c ---- */
void line_ask_rights(struct node_slot *n); /* once per connection */

/* ---- line_terms.c ---- */
bool line_is_usable_on(const struct node_slot *n);
/* May this client stand in line? Where a quorum does not let it, it polls, and its tokens look like
 * those of a client that knows no line (lock.L9). */
bool line_is_usable(const struct redlock_async *lock);
/* For one that begins to wait now: higher than all that this client has drawn. */
int64_t line_draw_score(struct redlock_async *lock);
/* 20 of the slowest rounds, 100 ms to 1 s. */
int64_t line_offer_us(const struct redlock_async *lock);
/* The same in ms, and the prefix of the line's keys, as the scripts are given them. */
void line_print_offer(const struct redlock_async *lock, char ret_text[TTL_TEXT_SIZE]);
struct redis_arg line_prefix_arg(const struct redlock_async *lock);
/* Others want the key, or don't: who wants it next in this client asks in line at once. */
void line_note_contended(struct redlock_async *lock, const char *key, size_t len,
                         bool is_contended);

/* ---- votes.c ---- */
/* The reply to SET … NX GET: the former value (lock.A11). False = an error. A node's consent counts
 * once votes_count() has been told that its canary was there behind it (lock.N9). */
bool votes_take(struct redlock_batch *b, size_t index, size_t node, const struct redis_value *v);
/* Another has the key there: `owner` is the value, or what tells of one of another type. */
void votes_refuse(struct redlock_batch *b, size_t index, size_t node,
                  const struct redis_value *owner);
bool votes_is_other_type(const struct redis_value *v); /* WRONGTYPE */
/* So many nodes forbid the key that none of its tries can be won. */
bool votes_are_forbidden(const struct redlock_batch *b, size_t index);
void votes_take_ttl(struct redlock_batch *b, size_t index, size_t node,
                    const struct redis_value *v);
void votes_count(struct redlock_batch *b, size_t node, bool is_witnessed);
/* The node does not vote on the keys from this one on, in the order of the wire. */
void votes_silence(struct redlock_batch *b, size_t node, size_t keys_seen);

/* ---- clocks.c ---- */
void clocks_ask(struct redlock_async *lock, int64_t now_us); /* unless it did a moment ago */

/* ---- keeper.c ---- */
void keeper_add(struct redlock_batch *b); /* room was reserved by heap_reserve() */
int64_t keeper_tick(struct redlock_async *lock, int64_t now_us);
void keeper_report(struct redlock_async *lock); /* results of redlock_batch_extend() */
/* Applies the verdict of a round for one key; `call` is the request for it, NULL = the keeper's
 * own. */
void keeper_settle(struct redlock_batch *b, size_t index, const struct extend_tally *tally,
                   int64_t t0_us, struct extend_call *call);
/* The node may have forgotten what it confirmed so far (lock.N2). */
void keeper_drop_votes(struct redlock_async *lock, size_t node);

/* ---- round.c ---- */
struct round *round_new(struct redlock_async *lock, int64_t t0_us, struct extend_call *call);
/* True when it is full and must be sent. */
bool round_add(struct round *round, struct redlock_batch *b, size_t index);
void round_send(struct round *round); /* it settles each key from the loop, then frees itself */
void rounds_settle(struct redlock_async *lock); /* those that could be sent to no node */
void rounds_drop_votes(struct redlock_async *lock, size_t node);

/* ---- release.c ---- */
/* Sent at the end of the turn, before the SETs of this turn. */
void release_key_soon(struct redlock_batch *b, size_t index);
void release_tell(struct redlock_async *lock);     /* calls back where no reply will */
void release_send_all(struct redlock_async *lock); /* what was released, in groups */
void release_node_up(struct redlock_async *lock, size_t node);
int64_t release_tick(struct redlock_async *lock, int64_t now_us);
/* Its sequence number; UINT64_MAX = none. */
uint64_t release_oldest_in_flight(const struct redlock_async *lock);
void release_free_all(struct redlock_async *lock);

/* ---- wait.c ---- */
void wait_report(struct redlock_async *lock);
int64_t wait_tick(struct redlock_async *lock, int64_t now_us);
void wait_close(struct redlock_async *lock); /* all waiters end as CANCELLED, told by the loop */
void wait_free(struct redlock_async *lock);

/* ---- fence.c ---- */
void fence_report(struct redlock_async *lock); /* those that could be sent to no node */

/* ---- inspect.c ---- */
void inspect_report(struct redlock_async *lock); /* the same */

/* ---- break.c ---- */
void break_report(struct redlock_async *lock); /* the same */

/* ---- flush.c ---- */
void release_report_flushed(struct redlock_async *lock);

#endif
