/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the blocking client share; no other file includes it.
 *
 * One thread per client, called "the thread" below, runs the core (redlock_async.h) on a loop of
 * its own. A call from any other thread posts a mail, which lies on the caller's stack or in a
 * handle, rings the bell, and waits for the answer. User callbacks run on the thread between two
 * turns of the loop, so a callback may call the library again: such a call turns the loop itself.
 *
 * One mutex guards the fields that are marked as guarded. It is held for a few instructions at a
 * time, and never while anything else is called. Fields without a mark belong to the thread. */
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

/* Its length is bounded by the number of callers and handles: each has one mail at most. */
struct mailbox { /* guarded by the mutex, except for the bell */
    struct mail *first;
    struct mail **end;
    bool is_closed;
    uv_async_t bell;
};

/* On the stack of a caller that waits. */
struct call {
    struct mail mail;
    pthread_cond_t cond;
    bool is_answered; /* guarded by the mutex */
};

/* The latest news of a node; guarded by the mutex, but read by the thread without it. */
struct node_news {
    bool is_any;
    enum redlock_node_event event;
    char why[REDLOCK_MESSAGE_SIZE];
};

#define EVENTS_MAX 32 /* waiting for their callback; a further one replaces the oldest */
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
    size_t refused_max; /* so many unsuitable nodes are no reason not to open */
    redlock_node_cb *on_node;
    void *ctx;
};

struct redlock {
    atomic_int refs; /* the opener's, each handle's, owner's and cancel's */
    char *fork_mark; /* a page that a forked child sees as zeros; NULL = the pid tells */
    pid_t pid;
    pthread_t thread;
    pthread_t thread_self; /* its own pthread_self(), set before anybody may ask */
    struct settings settings;
    char node_names[REDLOCK_NODES_MAX][REDIS_ENDPOINT_TEXT_SIZE];

    pthread_mutex_t mutex;
    pthread_cond_t quiet; /* CLOCK_MONOTONIC */
    struct mailbox mailbox;
    unsigned callers;           /* guarded: threads inside a call */
    unsigned renewing;          /* guarded: turns until the extension round is written */
    struct redlock_lock *spare; /* guarded: handles for reuse */
    size_t spare_count;
    struct node_news news[REDLOCK_NODES_MAX];

    uv_loop_t loop;
    struct redlock_async *core; /* NULL once it is closed */
    bool is_closing;            /* no new request is started */
    bool has_closed;            /* the core was told to close */
    struct ask *asks;           /* under way */
    size_t ask_count;
    struct redlock_lock *held;
    size_t held_keys;
    struct redlock_lock *changed; /* whose callbacks are to be called */
    struct redlock_lock **changed_end;
    struct redlock_lock *telling; /* its callback is running */
    struct node_event events[EVENTS_MAX];
    size_t event_first;
    size_t event_count;
};

/* ---- client.c ---- */
/* True in a forked child, where nothing works (lock.F1). */
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
/* False when the mailbox is closed: the mail will not be delivered. */
bool mailbox_put(struct redlock *c, struct mail *mail);  /* under the mutex */
bool mailbox_post(struct redlock *c, struct mail *mail); /* and waits for renewals under way */
/* Waits until call_answer(). False when the mailbox is closed. */
bool call_make(struct redlock *c, struct call *call,
               void (*deliver)(struct redlock *c, struct mail *mail));
void call_answer(struct redlock *c, struct call *call); /* after this it is its caller's again */
/* Delivers all mail. is_renewing: leases are about to be extended. An unlock from now on waits
 * until that round is written, so that nothing is extended after redlock_unlock() has returned
 * (lock.W6). */
void mailbox_deliver(struct redlock *c, bool is_renewing);
void mailbox_close(struct redlock *c);

/* ---- lock.c ---- */
struct key_set { /* sorted; each is preceded by its length in two bytes */
    char *bytes;
    size_t size;
};

struct redlock_lock {
    struct mail mail;
    struct redlock *client;
    _Atomic int64_t deadline_us; /* 0 = lost, for good (lock.E8) */
    atomic_bool is_suspect;
    atomic_int fd; /* −1 = never asked for */
    _Atomic uint64_t fence;
    char *key; /* the first one; in `short_key` if it fits */
    size_t key_len;
    size_t key_size; /* of the allocation */
    char short_key[64];

    struct redlock_batch *batch; /* NULL once it was released */
    size_t first;                /* its first key in the batch */
    size_t count;
    struct redlock_lock *prev; /* among those held */
    struct redlock_lock *next;
    struct fence_requests *fence_requests;
    redlock_state_cb *on_state; /* NULL until the user has the handle */
    void *ctx;
    enum redlock_state state;
    bool is_changed; /* in the client's list of these */
    bool is_over;    /* to be recycled when its callback has returned */
    struct redlock_lock *next_changed;

    struct redlock_owner *owner;        /* NULL = not reentrant */
    unsigned depth;                     /* guarded: how often its owner holds it; 0 = unlocked */
    struct redlock_lock *next_of_owner; /* guarded */
    struct key_set keys; /* of an owner's lock of several keys; else empty: see `key` */
};

/* A new handle for a lock of these sorted keys, which is not won yet; from any thread. NULL: no
 * memory. */
struct redlock_lock *lock_new(struct redlock *c, const struct redlock_request *request,
                              const struct redlock_async_key *keys, size_t count);
