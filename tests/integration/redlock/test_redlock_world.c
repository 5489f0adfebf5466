/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include "base/buf.h"
#include "support/suite_dir.h"

#include <signal.h>
#include <stdio.h>

struct world world;

static char base_dir[SERVER_PATH_MAX];
static struct buf cli_text = BUF_INIT(1 << 20);
static struct redlock_batch *acquired;
static size_t won;

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* wakes run_until() */
}

static void on_node(void *ctx, size_t node, enum redlock_event_kind event, int64_t until_us,
                    const char *why)
{
    (void)ctx;
    ck_assert_uint_lt(world.event_count, WORLD_EVENTS_MAX);
    struct world_event *e = &world.events[world.event_count++];
    *e = (struct world_event){.node = node, .event = event, .until_us = until_us};
    (void)snprintf(e->why, sizeof e->why, "%s", why);
}

static void on_state(void *ctx, struct redlock_batch *batch, size_t index, void *user,
                     enum redlock_state state)
{
    (void)ctx;
    (void)batch;
    (void)index;
    (void)user;
    world.states[state]++;
    if (state == REDLOCK_STATE_LOST) {
        world.lost_at_us = clock_boot_us();
    }
}

void world_dir(size_t node, char *ret_dir, size_t size)
{
    (void)snprintf(ret_dir, size, "%s/%d-%zu", base_dir, (int)getpid(), node);
}

void world_add(const struct redis_server *server)
{
    size_t i = world.count++;
    world.servers[i] = *server;
    (void)snprintf(world.urls[i], sizeof world.urls[i], "unix:%s", server->path);
    world.nodes[i] = (struct redlock_node){.url = world.urls[i]};
    world.options.node_count = world.count;
}

void world_start(size_t count, const char *extra_config)
{
    struct err err = {0};
    for (size_t i = 0; i < count; i++) {
        char dir[SERVER_PATH_MAX + 32];
        struct redis_server server;
        world_dir(i, dir, sizeof dir);
        ck_assert_msg(redis_server_start(dir, extra_config, &server, &err) == STATUS_OK, "%s",
                      err.msg);
        world_add(&server);
    }
    world.options = (struct redlock_async_options){.loop = &world.loop,
                                                   .nodes = world.nodes,
                                                   .node_count = count,
                                                   .ttl_us = 10 * US_PER_S,
                                                   .ttl_max_us = 10 * US_PER_S,
                                                   .node_timeout_us = US_PER_S,
                                                   .drift_ppm = 10000,
                                                   .trust_fresh = true,
                                                   .no_line = true,
                                                   .prefix = "claimd:job:",
                                                   .on_node = on_node,
                                                   .on_state = on_state};
}

void world_open(void)
{
    struct redlock_error e;
    ck_assert_msg(redlock_async_open(&world.options, &world.lock, &e) == 0, "%s", e.message);
}

void world_open_voting(void)
{
    world_open();
    run_until(redlock_async_voting(world.lock) == world.count);
    for (size_t i = 0; i < world.count; i++) {
        (void)cli(i, "CONFIG", "RESETSTAT"); /* world_calls() counts from here */
    }
}

struct redlock_async *world_other_client(void)
{
    struct redlock_async *other = NULL;
    struct redlock_async_options options = world.options;
    options.on_node = NULL;
    options.on_state = NULL;
    ck_assert_int_eq(redlock_async_open(&options, &other, NULL), 0);
    run_until(redlock_async_voting(other) == world.count);
    return other;
}

void world_run_for(int64_t us)
{
    int64_t end_us = clock_boot_us() + us;
    run_until(clock_boot_us() >= end_us);
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    (void)ctx;
    acquired = batch;
    for (size_t i = 0; i < redlock_batch_count(batch); i++) {
        won += redlock_batch_result(batch, i) == REDLOCK_OK ? 1 : 0;
    }
}

void world_acquire_start(struct redlock_async *lock, int first, size_t count)
{
    static char names[REDLOCK_KEYS_MAX][32];
    struct redlock_async_key keys[REDLOCK_KEYS_MAX];
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(names[i], sizeof names[i], "claimd:job:%d", first + (int)i);
        keys[i] =
            (struct redlock_async_key){.bytes = names[i], .len = (size_t)len, .user = names[i]};
    }
    acquired = NULL;
    won = 0;
    const struct redlock_async_request request = {
        .keys = keys, .count = count, .done = on_acquired};
    ck_assert_int_eq(redlock_async_acquire(lock, &request, NULL), 0);
    ck_assert_ptr_null(acquired); /* never from within the call */
}

