/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of the lock: N private masters, a loop, one lock client, and the events that
 * it reported. Each test has its own world in its forked process. */
#ifndef CLAIMD_TESTS_TEST_REDLOCK_WORLD_H
#define CLAIMD_TESTS_TEST_REDLOCK_WORLD_H

#include "base/clock.h"
#include "cluster/servers.h"
#include "redlock/redlock_async.h"
#include "support/lock_node.h"

#include <check.h>
#include <uv.h>

#define WORLD_LIMIT_US (120 * US_PER_S)
#define WORLD_EVENTS_MAX 64

struct world_event {
    size_t node;
    enum redlock_event_kind event;
    int64_t until_us;
    char why[ERR_TEXT_MAX];
};

struct world {
    struct redis_server servers[REDLOCK_NODES_MAX];
    size_t count;
    uv_loop_t loop;
    uv_timer_t tick;
    struct redlock_async_options options;
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    char urls[REDLOCK_NODES_MAX][SERVER_PATH_MAX + 8];
    struct redlock_async *lock;
    bool is_closed;
    struct world_event events[WORLD_EVENTS_MAX];
    size_t event_count;
    size_t states[REDLOCK_STATE_LOST + 1]; /* number of callbacks by state */
    int64_t lost_at_us;
};

extern struct world world;

/* A condition that was true once may be false when it is evaluated again. */
#define run_until(expr)                                                \
    do {                                                               \
        int64_t end_ = clock_boot_us() + WORLD_LIMIT_US;               \
        while (!(expr)) {                                              \
            ck_assert_msg(clock_boot_us() < end_, "never: %s", #expr); \
            (void)uv_run(&world.loop, UV_RUN_ONCE);                    \
        }                                                              \
    } while (0)

/* Starts `count` servers in the world's directory and fills in options: T = 10 s, τ = 1 s,
 * trusted. */
void world_start(size_t count, const char *extra_config);
/* Adds another server to the nodes, before the client is opened; it is killed with the others. Its
 * directory is that of node world.count. */
void world_add(const struct redis_server *server);
void world_dir(size_t node, char *ret_dir, size_t size);
void world_open(void);        /* opens the client with world.options */
void world_open_voting(void); /* and waits until every node votes */
void world_close(void);       /* before the end of the test */
void world_run_for(int64_t us);

/* Opens another client of the same nodes, on the same loop. */
struct redlock_async *world_other_client(void);

/* Locks `count` keys from "claimd:job:<first>" on, and waits for the verdicts. */
struct redlock_batch *world_acquire(struct redlock_async *lock, int first, size_t count);
void world_acquire_start(struct redlock_async *lock, int first, size_t count);
struct redlock_batch *world_acquired(void); /* by the last call; NULL = not yet */
size_t world_won(void);                     /* how many of its keys */
void world_release_all(struct redlock_batch *batch);
void world_flush(struct redlock_async *lock);

/* Runs one command by redis-cli. Returns its reply without the last newline, valid until the next
 * call. */
const char *world_cli(size_t node, const char *const *words);
#define cli(node, ...) world_cli((node), (const char *const[]){__VA_ARGS__, NULL})
size_t world_nodes_with(const char *key); /* number of nodes with the key */
/* True if the node extends by SET … IFEQ (lock.C9), as Valkey 8.1 and Redis 8.4 can; otherwise it
 * extends by script. */
bool world_extends_by_set(size_t node);
long world_calls(size_t node, const char *command); /* how often the server ran it */
size_t world_events_of(enum redlock_event_kind event);
const struct world_event *world_last_event(size_t node);

void world_signal(size_t first, size_t count, int signal_number);

/* main() of a test program: directory, fixture, runner. */
int world_main(const char *name, void (*add_tests)(TCase *t));

#endif