void lock_recycle(struct redlock_lock *l); /* from any thread; nobody uses it any more */
void lock_retire(struct redlock_lock *l);  /* the same, on the thread, once no callback uses it */
/* The handle now owns `count` won keys of the batch, from `first` on. */
void lock_bind(struct redlock_lock *l, struct redlock_batch *batch, size_t first, size_t count);
/* The user has the handle from now on, and is told of changes. */
void lock_publish(struct redlock_lock *l, const struct redlock_request *request);
void lock_state_changed(struct redlock_lock *l);    /* that of one of its keys did */
void lock_deadline_changed(struct redlock_lock *l); /* … was extended */
void lock_tell_changed(struct redlock *c);          /* calls callbacks */
void lock_give_up_all(struct redlock *c);           /* releases all; they are lost */
void lock_free_spare(struct redlock *c);
/* Takes the handle out of the lists of held and changed locks; yields its batch, which the caller
 * owns from now on. NULL: the lock was already lost with the client. */
struct redlock_batch *lock_unbind(struct redlock_lock *l);

/* ---- fence.c's other side ---- */
struct fence_requests { /* for the fences of one or several locks */
    size_t open;
    void (*done)(struct fence_requests *m);
};
void fence_requests_start(struct fence_requests *m, void (*done)(struct fence_requests *m));
/* Fills l->fence; 0 = none. */
void fence_requests_add(struct fence_requests *m, struct redlock_lock *l);
/* To be called when all were added; may call `done`. */
void fence_requests_run(struct fence_requests *m);

/* ---- unlock.c ---- */
/* Stops extending its keys and releases them. `done`, unless NULL, is called with the outcome of
 * each. Yields the number of these calls; 0 when the lock was lost with the client. */
size_t unlock_release(struct redlock_lock *l, redlock_async_released_cb *done, void *ctx);

/* ---- owner.c ---- */
struct redlock_owner {
    struct redlock *client;
    struct redlock_lock *locks;   /* guarded: held */
    struct redlock_lock *retired; /* guarded: the last ones that were unlocked */
    size_t retired_count;         /* guarded */
    size_t leaving;               /* guarded: handles in `locks`, or on their way to `retired` */
    bool is_freed;                /* guarded */
};

enum owner_has {
    OWNER_HAS_NONE, /* it holds none of the keys */
    OWNER_HAS_ALL,  /* all, under one handle, which was entered once more */
    OWNER_HAS_PART, /* some, or all under several handles: it would wait for itself */
    OWNER_HAS_LOST  /* its lease is over: the handle must be unlocked first */
};

/* `keys` are sorted. */
enum owner_has owner_enter(struct redlock_owner *o, const struct redlock_async_key *keys,
                           size_t count, struct redlock_lock **ret_lock);
bool owner_covers(const struct redlock_lock *l, const struct redlock_async_key *keys, size_t count);
void owner_add(struct redlock_owner *o, struct redlock_lock *l); /* won */
/* *ret_is_last: was it the last unlock? −EINVAL: there was nothing left to unlock. */
int owner_leave(struct redlock_lock *l, bool *ret_is_last);
/* Keeps the handle for a while, to recognise it if it is unlocked once too often. */
void owner_retire(struct redlock_lock *l);

/* ---- cancel.c ---- */
bool cancel_is_fired(const struct redlock_cancel *cancel); /* accepts NULL */
const struct redlock *cancel_client(const struct redlock_cancel *cancel);

/* ---- fork.c ---- */
void fork_close_descriptors(struct redlock *c); /* in a forked child: of sockets, timer and bell */

/* ---- keys.c ---- */
/* The order in which keys are sent and compared. */
int keys_compare(const struct redlock_async_key *a, const struct redlock_async_key *b);
/* Sorts and drops duplicates; yields how many are left. */
size_t keys_sort(struct redlock_async_key *keys, size_t count);
enum status keys_check(const char *key, size_t given_len, size_t *ret_len,
                       struct err *err) MUST_USE;
enum status keys_check_count(size_t count, struct err *err) MUST_USE;
bool key_set_fill(struct key_set *set, const struct redlock_async_key *keys, size_t count);
bool key_set_next(const struct key_set *set, size_t *at, struct redlock_async_key *ret_key);
void key_set_release(struct key_set *set);

/* ---- report.c ---- */
/* On the thread. `report` may be NULL in both; without a batch there are no votes. */
void report_fill(const struct redlock *c, struct redlock_report *report, enum redlock_result result,
                 int tries, const struct redlock_batch *batch);
void report_fail(const struct redlock *c, struct redlock_report *report, enum redlock_result result,
                 const char *why);

/* ---- ask.c ---- */
/* Cancels the requests that use `cancel`, or all (NULL). */
void ask_cancel(struct redlock *c, const struct redlock_cancel *cancel);
/* Checks everything about a request but its keys. */
enum status ask_check(const struct redlock *c, const struct redlock_request *r,
                      struct err *err) MUST_USE;
/* Looks at the locks that the request's owner has already. True: they decide the result; with WON,
 * *ret_lock is the lock. False: ask the nodes. */
bool ask_owner(const struct redlock_request *r, const struct redlock_async_key *keys, size_t count,
               struct redlock_lock **ret_lock, enum redlock_result *ret_result,
               const char **ret_why);
void ask_fill(const struct redlock_request *r, struct redlock_async_request *ret);

#endif
