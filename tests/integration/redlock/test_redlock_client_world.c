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
    for (size_t i = 0; i < count; i++) {
        char dir[SERVER_PATH_MAX + 32];
        (void)snprintf(dir, sizeof dir, "%s/%d-%zu", base_dir, (int)getpid(), i);
        ck_assert_msg(redis_server_start(dir, extra_config, &world.servers[i], &err) == STATUS_OK,
                      "%s", err.msg);
        (void)snprintf(world.urls[i], sizeof world.urls[i], "unix:%s", world.servers[i].path);
        world.nodes[i] = (struct redlock_node){.url = world.urls[i]};
    }
    struct redlock_options options = REDLOCK_OPTIONS_INIT;
    options.nodes = world.nodes;
    options.node_count = count;
    options.ttl_ms = 3000;
    options.node_timeout_ms = 300;
    options.open_timeout_ms = 5000;
    options.trust_fresh = true;
    world.count = count;
    world.options = options;
}

struct redlock *client_of_world(void)
{
    struct redlock *client = NULL;
    struct redlock_error error;
    ck_assert_msg(redlock_open(&world.options, &client, &error) == 0, "%s", error.message);
    return client;
}

void given_client(size_t count)
{
    given_nodes(count, NULL);
    world.client = client_of_world();
    for (size_t i = 0; i < count; i++) {
        (void)cli(i, "CONFIG", "RESETSTAT"); /* calls_of() begins here */
    }
}

struct redlock_lock *given_lock(const char *key)
{
    struct redlock_lock *lock = NULL;
    until(redlock_try(world.client, key, 0, &lock) == REDLOCK_OK); /* nodes may answer late */
    ck_assert_ptr_nonnull(lock);
    return lock;
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
