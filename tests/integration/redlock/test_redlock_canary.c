/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers that lose their locks and continue as if nothing had happened (lock.N9): two of three, so
 * that they would be a quorum for a second holder. */
#include "test_redlock_world.h"

#include <stdio.h>

#define KEY "claimd:job:1"
#define CANARY "claimd:job:canary"
#define FORGETFUL 2

static void given_a_world_with(const char *extra_config)
{
    world_start(3, extra_config);
    world.options.ttl_us = 2 * US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = 200 * US_PER_MS;
    world_open_voting();
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    *(enum redlock_result *)ctx = redlock_batch_result(batch, 0);
    if (redlock_batch_result(batch, 0) == REDLOCK_OK) {
        redlock_batch_release(batch, 0);
    }
}

static enum redlock_result try_key(struct redlock_async *lock)
{
    enum redlock_result result = REDLOCK_CANCELLED;
    const struct redlock_async_key key = {.bytes = KEY, .len = strlen(KEY)};
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = on_acquired, .ctx = &result};
    ck_assert_int_eq(redlock_async_acquire(lock, &request, NULL), 0);
    run_until(result != REDLOCK_CANCELLED);
    return result;
}

static void flush(void)
{
    for (size_t i = 0; i < FORGETFUL; i++) {
        ck_assert_str_eq(cli(i, "FLUSHALL"), "OK");
    }
}

static void reload(void)
{
    for (size_t i = 0; i < FORGETFUL; i++) {
        (void)cli(i, "DEBUG", "RELOAD",
                  "NOSAVE"); /* without a file, the memory's content is gone */
    }
}

static struct redis_server source;
static int source_port;

/* Starts another server, whose keys the nodes receive while they are its replicas. */
static void start_source(void)
{
    char dir[SERVER_PATH_MAX + 32];
    char extra[128];
    source_port = port_free();
    (void)snprintf(extra, sizeof extra, "bind 127.0.0.1\nport %d\nrepl-diskless-sync-delay 0",
                   source_port);
    world_dir(REDLOCK_NODES_MAX, dir, sizeof dir);
    ck_assert_int_eq(redis_server_start(dir, extra, &source, NULL), STATUS_OK);
}

static void replicate_and_back(void)
{
    char port[16];
    start_source();
    (void)snprintf(port, sizeof port, "%d", source_port);
    for (size_t i = 0; i < FORGETFUL; i++) {
        ck_assert_str_eq(cli(i, "REPLICAOF", "127.0.0.1", port), "OK");
        ck_assert(WAIT_UNTIL(strstr(cli(i, "INFO", "replication"), "master_link_status:up") != NULL,
                             WORLD_LIMIT_US));
        ck_assert_str_eq(cli(i, "REPLICAOF", "NO", "ONE"), "OK");
    }
    redis_server_kill(&source);
}

static const struct loss {
    void (*happens)(void);
    const char *extra_config;
} losses[] = {
    {flush, NULL}, {reload, "enable-debug-command local\nsave \"\""}, {replicate_and_back, NULL}};

START_TEST(N9_nodes_that_forgot_a_lock_make_nobody_else_its_holder)
{
    const struct loss *loss = &losses[_i];
    given_a_world_with(loss->extra_config);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    loss->happens();
    ck_assert_uint_le(world_nodes_with(KEY), 1);
    ck_assert_int_ne(try_key(other), REDLOCK_OK);
    run_until(redlock_async_voting(other) == 1); /* the last answer arrives after the verdict */
    redlock_batch_release(b, 0);
    run_until(redlock_async_voting(other) == 3); /* T_max later */
    ck_assert_int_eq(try_key(other), REDLOCK_OK);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

/* The client had no connection then, and connects to the same server as before. */
START_TEST(N9_a_client_that_was_away_meanwhile_notices_as_well)
{
    given_a_world_with(NULL);
    ck_assert_str_eq(cli(0, "FLUSHALL"), "OK"); /* the client's loop is not running now */
    ck_assert_str_eq(cli(0, "CLIENT", "KILL", "TYPE", "normal"), "1");
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, "forgotten its locks"));
}
END_TEST

START_TEST(N9_an_old_server_without_a_canary_has_no_vote_at_first)
{
    world_start(1, NULL);
    world.options.ttl_us = US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = 100 * US_PER_MS;
    world.options.trust_fresh = false;
    ck_assert(WAIT_UNTIL(strstr(cli(0, "INFO", "server"), "uptime_in_seconds:0") == NULL &&
                             strstr(cli(0, "INFO", "server"), "uptime_in_seconds:1\r") == NULL,
                         WORLD_LIMIT_US));
    ck_assert_str_eq(cli(0, "LPUSH", CANARY, "no string"), "1"); /* not a valid canary either */
    world_open();
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, "used for locks since a moment ago"));
    ck_assert_uint_eq(redlock_async_voting(world.lock), 0);
    run_until(redlock_async_voting(world.lock) == 1);
    redlock_async_close(world_other_client(), NULL, NULL); /* the quarantine is known already */
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_QUARANTINED), 1);
}
END_TEST

START_TEST(N9_a_canary_of_another_server_is_none)
{
    given_a_world_with(NULL);
    ck_assert_str_eq(cli(0, "SET", CANARY, cli(1, "GET", CANARY)), "OK");
    ck_assert_int_eq(try_key(world.lock), REDLOCK_OK); /* two of three */
    run_until(redlock_async_voting(world.lock) == 2);
    run_until(redlock_async_voting(world.lock) == 3);
    char first[128];
    (void)snprintf(first, sizeof first, "%s", cli(0, "GET", CANARY));
    ck_assert_str_ne(first, cli(1, "GET", CANARY));
}
END_TEST

START_TEST(N9_a_user_who_may_not_use_the_canary_is_told)
{
    world_start(1, "user w on >pw ~claimd:job:1 resetchannels +@all");
    world.nodes[0].user = "w";
    world.nodes[0].password = "pw";
    world_open();
    run_until(world_events_of(REDLOCK_EVENT_REFUSED) == 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, "the key " CANARY " can't be used"));
}
END_TEST

START_TEST(N9_the_canary_costs_one_command_per_batch_and_node)
{
    given_a_world_with(NULL);
    for (int i = 0; i < 3; i++) {
        struct redlock_batch *b = world_acquire(world.lock, 1, 20);
        world_release_all(b);
        world_flush(world.lock);
    }
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(world_calls(i, "mget"), 3 + world_calls(i, "evalsha")); /* by releases */
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, N9_nodes_that_forgot_a_lock_make_nobody_else_its_holder, 0,
                        sizeof losses / sizeof losses[0]);
    tcase_add_test(t, N9_a_client_that_was_away_meanwhile_notices_as_well);
    tcase_add_test(t, N9_an_old_server_without_a_canary_has_no_vote_at_first);
    tcase_add_test(t, N9_a_canary_of_another_server_is_none);
    tcase_add_test(t, N9_a_user_who_may_not_use_the_canary_is_told);
    tcase_add_test(t, N9_the_canary_costs_one_command_per_batch_and_node);
}

int main(void)
{
    return world_main("redlock_canary", add_tests);
}
