/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the blocking client share; no other file includes it.
 *
 * A client has two threads. The one called "the thread" below runs the core (redlock_async.h) on a
 * loop of its own. A call from any other thread posts a mail, which lies in a request or in a
 * handle, rings the bell, and waits for the answer. The other one runs the user's callbacks, which
 * may block, and may call the library as any thread may.
 *
 * One mutex guards the fields that are marked as guarded. It is held for a few instructions at a
 * time, and never while anything else is called. Fields without a mark belong to the thread. */
#ifndef CLAIMD_REDLOCK_CLIENT_CLIENT_H
#define CLAIMD_REDLOCK_CLIENT_CLIENT_H

#include "base/err.h"
#include "redis/redis.h"
#include "redlock/client/settings.h"
#include "redlock/redlock_async.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct redlock_lock;
struct request; /* request.c */

struct mail {
    struct mail *next;
    void (*deliver)(struct redlock_client *c, struct mail *mail); /* on the thread */
};

/* Its length is bounded by the number of requests, owners and handles: each has one mail at
 * most. */
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

/* What happened to a node last; guarded by the mutex, but read by the thread without it. */
struct node_news {
    bool is_any;
    enum redlock_event_kind kind;
    char text[REDLOCK_TEXT_SIZE];
};

#define EVENTS_MAX 32 /* that wait for their callback; a further one replaces the oldest */
struct node_event {
    size_t node;
    enum redlock_event_kind kind;
    char text[REDLOCK_TEXT_SIZE];
};

struct callbacks { /* guarded by the mutex */
    pthread_t thread;
    pthread_cond_t cond;
    bool is_closing; /* the thread ends when nothing is left to be told */
    struct redlock_lock *changed;
    struct redlock_lock **changed_end;
    struct redlock_lock *telling; /* its callback is running */
    struct mail *done;            /* requests that are over */
    struct mail **done_end;
    struct node_event events[EVENTS_MAX];
    size_t event_first;
    size_t event_count;
};

struct redlock_client {
    atomic_int refs; /* the opener's, each handle's, request's and owner's */
    char *fork_mark; /* a page that a forked child sees as zeros; NULL = the pid tells */
    pid_t pid;
    pthread_t thread;
    struct settings settings;
    char node_names[REDLOCK_NODES_MAX][REDIS_ENDPOINT_TEXT_SIZE];

    pthread_mutex_t mutex;
    pthread_cond_t quiet; /* CLOCK_MONOTONIC */
    struct mailbox mailbox;
    struct callbacks callbacks;
    unsigned callers;           /* guarded: threads inside a call */
    unsigned renewing;          /* guarded: turns until the extension round is written */
    struct redlock_lock *spare; /* guarded: handles for reuse */
    size_t spare_count;
    struct node_news news[REDLOCK_NODES_MAX];

    uv_loop_t loop;
    struct redlock_async *core; /* NULL once it is closed */
    bool is_closing;            /* no new request is started */
    bool has_closed;            /* the core was told to close */
    struct request *requests;   /* under way */
    size_t request_count;
    struct redlock_lock *held;
    size_t held_keys;
};

/* ---- client.c ---- */
/* True in a forked child, where nothing works (lock.F1). */
bool client_is_forked(const struct redlock_client *c);
void client_ref(struct redlock_client *c);
void client_unref(struct redlock_client *c);

/* ---- mailbox.c ---- */
/* False when the mailbox is closed: the mail will not be delivered. */
bool mailbox_put(struct redlock_client *c, struct mail *mail); /* under the mutex */
bool mailbox_post(struct redlock_client *c,
                  struct mail *mail); /* and waits for renewals under way */
/* Waits until call_answer(). False when the mailbox is closed. */
bool call_make(struct redlock_client *c, struct call *call,
               void (*deliver)(struct redlock_client *c, struct mail *mail));
void call_answer(struct redlock_client *c,
                 struct call *call); /* after this it is its caller's again */
/* Delivers all mail. is_renewing: leases are about to be extended. An unlock from now on waits
 * until that round is written, so that nothing is extended after redlock_unlock() has returned
 * (lock.W6). */
void mailbox_deliver(struct redlock_client *c, bool is_renewing);
void mailbox_close(struct redlock_client *c);

/* ---- callbacks.c ---- */
int callbacks_start(struct redlock_client *c); /* 0 or an errno */
/* Tells of requests that are over, and ends the thread. */
void callbacks_stop(struct redlock_client *c);
void callbacks_add_event(struct redlock_client *c, size_t node, enum redlock_event_kind kind,
                         const char *text);
/* Its `deliver` is called. */
void callbacks_add_done(struct redlock_client *c, struct mail *done);
/* Under the mutex: once, however often the state changes before the callback is called. */
void callbacks_add_change(struct redlock_client *c, struct redlock_lock *l);
void callbacks_silence(struct redlock_lock *l); /* none of its callbacks begins any more */
/* False: one is running, which will retire the handle. */
bool callbacks_let_go(struct redlock_lock *l);

/* ---- lock.c ---- */
struct key_set { /* sorted; each is preceded by its length in two bytes */
    char *bytes;
    size_t size;
};

