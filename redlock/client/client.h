/* SPDX-License-Identifier: Apache-2.0
 *
 * The internals of the blocking client; only its own files include this header.
 *
 * A client has two threads. One, called "the thread" below, runs the core (redlock_async.h) on a
 * loop of its own. A call from any other thread posts a mail, which is part of a request or a
 * handle, rings the bell, and waits for the answer. The other thread runs the user's callbacks,
 * which may block, and may call the library like any thread.
 *
 * One mutex guards the fields that are marked as guarded. It is held for a few instructions at a
 * time, and never while another function is called that may block or call back. Fields without a
 * mark are used by the thread only. */
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
    void (*deliver)(struct redlock_client *c, struct mail *mail); /* called on the thread */
};

/* The list is bounded by the number of requests, owners and handles: each has at most one mail. */
struct mailbox { /* guarded by the mutex, except the bell */
    struct mail *first;
    struct mail **end;
    bool is_closed;
    uv_async_t bell;
};

/* A call that waits for its answer; it is on the caller's stack. */
struct call {
    struct mail mail;
    pthread_cond_t cond;
    bool is_answered; /* guarded by the mutex */
};

/* The last event of a node. Written under the mutex; the thread, the only writer, reads it
 * without. */
struct node_news {
    bool is_any;
    enum redlock_event_kind kind;
    char text[REDLOCK_TEXT_SIZE];
};

/* events that wait for their callback; if there are more, the oldest is dropped */
#define EVENTS_MAX 32
struct node_event {
    size_t node;
    enum redlock_event_kind kind;
    char text[REDLOCK_TEXT_SIZE];
};

struct callbacks { /* guarded by the mutex */
    pthread_t thread;
    pthread_cond_t cond;
    bool is_closing; /* the thread ends when no such callback is left */
    struct redlock_lock *changed;
    struct redlock_lock **changed_end;
    struct redlock_lock *telling; /* the lock whose callback is running */
    struct mail *done;            /* requests that have ended */
    struct mail **done_end;
    struct node_event events[EVENTS_MAX];
    size_t event_first;
    size_t event_count;
};

struct redlock_client {
    atomic_int refs; /* one each for redlock_open(), every handle, request and owner */
    char *fork_mark; /* a page that a forked child sees as zeros; NULL = compare the pid */
    pid_t pid;
    pthread_t thread;
    struct settings settings;
    char node_names[REDLOCK_NODES_MAX][REDIS_ENDPOINT_TEXT_SIZE];

    pthread_mutex_t mutex;
    pthread_cond_t quiet; /* uses CLOCK_MONOTONIC */
    struct mailbox mailbox;
    struct callbacks callbacks;
    unsigned callers;  /* guarded: number of threads inside a call */
    unsigned renewing; /* guarded: turns of the loop until the extension round is written */
    struct redlock_lock *spare; /* guarded: handles for reuse */
    size_t spare_count;
    struct node_news news[REDLOCK_NODES_MAX];

    uv_loop_t loop;
    struct redlock_async *core; /* NULL once closed */
    bool is_closing;            /* no new request is started */
    bool has_closed;            /* close_core() was called */
    struct request *requests;   /* in progress */
    size_t request_count;
    struct redlock_lock *held;
    size_t held_keys;
};

/* ---- client.c ---- */
/* Returns true in a forked child, where nothing works (lock.F1). */
bool client_is_forked(const struct redlock_client *c);
void client_ref(struct redlock_client *c);
void client_unref(struct redlock_client *c);

/* ---- mailbox.c ---- */
/* Both return false if the mailbox is closed: the mail will not be delivered. */
bool mailbox_put(struct redlock_client *c, struct mail *mail); /* call it under the mutex */
bool mailbox_post(struct redlock_client *c,
                  struct mail *mail); /* also waits for extension rounds in flight */
/* Posts the call and waits until call_answer(). Returns false if the mailbox is closed. */
bool call_make(struct redlock_client *c, struct call *call,
               void (*deliver)(struct redlock_client *c, struct mail *mail));
void call_answer(struct redlock_client *c,
                 struct call *call); /* afterwards the call belongs to its caller again */
