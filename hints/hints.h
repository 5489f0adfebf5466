/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of ids in Redis: sorted sets, pushed by ZADD LT, popped by workers. Hints may be lost
 * or wrong at any time; PostgreSQL is the truth. Formats: model/hint.h. One thread, one libuv loop.
 *
 * A node is up while it is connected and accepts our commands. A node that replies with an error
 * (LOADING, OOM, READONLY, …) is left alone for a second and reported as down for that time. */
#ifndef CLAIMD_HINTS_HINTS_H
#define CLAIMD_HINTS_HINTS_H

#include "redis/redis.h"

#define HINTS_NODES_MAX 9
#define HINTS_POP_MAX 500
#define HINTS_PUSH_MAX 5000
#define HINTS_SETS_MAX 1024
#define HINTS_SLEEPER_SIZE 65

struct hint {
    int64_t id;
    int64_t score;     /* see model/hint.h */
    const char *queue; /* borrowed */
    const char *kind;  /* NULL = the queue's own set */
};

/* Reports that a node is up or down. is_empty_memory: its run_id has changed, so its hints are
 * gone. why: NULL when it is up; INVALID if the server answers but refuses. */
typedef void hints_node_cb(void *ctx, size_t node, bool is_up, bool is_empty_memory,
                           const struct err *why);

struct hints_options {
    uv_loop_t *loop;
    const struct redis_endpoint *nodes; /* copied; in order of preference */
    size_t node_count;
    const char *prefix; /* copied */
    int64_t timeout_us; /* for a request, and for connecting */
    /* may be NULL; called for each change or new reason, never from inside a call */
    hints_node_cb *on_node;
    void *ctx;
};

/* ---- pushing: by the scheduler, and by workers that put hints back ---- */

struct hints;

enum status hints_open(const struct hints_options *options, struct hints **ret_hints,
                       struct err *err) MUST_USE;
/* Ends requests in flight with UNAVAILABLE. Must not be called from inside a callback. Accepts
 * NULL. */
void hints_close(struct hints *hints);

/* Sets the password for endpoints that had none, from the next connection to each node on. INVALID:
 * too long. */
enum status hints_set_password(struct hints *hints, const char *password, struct err *err) MUST_USE;

bool hints_is_up(const struct hints *hints);
/* Returns the node that pushes go to now: the first healthy one; −1 if there is none. If it
 * changes, the hints must be fed again. */
int hints_active_node(const struct hints *hints);

/* Ends a push. `added` counts ids that were not there before. UNAVAILABLE or TIMEOUT: some may have
 * arrived; repeating the push does no harm. */
typedef void hints_pushed_cb(void *ctx, enum status st, int64_t added);

/* Pushes 1 to HINTS_PUSH_MAX hints to the active node, with ZADD LT per set, in one round; the list
 * is not kept. UNAVAILABLE if no node is up. Never calls back from inside this call. */
enum status hints_push(struct hints *hints, const struct hint *list, size_t count,
                       hints_pushed_cb *done, void *ctx, struct err *err) MUST_USE;

/* Ends a count. `first`: the lowest score of the range's `priority`; −1 = there is none, or it was
 * not wanted. */
typedef void hints_counted_cb(void *ctx, enum status st, int64_t count, int64_t first);
/* The hints of a set to count: those of the priorities `from` to `priority` (a range of scores). */
struct hints_range {
    const char *queue;
    const char *kind; /* NULL = the queue's own set */
    int from;
    int priority; /* also the priority whose lowest score is wanted */
    bool wants_first;
};
enum status hints_count(struct hints *hints, const struct hints_range *range,
                        hints_counted_cb *done, void *ctx, struct err *err) MUST_USE;

/* ---- popping: workers ---- */

/* Removes what is left in the wake set of a popper that is gone, from all nodes that are up. A
 * member of that set, whose key contains the popper's name, ends the popper's blocked pop
 * (model/hint.h). The set may be empty or absent. */
void hints_forget_sleeper(struct hints *hints, const char *name);

