/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of ids in Redis: sorted sets, pushed by ZADD LT, popped by workers. Hints may be lost
 * or wrong at any time; PostgreSQL is the truth. Formats: model/hint.h. One thread, one libuv loop.
 *
 * A node counts as up while it is connected and accepts our commands. A node that answers with an
 * error (LOADING, OOM, READONLY, …) is left alone for a second and reported as down for that
 * time. */
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
    int64_t score;     /* model/hint.h */
    const char *queue; /* borrowed */
    const char *kind;  /* NULL: the queue's own set */
};

/* is_empty_memory: it has another run_id than before, so its hints are gone. why: NULL when it is
 * up; INVALID when the server answers but refuses. */
typedef void hints_node_cb(void *ctx, size_t node, bool is_up, bool is_empty_memory,
                           const struct err *why);

struct hints_options {
    uv_loop_t *loop;
    const struct redis_endpoint *nodes; /* copied; the order is the order of preference */
    size_t node_count;
    const char *prefix;     /* copied */
    int64_t timeout_us;     /* of a request, and of connecting */
    hints_node_cb *on_node; /* may be NULL; per change or new reason, never from inside a call */
    void *ctx;
};

/* ---- pushing: scheduler, and workers that put back ---- */

struct hints;

enum status hints_open(const struct hints_options *options, struct hints **ret_hints,
                       struct err *err) MUST_USE;
/* Accepts NULL. Ends requests under way with UNAVAILABLE. Not from inside a callback. */
void hints_close(struct hints *hints);

/* From the next connection to each node on, where the endpoint had none. INVALID: too long. */
enum status hints_set_password(struct hints *hints, const char *password, struct err *err) MUST_USE;

bool hints_is_up(const struct hints *hints);
/* The node that pushes go to now: the first healthy one; −1 if there is none. A change of this node
 * is a reason to rewind. */
int hints_active_node(const struct hints *hints);

/* `added` counts ids that were not there before. UNAVAILABLE or TIMEOUT: some may have arrived;
 * repeating is free. */
typedef void hints_pushed_cb(void *ctx, enum status st, int64_t added);

/* Pushes to the active node, ZADD LT per set, in one round; 1 to HINTS_PUSH_MAX hints, which are
 * not kept. UNAVAILABLE when no node is up. Never calls back from inside the call. */
enum status hints_push(struct hints *hints, const struct hint *list, size_t count,
                       hints_pushed_cb *done, void *ctx, struct err *err) MUST_USE;

/* `first`: the lowest score; −1 = there is none, or it was not asked for. */
typedef void hints_counted_cb(void *ctx, enum status st, int64_t count, int64_t first);
/* How many hints of the priorities `from` to `priority` a set holds (score range). */
struct hints_range {
    const char *queue;
    const char *kind; /* NULL: the queue's own set */
    int from;
    int priority; /* of `first` */
    bool wants_first;
};
enum status hints_count(struct hints *hints, const struct hints_range *range,
                        hints_counted_cb *done, void *ctx, struct err *err) MUST_USE;

/* ---- popping: workers ---- */

/* A popper's blocked pop is woken by a member in a set of its own, whose key has the popper's name
 * in it (model/hint.h). What is left in that set once the popper is gone is removed from all nodes
 * that are up; it may be that there is nothing. */
void hints_forget_sleeper(struct hints *hints, const char *name);

/* Their poppers call on_news, with the next pop at the latest: over the active node, in one round,
 * whose outcome nobody hears of. 1 to HINTS_PUSH_MAX names. */
enum status hints_tell_sleepers(struct hints *hints, const char *const *names, size_t count,
                                struct err *err) MUST_USE;

struct hints_popper;

struct hints_set {
    char queue[65];
    char kind[65]; /* "" = the queue's own set */
    int weight;    /* of the queue, the same in all of its sets; 0 = none */
};

/* The ids that one node gave: those with the lowest scores of all sets together (a blocking pop: of
 * one set) or, if any queue has a weight, each queue's share. They come in runs of one set and one
 * priority; each run is ordered, and the runs are ordered by their first ids. All ids of a run
 * carry the score of its first, which is good enough to put them back with. `list` and its texts
 * are borrowed until the call returns. There may be more ids than are wanted by now: the caller
 * puts the surplus back (INTERFACES rule 6). */
typedef void hints_popped_cb(void *ctx, const struct hint *list, size_t count);
/* How many ids are wanted now; 0 = none. Asked before each pop; the popper subtracts what script
 * pops under way may bring. */
typedef size_t hints_want_cb(void *ctx);
/* A reply was lost with its connection: ids may have vanished (crash.W0); tell the scheduler to
 * rewind. */
typedef void hints_lost_cb(void *ctx);
/* By hints_tell_sleepers(), or by a stranger. */
typedef void hints_news_cb(void *ctx);

struct hints_popper_options {
    struct hints_options nodes;
    struct hints *waker; /* of the same nodes; borrowed: wakes what blocks on our own connections */
    int64_t block_us;    /* timeout of a blocking pop: 4 s, below `stale` */
    hints_popped_cb *on_popped;
    hints_want_cb *want;
    hints_lost_cb *on_lost;
    hints_news_cb *on_news;
    void *ctx;
};

/* Opens a connection of its own to every node. Each node is popped by itself: blocking while it is
 * idle (BZMPOP, keys rotated), by script while it has hints (the heads of all sets merged by score,
 * or each queue's share by weight; members only). */
enum status hints_popper_open(const struct hints_popper_options *options,
                              struct hints_popper **ret_popper, struct err *err) MUST_USE;
/* Accepts NULL. Cuts off blocked pops by closing their connections. What a server popped in that
 * instant is lost, so on_lost is called if a pop was under way. Not from inside a callback. */
void hints_popper_close(struct hints_popper *popper);

/* As hints_set_password(). */
enum status hints_popper_set_password(struct hints_popper *popper, const char *password,
                                      struct err *err) MUST_USE;

/* A name that no other popper of these nodes has; before anything is listened to, and again when it
 * changes. */
void hints_popper_name(struct hints_popper *popper, const char *name);

/* What becomes of a pop that is blocked on sets which are not listened to any more. One that lacks
 * a set is woken in any case. */
enum hints_left {
    HINTS_LEFT_BLOCKED, /* it goes on: what it brings is put back */
    HINTS_LEFT_WOKEN
};

/* From the next pop on, listens to these sets, those of one queue side by side and the queues
 * always in the same order. At most HINTS_SETS_MAX (LIMIT), 0 = stop popping; NOMEM. */
enum status hints_popper_listen(struct hints_popper *popper, const struct hints_set *sets,
                                size_t count, enum hints_left left, struct err *err) MUST_USE;

/* There is room again: resumes popping from nodes where it had stopped for lack of room. */
void hints_popper_poke(struct hints_popper *popper);

struct hints_popper_counters {
    uint64_t popped;
    uint64_t junk; /* members that are no ids (fault.H3) */
    uint64_t lost_replies;
};
const struct hints_popper_counters *hints_popper_counters(const struct hints_popper *popper);

#endif