/* Delivers all mail. is_renewing: leases are about to be extended. From now on, an unlock waits
 * until that round is written, so that nothing is extended after redlock_unlock() has returned
 * (lock.W6). */
void mailbox_deliver(struct redlock_client *c, bool is_renewing);
void mailbox_close(struct redlock_client *c);

/* ---- callbacks.c ---- */
int callbacks_start(struct redlock_client *c); /* returns 0 or an errno */
/* Calls back for requests that have ended, then ends the thread. */
void callbacks_stop(struct redlock_client *c);
void callbacks_add_event(struct redlock_client *c, size_t node, enum redlock_event_kind kind,
                         const char *text);
/* Queues a mail whose `deliver` is called on the callback thread. */
void callbacks_add_done(struct redlock_client *c, struct mail *done);
/* Queues a lock's callback; call it under the mutex. One call covers all changes of the state until
 * the callback runs. */
void callbacks_add_change(struct redlock_client *c, struct redlock_lock *l);
void callbacks_silence(struct redlock_lock *l); /* no further callback of this lock begins */
/* Returns false if a callback is running, which will retire the handle afterwards. */
bool callbacks_let_go(struct redlock_lock *l);

/* ---- lock.c ---- */
struct key_set { /* sorted; each key is preceded by its length in two bytes */
    char *bytes;
    size_t size;
};

struct redlock_lock {
    struct mail mail;
    struct redlock_client *client;
    _Atomic int64_t deadline_us; /* 0 = lost, for good (lock.E8) */
    atomic_bool is_suspect;
    atomic_int fd; /* −1 = not requested yet */
    _Atomic uint64_t fence;
    char *key; /* the first key; in `short_key` if it fits */
    size_t key_len;
    size_t key_size; /* size of the allocation */
    char short_key[64];

    struct redlock_batch *batch; /* NULL once released */
    size_t first;                /* index of its first key in the batch */
    size_t count;
    bool is_abandoned;
    struct redlock_lock *prev; /* in the list of held locks */
    struct redlock_lock *next;
    /* NULL until the user has the handle. */
    void (*on_change)(void *ctx, struct redlock_lock *lock, enum redlock_state state);
    void *ctx;
    enum redlock_state state; /* guarded */
    bool is_changed;          /* guarded: it is in the list of changed locks */
    bool is_silent;           /* guarded */
    bool is_over;             /* guarded: to be retired when its running callback has returned */
    struct redlock_lock *next_changed; /* guarded */

    struct redlock_owner *owner; /* NULL = not reentrant */
    unsigned depth;              /* guarded: how many times its owner holds it; 0 = unlocked */
    struct redlock_lock *next_of_owner; /* guarded */
    struct key_set keys; /* of an owner's lock of several keys; otherwise empty: see `key` */
};

/* Makes a handle for a lock of these sorted keys, which is not won yet. May be called from any
 * thread. Returns NULL if memory runs out. */
struct redlock_lock *lock_new(struct redlock_client *c, struct redlock_owner *owner,
                              const struct redlock_async_key *keys, size_t count);
/* Changes the key of the handle; the new key must not be longer than the one it was made for. */
void lock_rename(struct redlock_lock *l, const struct redlock_async_key *key);
/* callable from any thread, once the handle is no longer used */
void lock_recycle(struct redlock_lock *l);
void lock_retire(struct redlock_lock *l); /* the same, once no callback uses it */
/* Makes the handle own `count` won keys of the batch, beginning with `first`. */
void lock_bind(struct redlock_lock *l, struct redlock_batch *batch, size_t first, size_t count);
/* Marks that the user has the handle: callbacks for its changes begin. */
void lock_publish(struct redlock_lock *l, const struct redlock_request *request);
/* call it when the state of one of its keys has changed */
void lock_state_changed(struct redlock_lock *l);
void lock_deadline_changed(struct redlock_lock *l); /* call it when one of its keys was extended */
void lock_give_up_all(struct redlock_client *c);    /* releases all locks, which become LOST */
void lock_free_spare(struct redlock_client *c);
/* Removes the handle from the list of held locks. Returns its batch, which the caller owns from now
 * on; NULL = the lock was already lost with the client. */
