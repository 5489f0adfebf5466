/* SPDX-License-Identifier: Apache-2.0
 *
 * Two Redis nodes, a pusher and a popper on one loop, for the tests of hints/. */
#ifndef CLAIMD_TESTS_HINTS_WORLD_H
#define CLAIMD_TESTS_HINTS_WORLD_H

#include "base/clock.h"
#include "cluster/servers.h"
#include "hints/hints.h"

#include <check.h>

#define NODES 2
#define POPPED_MAX 8192
#define WAIT_US (30 * US_PER_S)
#define BLOCK_US (400 * US_PER_MS)

struct popped {
    int64_t id;
    int64_t score;
    char set[130]; /* "queue" or "queue:kind" */
};

struct world {
    struct redis_server servers[NODES];
    struct redis_endpoint endpoints[NODES];
    uv_loop_t loop;
    uv_timer_t ticker; /* so that RUN_UNTIL checks its condition */
    struct hints *hints;
    struct hints_popper *popper;
    /* results */
    enum status push_status;
    int pushes_done;
    int64_t added;
    enum status count_status;
    int64_t counted; /* −1: no answer yet */
    int64_t first;
    size_t want;
    bool is_want_used_up; /* `want` decreases with every id that arrives */
    size_t popped_count;
    size_t biggest_pop;
    struct popped popped[POPPED_MAX];
    int lost;
    int news;
    int node_ups[NODES];
    int node_downs[NODES];
    int node_empties[NODES];
    struct err why;
};

extern struct world world;

#define assert_ok(expr)                                             \
    do {                                                            \
        struct err err_ = {0};                                      \
        struct err *err = &err_;                                    \
        enum status st_ = (expr);                                   \
        ck_assert_msg(st_ == STATUS_OK, "%s: %s", #expr, err->msg); \
    } while (0)

#define RUN_UNTIL(expr)                                                     \
    do {                                                                    \
        int64_t end_ = clock_boot_us() + WAIT_US;                           \
        while (!(expr)) {                                                   \
            ck_assert_msg(clock_boot_us() < end_, "never true: %s", #expr); \
            (void)uv_run(&world.loop, UV_RUN_ONCE);                         \
        }                                                                   \
    } while (0)

/* Starts servers, the loop and a pusher that is up. `extra`: lines of redis.conf. */
void world_start(const char *extra);
void world_stop(void);
/* Opens a popper that listens to these sets ("queue" or "queue:kind", NULL-ended; with a weight:
 * "queue*9"), and wants nothing yet. */
void world_open_popper(const char *const *sets);
void world_open_popper_for(const char *const *sets, int64_t block_us);
void world_listen(const char *const *sets);
void world_listen_only(const char *const *sets); /* even a blocked pop stops listening to others */
void world_want(size_t want);

struct hint given_hint(int64_t id, int priority, int64_t due_ms);
void push_all(const struct hint *list, size_t count); /* also waits for the answer */
void push_one(const char *queue, const char *kind, int64_t id, int priority, int64_t due_ms);
int64_t count_of(const char *queue, const char *kind, int priority);
int64_t first_of(const char *queue, int priority); /* returns the lowest score */

/* Runs redis-cli with the words of a command; its output is in a static buffer until the next
 * call. */
const char *cli(size_t node, const char *const *words);
#define CLI(node, ...) cli((node), (const char *const[]){__VA_ARGS__, NULL})

/* Runs the tests of one TCase, each in a process of its own with its own servers. */
int world_main(const char *name, void (*add_tests)(TCase *t));

#endif