struct redlock_lock {
    struct mail mail;
    struct redlock_client *client;
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
    bool is_abandoned;
    struct redlock_lock *prev; /* among those held */
    struct redlock_lock *next;
    /* NULL until the user has the handle. */
    void (*on_change)(void *ctx, struct redlock_lock *lock, enum redlock_state state);
    void *ctx;
    enum redlock_state state;          /* guarded */
    bool is_changed;                   /* guarded: in the list of those */
    bool is_silent;                    /* guarded */
    bool is_over;                      /* guarded: to be retired when its callback has returned */
    struct redlock_lock *next_changed; /* guarded */

    struct redlock_owner *owner;        /* NULL = not reentrant */
    unsigned depth;                     /* guarded: how often its owner holds it; 0 = unlocked */
    struct redlock_lock *next_of_owner; /* guarded */
    struct key_set keys; /* of an owner's lock of several keys; else empty: see `key` */
};

/* A new handle for a lock of these sorted keys, which is not won yet; from any thread. NULL: no
 * memory. */
struct redlock_lock *lock_new(struct redlock_client *c, struct redlock_owner *owner,
                              const struct redlock_async_key *keys, size_t count);
/* It is of this key instead, which is no longer than the one that it was made for. */
void lock_rename(struct redlock_lock *l, const struct redlock_async_key *key);
void lock_recycle(struct redlock_lock *l); /* from any thread; nobody uses it any more */
void lock_retire(struct redlock_lock *l);  /* the same, once no callback uses it */
/* The handle now owns `count` won keys of the batch, from `first` on. */
void lock_bind(struct redlock_lock *l, struct redlock_batch *batch, size_t first, size_t count);
/* The user has the handle from now on, and is told of changes. */
void lock_publish(struct redlock_lock *l, const struct redlock_request *request);
void lock_state_changed(struct redlock_lock *l);    /* that of one of its keys did */
void lock_deadline_changed(struct redlock_lock *l); /* … was extended */
void lock_give_up_all(struct redlock_client *c);    /* releases all; they are lost */
void lock_free_spare(struct redlock_client *c);
/* Takes the handle out of the list of held locks; yields its batch, which the caller owns from now
 * on. NULL: the lock was already lost with the client. */
struct redlock_batch *lock_unbind(struct redlock_lock *l);

/* ---- unlock.c ---- */
/* Stops extending its keys and releases them. `done`, unless NULL, is called with the outcome of
 * each. Yields the number of these calls; 0 when the lock was lost with the client. */
size_t unlock_release(struct redlock_lock *l, redlock_async_released_cb *done, void *ctx);

/* ---- owner.c ---- */
struct redlock_owner {
    struct mail mail; /* first: of its cancellation */
    struct redlock_client *client;
    atomic_bool is_cancelled;
    bool is_posted;               /* guarded */
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
/* *ret_is_last: was it the last unlock? False: there was nothing left to unlock. */
bool owner_leave(struct redlock_lock *l, bool *ret_is_last);
/* Keeps the handle for a while, to recognise it if it is unlocked once too often. */
void owner_retire(struct redlock_lock *l);
bool owner_is_cancelled(const struct redlock_owner *o); /* accepts NULL */

/* ---- fork.c ---- */
/* In a forked child: of sockets, timer and bell. */
void fork_close_descriptors(struct redlock_client *c);

/* ---- keys.c ---- */
/* The order in which keys are sent and compared. */
int keys_compare(const struct redlock_async_key *a, const struct redlock_async_key *b);
/* Sorts and drops duplicates; yields how many are left. */
size_t keys_sort(struct redlock_async_key *keys, size_t count);
enum status keys_check(const void *key, size_t given_len, size_t *ret_len,
                       struct err *err) MUST_USE;
enum status keys_check_count(size_t count, struct err *err) MUST_USE;
bool key_set_fill(struct key_set *set, const struct redlock_async_key *keys, size_t count);
bool key_set_next(const struct key_set *set, size_t *at, struct redlock_async_key *ret_key);
void key_set_release(struct key_set *set);

/* ---- report.c ---- */
/* The entry of an array whose members may be shorter than ours; NULL has none. */
struct redlock_report *report_at(struct redlock_report *reports, size_t index);
/* All accept NULL for `report`. `why`, unless "", follows the result's text. */
void report_fail(const struct redlock_client *c, struct redlock_report *report,
                 enum redlock_result result, const char *why);
/* On the thread: what the nodes said of the keys of one lock. Without a batch there are no
 * votes. */
void report_fill(const struct redlock_client *c, struct redlock_report *report,
                 enum redlock_result result, int tries, const struct redlock_batch *batch,
                 size_t first, size_t count);
/* Adds how the nodes answered a release. */
void report_add_released(struct redlock_report *report, const struct redlock_released *released);
/* A failure without a client: of redlock_open() and the like. Returns the result. */
enum redlock_result report_status(enum status st, const struct err *err,
                                  struct redlock_report *report);

/* ---- request.c ---- */
/* Cancels the requests of this owner, or all (NULL). */
void request_cancel(struct redlock_client *c, const struct redlock_owner *owner);

#endif