struct redlock_batch *lock_unbind(struct redlock_lock *l);

/* ---- unlock.c ---- */
/* Stops the extension of its keys and releases them. `done`, unless NULL, is called with the
 * outcome of each key. Returns the number of these calls; 0 if the lock was lost with the
 * client. */
size_t unlock_release(struct redlock_lock *l, redlock_async_released_cb *done, void *ctx);

/* ---- owner.c ---- */
struct redlock_owner {
    struct mail mail; /* first member; the mail of its cancellation */
    struct redlock_client *client;
    atomic_bool is_cancelled;
    bool is_posted;               /* guarded */
    struct redlock_lock *locks;   /* guarded: the locks it holds */
    struct redlock_lock *retired; /* guarded: the locks that were unlocked last */
    size_t retired_count;         /* guarded */
    size_t leaving;               /* guarded: handles in `locks` or on their way to `retired` */
    bool is_freed;                /* guarded */
};

enum owner_has {
    OWNER_HAS_NONE, /* it holds none of the keys */
    OWNER_HAS_ALL,  /* it holds all, under one handle, which was entered once more */
    OWNER_HAS_PART, /* it holds some, or all under several handles: it would wait for itself */
    OWNER_HAS_LOST  /* the lease of its lock is over: the handle must be unlocked first */
};

/* Enters a lock that the owner already holds. `keys` must be sorted. */
enum owner_has owner_enter(struct redlock_owner *o, const struct redlock_async_key *keys,
                           size_t count, struct redlock_lock **ret_lock);
bool owner_covers(const struct redlock_lock *l, const struct redlock_async_key *keys, size_t count);
void owner_add(struct redlock_owner *o, struct redlock_lock *l); /* adds a lock that was won */
/* Counts one unlock; *ret_is_last: it was the last one. Returns false if there was nothing left to
 * unlock. */
bool owner_leave(struct redlock_lock *l, bool *ret_is_last);
/* Keeps the handle for a while, so that a surplus unlock is detected. */
void owner_retire(struct redlock_lock *l);
bool owner_is_cancelled(const struct redlock_owner *o); /* accepts NULL */

/* ---- fork.c ---- */
/* Closes the descriptors of sockets, timer and bell, in a forked child. */
void fork_close_descriptors(struct redlock_client *c);

/* ---- keys.c ---- */
/* Compares keys in the order in which they are sent. */
int keys_compare(const struct redlock_async_key *a, const struct redlock_async_key *b);
/* Sorts keys and drops duplicates. Returns how many are left. */
size_t keys_sort(struct redlock_async_key *keys, size_t count);
enum status keys_check(const void *key, size_t given_len, size_t *ret_len,
                       struct err *err) MUST_USE;
enum status keys_check_count(size_t count, struct err *err) MUST_USE;
bool key_set_fill(struct key_set *set, const struct redlock_async_key *keys, size_t count);
bool key_set_next(const struct key_set *set, size_t *at, struct redlock_async_key *ret_key);
void key_set_release(struct key_set *set);

/* ---- report.c ---- */
/* Returns the entry of an array whose members may be shorter than ours; NULL for a NULL array. */
struct redlock_report *report_at(struct redlock_report *reports, size_t index);
/* All of these accept NULL for `report`. `why`, unless "", follows the result's text. */
void report_fail(const struct redlock_client *c, struct redlock_report *report,
                 enum redlock_result result, const char *why);
/* Reports the nodes' votes on the keys of one lock; call it on the thread. Without a batch there
 * are no votes. */
void report_fill(const struct redlock_client *c, struct redlock_report *report,
                 enum redlock_result result, int tries, const struct redlock_batch *batch,
                 size_t first, size_t count);
/* Adds the nodes' answers to a release. */
void report_add_released(struct redlock_report *report, const struct redlock_released *released);
/* Reports a failure that has no client, such as one of redlock_open(). Returns the result. */
enum redlock_result report_status(enum status st, const struct err *err,
                                  struct redlock_report *report);

/* ---- request.c ---- */
/* Cancels the requests of this owner, or of all owners (NULL). */
void request_cancel(struct redlock_client *c, const struct redlock_owner *owner);

#endif
