/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of the blocking client: N private masters, options, and one client. */
#ifndef CLAIMD_TESTS_TEST_REDLOCK_CLIENT_WORLD_H
#define CLAIMD_TESTS_TEST_REDLOCK_CLIENT_WORLD_H

#include "base/clock.h"
#include "cluster/servers.h"
#include "redlock/redlock_status.h"
#include "support/lock_node.h"

#include <check.h>

#define LIMIT_US (120 * US_PER_S)

struct client_world {
    struct redis_server servers[REDLOCK_NODES_MAX];
    size_t count;
    char urls[REDLOCK_NODES_MAX][sizeof "unix:" + 108];
    char nodes[REDLOCK_NODES_MAX * (sizeof "unix:," + 108)]; /* list of all nodes */
    struct redlock_options options;
    struct redlock_client *client;
};

extern struct client_world world;

#define until(expr) ck_assert_msg(WAIT_UNTIL((expr), LIMIT_US), "never: %s", #expr)

/* Starts `count` servers in the world's directory and fills in options: T = 3 s, τ = 300 ms, fresh
 * nodes trusted. */
void given_nodes(size_t count, const char *extra_config);
void given_client(size_t count);                  /* likewise, and opens world.client */
struct redlock_client *client_of_world(void);     /* opens another one */
struct redlock_lock *given_lock(const char *key); /* wins it */

/* redlock_acquire() for keys that are strings: all or none, or each by itself. */
enum redlock_result acquire_all(struct redlock_client *client,
                                const struct redlock_request *request, const char *const *keys,
                                size_t count, struct redlock_lock **ret_lock,
                                struct redlock_report *ret_report);
enum redlock_result acquire_each(struct redlock_client *client,
                                 const struct redlock_request *request, const char *const *keys,
                                 size_t count, struct redlock_lock **ret_locks,
                                 enum redlock_result *ret_results);
bool is_held(const struct redlock_lock *lock);
uint64_t waiting_in(struct redlock_client *client); /* how many of its requests are in progress */

/* Returns the reply to one command by redis-cli, without its last newline; valid until the next
 * call. */
const char *client_cli(size_t node, const char *const *words);
#define cli(node, ...) client_cli((node), (const char *const[]){__VA_ARGS__, NULL})
size_t nodes_with(const char *key);
long calls_of(size_t node, const char *command); /* how often the server has run it */
void signal_nodes(size_t first, size_t count, int signal_number);

int client_world_main(const char *name, void (*add_tests)(TCase *t));

#endif
