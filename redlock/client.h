/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the blocking client share; nobody else includes it.
 *
 * One thread per client runs the core (redlock_async.h) on a loop of its own; "the thread" below.
 * Whoever calls from elsewhere writes a mail that lies on his stack, or in a handle, rings the bell
 * and waits for the answer. Callbacks of the user run on the thread between two turns of the loop,
 * so a callback may call the library again: such a call turns the loop itself.
 *
 * One mutex, held for a few instructions at a time and never while anything else is called, guards
 * the fields that say so. Fields without a word belong to the thread. */
#ifndef CLAIMD_REDLOCK_CLIENT_H
#define CLAIMD_REDLOCK_CLIENT_H

#include "base/err.h"
#include "redis/redis.h"
#include "redlock/redlock_async.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct redlock_lock;

struct mail {
    struct mail *next;
    void (*deliver)(struct redlock *c, struct mail *mail); /* on the thread */
};

/* As long as there are callers and handles: each has one mail at most. */
struct mailbox { /* guarded by the mutex, but for the bell */
    struct mail *first;
    struct mail **end;
    bool is_closed;
    uv_async_t bell;
};

/* On the stack of a caller, who waits. */
struct call {
    struct mail mail;
    pthread_cond_t cond;
    bool is_answered; /* guarded by the mutex */
};

/* What was last heard of a node; guarded by the mutex, read by the thread without. */
struct node_news {
    bool is_any;
    enum redlock_node_event event;
    char why[REDLOCK_MESSAGE_SIZE];
};

#define EVENTS_MAX 32 /* that wait for their callback; further ones push out the oldest */
struct node_event {
    size_t node;
    enum redlock_node_event event;
    char why[REDLOCK_MESSAGE_SIZE];
};

struct settings { /* checked options, in microseconds */
    int64_t ttl_us;
    int64_t ttl_max_us;
    int64_t node_timeout_us;
    int64_t min_validity_us;
    int64_t retry_base_us;
    int64_t retry_cap_us;
    int64_t open_timeout_us;
    int retries;
    size_t node_count;
    redlock_node_cb *on_node;
    void *ctx;
};

struct redlock {
    atomic_int refs; /* the opener's, each handle's, owner's and cancel's */
    pid_t pid;
    pthread_t thread;
    pthread_t thread_self; /* as it calls itself, set before anybody may ask */
    struct settings settings;
    char node_names[REDLOCK_NODES_MAX][REDIS_ENDPOINT_TEXT_SIZE];

    pthread_mutex_t mutex;
    pthread_cond_t quiet; /* CLOCK_MONOTONIC */
    struct mailbox mailbox;
    unsigned callers;           /* guarded: inside a call */
    unsigned renewing;          /* guarded: turns until what is being extended was written */
    struct redlock_lock *spare; /* guarded: handles to be used again */
    size_t spare_count;
    struct node_news news[REDLOCK_NODES_MAX];

    uv_loop_t loop;
    struct redlock_async *core; /* NULL once it is closed */
    bool is_closing;            /* nothing new is asked for */
    bool has_closed;            /* the core hears of it */
    struct ask *asks;           /* under way */
    size_t ask_count;
    struct redlock_lock *held;
    size_t held_keys;
    struct redlock_lock *changed; /* their callbacks are to be called */
    struct redlock_lock **changed_end;
    struct redlock_lock *telling; /* its callback is running */
    struct node_event events[EVENTS_MAX];
    size_t event_first;
    size_t event_count;
};

/* ---- client.c ---- */
/* Made by another process: nothing works (lock.F1). */
bool client_is_forked(const struct redlock *c);
bool client_is_thread(const struct redlock *c); /* is this its thread? */
void client_ref(struct redlock *c);
void client_unref(struct redlock *c);
void client_turn(struct redlock *c); /* one turn of the loop, from the thread */