/* Makes the poppers with these names call on_news, with their next pop at the latest. Sends one
 * round to the active node; its outcome is not reported. 1 to HINTS_PUSH_MAX names. */
enum status hints_tell_sleepers(struct hints *hints, const char *const *names, size_t count,
                                struct err *err) MUST_USE;

struct hints_popper;

struct hints_set {
    char queue[65];
    char kind[65]; /* "" = the queue's own set */
    int weight;    /* of the queue, the same for all of its sets; 0 = none */
};

/* The ids that one node returned: those with the lowest scores of all sets together (a blocking
 * pop: of one set) or, if any queue has a weight, each queue's share. They form runs of one set and
 * one priority; each run is ordered, and the runs are ordered by their first ids. All ids of a run
 * have the score of its first, which is good enough for putting them back. `list` and its texts are
 * borrowed until the callback returns. There may be more ids than are wanted by now: the caller
 * puts the surplus back (INTERFACES rule 6). */
typedef void hints_popped_cb(void *ctx, const struct hint *list, size_t count);
/* Returns how many ids are wanted now; 0 = none. Called before each pop; the popper subtracts what
 * script pops in flight may bring. */
typedef size_t hints_want_cb(void *ctx);
/* A reply was lost with its connection: ids may have vanished (crash.W0), so the scheduler must
 * make a full pass. */
typedef void hints_lost_cb(void *ctx);
/* Called after hints_tell_sleepers(), or because another client wrote the member. */
typedef void hints_news_cb(void *ctx);

struct hints_popper_options {
    struct hints_options nodes;
    /* borrowed, with the same nodes: wakes pops that block on our own connections */
    struct hints *waker;
    int64_t block_us; /* timeout of a blocking pop: 4 s, below `stale` */
    hints_popped_cb *on_popped;
    hints_want_cb *want;
    hints_lost_cb *on_lost;
    hints_news_cb *on_news;
    void *ctx;
};

/* Opens a connection of its own to every node. Each node is popped separately: by a blocking pop
 * while it is idle (BZMPOP, keys rotated), by a script while it has hints (the heads of all sets
 * merged by score, or each queue's share by weight; members only). */
enum status hints_popper_open(const struct hints_popper_options *options,
                              struct hints_popper **ret_popper, struct err *err) MUST_USE;
/* Cuts off blocked pops by closing their connections. Hints that a server pops at that moment are
 * lost, so on_lost is called if a pop was in flight. Must not be called from inside a callback.
 * Accepts NULL. */
void hints_popper_close(struct hints_popper *popper);

/* Same as hints_set_password(). */
enum status hints_popper_set_password(struct hints_popper *popper, const char *password,
                                      struct err *err) MUST_USE;

/* Sets a name that no other popper of these nodes has. Call it before hints_popper_listen(), and
 * again when the name changes. */
void hints_popper_name(struct hints_popper *popper, const char *name);

/* How to treat a pop that is blocked on sets to which the popper no longer listens. A pop that
 * lacks a set is woken in any case. */
enum hints_left {
    HINTS_LEFT_BLOCKED, /* it continues; the caller puts back the hints that it brings */
    HINTS_LEFT_WOKEN
};

/* Listens to these sets from the next pop on. The sets of one queue must be adjacent, and the
 * queues always in the same order. At most HINTS_SETS_MAX (LIMIT), 0 = stop popping; NOMEM. */
enum status hints_popper_listen(struct hints_popper *popper, const struct hints_set *sets,
                                size_t count, enum hints_left left, struct err *err) MUST_USE;

/* Resumes popping on nodes where it had stopped because no ids were wanted: there is room again. */
void hints_popper_poke(struct hints_popper *popper);

struct hints_popper_counters {
    uint64_t popped;
    uint64_t junk; /* members that are not ids (fault.H3) */
    uint64_t lost_replies;
};
const struct hints_popper_counters *hints_popper_counters(const struct hints_popper *popper);

#endif
