/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_client_world.h"

#include "base/buf.h"
#include "support/suite_dir.h"

#include <signal.h>
#include <stdio.h>

struct client_world world;

static char base_dir[SERVER_PATH_MAX];
static struct buf cli_text = BUF_INIT(1 << 20);

void given_nodes(size_t count, const char *extra_config)
{
    struct err err = {0};
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        char dir[SERVER_PATH_MAX + 32];
        (void)snprintf(dir, sizeof dir, "%s/%d-%zu", base_dir, (int)getpid(), i);
        ck_assert_msg(redis_server_start(dir, extra_config, &world.servers[i], &err) == STATUS_OK,
                      "%s", err.msg);
        (void)snprintf(world.urls[i], sizeof world.urls[i], "unix:%s", world.servers[i].path);
        len += (size_t)snprintf(world.nodes + len, sizeof world.nodes - len, "%s%s",
                                i > 0 ? "," : "", world.urls[i]);
    }
    world.count = count;
    world.options = (struct redlock_options){.nodes = world.nodes,
                                             .ttl_ms = 3000,
                                             .node_timeout_ms = 300,
                                             .open_ms = 5000,
                                             .trust_fresh = true};
}

struct redlock_client *client_of_world(void)
{
    struct redlock_client *client = NULL;
    struct redlock_report error = {0};
    ck_assert_msg(redlock_open(&world.options, &client, &error) == REDLOCK_OK, "%s", error.message);
    return client;
}

void given_client(size_t count)
{
    given_nodes(count, NULL);
    world.client = client_of_world();
    for (size_t i = 0; i < count; i++) {
        (void)cli(i, "CONFIG", "RESETSTAT"); /* calls_of() counts from here */
    }
}

struct redlock_lock *given_lock(const char *key)
{
    struct redlock_lock *lock = NULL;
    until(redlock_try(world.client, key, &lock) == REDLOCK_OK); /* nodes may answer late */
    ck_assert_ptr_nonnull(lock);
    return lock;
}

static void list_keys(const char *const *keys, size_t count, struct redlock_key *ret_list)
{
    for (size_t i = 0; i < count && i < REDLOCK_KEYS_MAX; i++) {
        ret_list[i] = (struct redlock_key){.bytes = keys[i]};
    }
}

enum redlock_result acquire_all(struct redlock_client *client,
                                const struct redlock_request *request, const char *const *keys,
                                size_t count, struct redlock_lock **ret_lock,
                                struct redlock_report *ret_report)
{
    struct redlock_key list[REDLOCK_KEYS_MAX];
    struct redlock_request of_all = *request;
    list_keys(keys, count, list);
    of_all.key = NULL;
    of_all.keys = list;
    of_all.count = count;
    return redlock_acquire(client, &of_all, ret_lock, ret_report);
}

enum redlock_result acquire_each(struct redlock_client *client,
                                 const struct redlock_request *request, const char *const *keys,
                                 size_t count, struct redlock_lock **ret_locks,
                                 enum redlock_result *ret_results)
{
    static _Thread_local struct redlock_report reports[REDLOCK_KEYS_MAX];
    struct redlock_request of_each = *request;
    struct redlock_key list[REDLOCK_KEYS_MAX];
    list_keys(keys, count, list);
    of_each.key = NULL;
    of_each.keys = list;
    of_each.count = count;
    of_each.each = true;
    enum redlock_result result = redlock_acquire(client, &of_each, ret_locks, reports);
    for (size_t i = 0; i < count && i < REDLOCK_KEYS_MAX; i++) {
        ret_results[i] = reports[i].result;
    }
    return result;
}

uint64_t waiting_in(struct redlock_client *client)
{
    struct redlock_stats stats = {0};
    redlock_get_stats(client, &stats);
    return stats.waiting;
}

bool is_held(const struct redlock_lock *lock)
{
    return redlock_left_ms(lock) > 0;
}

const char *client_cli(size_t node, const char *const *words)
{
    buf_reset(&cli_text);
    ck_assert_int_eq(redis_server_ask(&world.servers[node], words, &cli_text, NULL), STATUS_OK);
    char *text = buf_at(&cli_text);
    if (cli_text.len > 0 && text[cli_text.len - 1] == '\n') {
        text[cli_text.len - 1] = '\0';
    }
    return text;
}

size_t nodes_with(const char *key)
{
    size_t count = 0;
    for (size_t i = 0; i < world.count; i++) {
        count += strcmp(cli(i, "EXISTS", key), "1") == 0;
    }
    return count;
}

long calls_of(size_t node, const char *command)
{
    char field[64];
    (void)snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    const char *found = strstr(cli(node, "INFO", "commandstats"), field);
    return found != NULL ? strtol(found + strlen(field), NULL, 10) : 0;
}

void signal_nodes(size_t first, size_t count, int signal_number)
{
    for (size_t i = first; i < first + count; i++) {
        ck_assert_int_eq(kill(world.servers[i].pid, signal_number), 0);
    }
}

static void teardown(void)
{
    redlock_close(world.client);
    for (size_t i = 0; i < world.count; i++) {
        redis_server_kill(&world.servers[i]);
    }
    buf_release(&cli_text);
}

int client_world_main(const char *name, void (*add_tests)(TCase *t))
{
    const struct suite_in_dir in = {.name = name,
                                    .ret_dir = base_dir,
                                    .dir_size = sizeof base_dir,
                                    .timeout_s = 30,
                                    .teardown = teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