/* ---- settings.c ---- */
/* Bounds and defaults; INVALID names the option and what is allowed. */
enum status settings_read(const struct redlock_options *options, struct settings *ret,
                          struct err *err) MUST_USE;
enum status settings_check_ttl(const struct settings *s, int64_t ttl_ms, struct err *err) MUST_USE;

/* ---- mailbox.c ---- */
/* False when it is closed: nobody will deliver it. */
bool mailbox_put(struct redlock *c, struct mail *mail);  /* under the mutex */
bool mailbox_post(struct redlock *c, struct mail *mail); /* and waits for what is being renewed */
/* Waits until call_answer(). False when the mailbox is closed. */
bool call_make(struct redlock *c, struct call *call,
               void (*deliver)(struct redlock *c, struct mail *mail));
void call_answer(struct redlock *c, struct call *call); /* which is its caller's from now on */
/* Delivers what is there. Before leases are extended: who unlocks from now on waits until that is
 * written, so that nothing is extended after redlock_unlock() returned (lock.W6). */
void mailbox_deliver(struct redlock *c, bool is_renewing);
void mailbox_close(struct redlock *c);

/* ---- lock.c ---- */
struct key_set { /* sorted; each after its length in two bytes */
    char *bytes;
    size_t size;
};

struct redlock_lock {
    struct mail mail;
    struct redlock *client;
    _Atomic int64_t deadline_us; /* 0 = lost, for good (lock.E8) */
    atomic_bool is_suspect;
    atomic_int fd; /* −1 = never asked for */
    uint64_t fence;
    char *key; /* the first one's; in `short_key` if it fits */
    size_t key_len;
    size_t key_size; /* of the allocation */
    char short_key[64];

    struct redlock_batch *batch; /* NULL once it was given back */
    size_t first;                /* of its keys in the batch */
    size_t count;
    struct redlock_lock *prev; /* among those held */
    struct redlock_lock *next;
    struct fence_requests *fence_requests;
    redlock_state_cb *on_state; /* NULL until it is its user's */
    void *ctx;
    enum redlock_state state;
    bool is_changed; /* in the list of those */
    bool is_over;    /* to be recycled when its callback has returned */
    struct redlock_lock *next_changed;

    struct redlock_owner *owner;        /* NULL = not reentrant */
    unsigned depth;                     /* guarded: how often its owner holds it; 0 = unlocked */
    struct redlock_lock *next_of_owner; /* guarded */
    struct key_set keys; /* of an owner's lock of several keys; else empty, `key` says it */
};

/* A handle that is to get its lock of these sorted keys, from any thread. NULL: no memory. */
struct redlock_lock *lock_new(struct redlock *c, const struct redlock_request *request,
                              const struct redlock_async_key *keys, size_t count);
void lock_recycle(struct redlock_lock *l); /* from any thread; nobody knows it any more */
void lock_retire(struct redlock_lock *l);  /* the same, on the thread, when no callback has it */
/* `count` won keys of the batch from `first` on are its own now. */
void lock_bind(struct redlock_lock *l, struct redlock_batch *batch, size_t first, size_t count);
/* Its user has it from now on, and hears of changes. */
void lock_publish(struct redlock_lock *l, const struct redlock_request *request);
void lock_state_changed(struct redlock_lock *l);    /* some key's did */
void lock_deadline_changed(struct redlock_lock *l); /* … was extended */
void lock_tell_changed(struct redlock *c);          /* calls callbacks */
void lock_give_up_all(struct redlock *c);           /* releases them; they are lost */
void lock_free_spare(struct redlock *c);
/* Out of what is held and told; yields its batch, which it was the owner of. NULL: already lost
 * with the client. */
struct redlock_batch *lock_unbind(struct redlock_lock *l);

/* ---- fence.c's other side ---- */
struct fence_requests { /* of numbers for one or several locks */
    size_t open;
    void (*done)(struct fence_requests *m);
};
void fence_requests_start(struct fence_requests *m, void (*done)(struct fence_requests *m));
/* Fills l->fence; 0 = none. */
void fence_requests_add(struct fence_requests *m, struct redlock_lock *l);
/* All were added; `done` may be called from here. */
void fence_requests_run(struct fence_requests *m);