struct redlock_batch *world_acquired(void)
{
    return acquired;
}

struct redlock_batch *world_acquire(struct redlock_async *lock, int first, size_t count)
{
    world_acquire_start(lock, first, count);
    /* The batch stays if one key was won. Without any it is freed after its callback, and its
     * verdicts are only in the counters. */
    run_until(acquired != NULL);
    return acquired;
}

size_t world_won(void)
{
    return won;
}

void world_release_all(struct redlock_batch *batch)
{
    size_t count = redlock_batch_count(batch);
    for (size_t i = 0; i < count; i++) {
        redlock_batch_release(batch, i);
    }
}

static void on_flushed(void *ctx)
{
    *(bool *)ctx = true;
}

void world_flush(struct redlock_async *lock)
{
    bool is_flushed = false;
    ck_assert_int_eq(redlock_async_flush(lock, on_flushed, &is_flushed, NULL), 0);
    run_until(is_flushed);
}

const char *world_cli(size_t node, const char *const *words)
{
    buf_reset(&cli_text);
    ck_assert_int_eq(redis_server_ask(&world.servers[node], words, &cli_text, NULL), STATUS_OK);
    char *text = buf_at(&cli_text);
    if (cli_text.len > 0 && text[cli_text.len - 1] == '\n') {
        text[cli_text.len - 1] = '\0';
    }
    return text;
}

size_t world_nodes_with(const char *key)
{
    size_t count = 0;
    for (size_t i = 0; i < world.count; i++) {
        count += strcmp(cli(i, "EXISTS", key), "1") == 0;
    }
    return count;
}

bool world_extends_by_set(size_t node)
{
    struct redlock_node_info info;
    int major = 0;
    int minor = 0;
    redlock_async_node(world.lock, node, &info);
    ck_assert_int_eq(sscanf(info.version, "%d.%d", &major, &minor), 2);
    return major * 10 + minor >= (strcmp(info.server, "valkey") == 0 ? 81 : 84);
}

long world_calls(size_t node, const char *command)
{
    char field[64];
    (void)snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    const char *found = strstr(cli(node, "INFO", "commandstats"), field);
    return found != NULL ? strtol(found + strlen(field), NULL, 10) : 0;
}

size_t world_events_of(enum redlock_event_kind event)
{
    size_t count = 0;
    for (size_t i = 0; i < world.event_count; i++) {
        count += world.events[i].event == event;
    }
    return count;
}

const struct world_event *world_last_event(size_t node)
{
    for (size_t i = world.event_count; i > 0; i--) {
        if (world.events[i - 1].node == node) {
            return &world.events[i - 1];
        }
    }
    return NULL;
}

void world_signal(size_t first, size_t count, int signal_number)
{
    for (size_t i = first; i < first + count; i++) {
        ck_assert_int_eq(kill(world.servers[i].pid, signal_number), 0);
    }
}

static void on_closed(void *ctx)
{
    (void)ctx;
    world.is_closed = true;
}

void world_close(void)
{
    redlock_async_close(world.lock, on_closed, NULL);
    run_until(world.is_closed);
    world.lock = NULL;
}

static void setup(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&world.loop), 0);
    ck_assert_int_eq(uv_timer_init(&world.loop, &world.tick), 0);
    (void)uv_timer_start(&world.tick, on_tick, 2, 2);
}

static void teardown(void)
{
    if (world.lock != NULL) {
        world_close();
    }
    uv_close((uv_handle_t *)&world.tick, NULL);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&world.loop), 0); /* no handle is left */
    for (size_t i = 0; i < world.count; i++) {
        redis_server_kill(&world.servers[i]);
    }
    buf_release(&cli_text);
}

int world_main(const char *name, void (*add_tests)(TCase *t))
{
    const struct suite_in_dir in = {.name = name,
                                    .ret_dir = base_dir,
                                    .dir_size = sizeof base_dir,
                                    .timeout_s = 30,
                                    .setup = setup,
                                    .teardown = teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