/* ---- unlock.c ---- */
/* Its keys are extended no more, and are released; `done` hears how for each of them, unless NULL.
 * Yields how many will be told; none when it was lost with the client. */
size_t unlock_release(struct redlock_lock *l, redlock_async_released_cb *done, void *ctx);

/* ---- owner.c ---- */
struct redlock_owner {
    struct redlock *client;
    struct redlock_lock *locks;   /* guarded: held */
    struct redlock_lock *retired; /* guarded: the latest ones that were given back */
    size_t retired_count;         /* guarded */
    size_t leaving;               /* guarded: handles on their way there, or in `locks` */
    bool is_freed;                /* guarded */
};

enum owner_has {
    OWNER_HAS_NONE, /* of the keys */
    OWNER_HAS_ALL,  /* under one handle, which was entered once more */
    OWNER_HAS_PART, /* or not under one handle: it would wait for itself */
    OWNER_HAS_LOST  /* a handle whose lease is over, and that is to be unlocked first */
};

/* `keys` are sorted. */
enum owner_has owner_enter(struct redlock_owner *o, const struct redlock_async_key *keys,
                           size_t count, struct redlock_lock **ret_lock);
bool owner_covers(const struct redlock_lock *l, const struct redlock_async_key *keys, size_t count);
void owner_add(struct redlock_owner *o, struct redlock_lock *l); /* won */
/* True when it was the last of its unlocks. −EINVAL: there was nothing left to unlock. */
int owner_leave(struct redlock_lock *l, bool *ret_is_last);
/* Keeps the handle for a while, to know it if it is unlocked once too often. */
void owner_retire(struct redlock_lock *l);

/* ---- cancel.c ---- */
bool cancel_is_fired(const struct redlock_cancel *cancel); /* accepts NULL */
const struct redlock *cancel_client(const struct redlock_cancel *cancel);

/* ---- fork.c ---- */
void fork_close_descriptors(struct redlock *c); /* in a child: of sockets, timer and bell */

/* ---- keys.c ---- */
/* The order in which keys travel and are compared. */
int keys_compare(const struct redlock_async_key *a, const struct redlock_async_key *b);
/* Yields how many without doubles. */
size_t keys_sort(struct redlock_async_key *keys, size_t count);
enum status keys_check(const char *key, size_t given_len, size_t *ret_len,
                       struct err *err) MUST_USE;
enum status keys_check_count(size_t count, struct err *err) MUST_USE;
bool key_set_fill(struct key_set *set, const struct redlock_async_key *keys, size_t count);
bool key_set_next(const struct key_set *set, size_t *at, struct redlock_async_key *ret_key);
void key_set_release(struct key_set *set);

/* ---- report.c ---- */
/* On the thread. Both accept no report; without a batch there are no votes. */
void report_fill(const struct redlock *c, struct redlock_report *report, enum redlock_result result,
                 int tries, const struct redlock_batch *batch);
void report_fail(const struct redlock *c, struct redlock_report *report, enum redlock_result result,
                 const char *why);

/* ---- ask.c ---- */
/* Cancels those that wait with `cancel`, or all (NULL). */
void ask_cancel(struct redlock *c, const struct redlock_cancel *cancel);
/* May this client be asked this? But for the keys. */
enum status ask_check(const struct redlock *c, const struct redlock_request *r,
                      struct err *err) MUST_USE;
/* What the owner's other locks mean for asking; *ret_lock is his when it is WON. False: ask. */
bool ask_owner(const struct redlock_request *r, const struct redlock_async_key *keys, size_t count,
               struct redlock_lock **ret_lock, enum redlock_result *ret_result,
               const char **ret_why);
void ask_fill(const struct redlock_request *r, struct redlock_async_request *ret);

#endif
