/* SPDX-License-Identifier: Apache-2.0 */
#include "test_hints_world.h"

#include "model/hint.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>

struct world world;
static char dir[SERVER_PATH_MAX];

static void on_node(void *ctx, size_t node, bool is_up, bool is_empty_memory, const struct err *why)
{
    (void)ctx;
    world.node_ups[node] += is_up;
    world.node_downs[node] += !is_up;
    world.node_empties[node] += is_empty_memory;
    if (!is_up) {
        world.why = *why;
    }
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static struct hints_options given_options(void)
{
    return (struct hints_options){.loop = &world.loop,
                                  .nodes = world.endpoints,
                                  .node_count = NODES,
                                  .prefix = "claimd",
                                  .timeout_us = US_PER_S,
                                  .on_node = on_node};
}

void world_start(const char *extra)
{
    memset(&world, 0, sizeof world);
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < NODES; i++) {
        char path[SERVER_PATH_MAX + 64];
        (void)snprintf(path, sizeof path, "%s/%d-%zu", dir, (int)getpid(), i);
        assert_ok(redis_server_start(path, extra, &world.servers[i], err));
        (void)snprintf(path, sizeof path, "unix:%s", world.servers[i].path);
        assert_ok(redis_endpoint_parse(path, &world.endpoints[i], err));
    }
    ck_assert_int_eq(uv_loop_init(&world.loop), 0);
    ck_assert_int_eq(uv_timer_init(&world.loop, &world.ticker), 0);
    ck_assert_int_eq(uv_timer_start(&world.ticker, on_tick, 5, 5), 0);
    struct hints_options options = given_options();
    assert_ok(hints_open(&options, &world.hints, err));
    RUN_UNTIL(world.node_ups[0] + world.node_downs[0] > 0 &&
              world.node_ups[1] + world.node_downs[1] > 0);
}

void world_stop(void)
{
    hints_popper_close(TAKE(world.popper));
    hints_close(TAKE(world.hints));
    uv_close((uv_handle_t *)&world.ticker, NULL);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&world.loop), 0);
    for (size_t i = 0; i < NODES; i++) {
        redis_server_stop(&world.servers[i]);
    }
}

static void on_popped(void *ctx, const struct hint *list, size_t count)
{
    (void)ctx;
    world.biggest_pop = count > world.biggest_pop ? count : world.biggest_pop;
    for (size_t i = 0; i < count && world.popped_count < POPPED_MAX; i++) {
        struct popped *p = &world.popped[world.popped_count++];
        p->id = list[i].id;
        p->score = list[i].score;
        (void)snprintf(p->set, sizeof p->set, "%s%s%s", list[i].queue,
                       list[i].kind == NULL ? "" : ":", list[i].kind == NULL ? "" : list[i].kind);
    }
    if (world.is_want_used_up) {
        world.want -= count < world.want ? count : world.want;
    }
}

static size_t want(void *ctx)
{
    (void)ctx;
    return world.want;
}

static void on_lost(void *ctx)
{
    (void)ctx;
    world.lost++;
}

static void on_news(void *ctx)
{
    (void)ctx;
    world.news++;
}

void world_open_popper_for(const char *const *sets, int64_t block_us)
{
    struct hints_popper_options options = {.nodes = given_options(),
                                           .waker = world.hints,
                                           .block_us = block_us,
                                           .on_popped = on_popped,
                                           .want = want,
                                           .on_lost = on_lost,
                                           .on_news = on_news};
    const int before = world.node_ups[0] + world.node_ups[1];
    assert_ok(hints_popper_open(&options, &world.popper, err));
    hints_popper_name(world.popper, "me");
    world_listen(sets);
    RUN_UNTIL(world.node_ups[0] + world.node_ups[1] == before + NODES);
}

void world_open_popper(const char *const *sets)
{
    world_open_popper_for(sets, BLOCK_US);
}

static void listen_to(const char *const *sets, enum hints_left left)
{
    struct hints_set list[16] = {0};
    size_t count = 0;
    for (; sets[count] != NULL; count++) {
        const char *star = sets[count] + strcspn(sets[count], "*");
        const char *colon = strchr(sets[count], ':');
        memcpy(list[count].queue, sets[count], strcspn(sets[count], ":*"));
        if (colon != NULL) {
            memcpy(list[count].kind, colon + 1, (size_t)(star - colon) - 1);
        }
        list[count].weight = *star == '*' ? (int)strtol(star + 1, NULL, 10) : 0;
    }
    assert_ok(hints_popper_listen(world.popper, list, count, left, err));
}

void world_listen(const char *const *sets)
{
    listen_to(sets, HINTS_LEFT_BLOCKED);
}

void world_listen_only(const char *const *sets)
{
    listen_to(sets, HINTS_LEFT_WOKEN);
}

void world_want(size_t wanted)
{
    world.want = wanted;
    hints_popper_poke(world.popper);
}

struct hint given_hint(int64_t id, int priority, int64_t due_ms)
{
    return (struct hint){
        .id = id, .score = hint_score(priority, due_ms * US_PER_MS), .queue = "default"};
}

static void on_pushed(void *ctx, enum status st, int64_t added)
{
    (void)ctx;
    world.push_status = st;
    world.added = added;
    world.pushes_done++;
}

void push_all(const struct hint *list, size_t count)
{
    int before = world.pushes_done;
    assert_ok(hints_push(world.hints, list, count, on_pushed, NULL, err));
    ck_assert_int_eq(world.pushes_done, before);
    RUN_UNTIL(world.pushes_done == before + 1);
}

void push_one(const char *queue, const char *kind, int64_t id, int priority, int64_t due_ms)
{
    struct hint h = given_hint(id, priority, due_ms);
    h.queue = queue;
    h.kind = kind;
    push_all(&h, 1);
    ck_assert_int_eq(world.push_status, STATUS_OK);
}

static void on_counted(void *ctx, enum status st, int64_t count, int64_t first)
{
    (void)ctx;
    world.count_status = st;
    world.counted = count;
    world.first = first;
}

static void count(const char *queue, const char *kind, int priority, bool wants_first)
{
    const struct hints_range range = {.queue = queue,
                                      .kind = kind,
                                      .from = priority,
                                      .priority = priority,
                                      .wants_first = wants_first};
    world.counted = -1;
    assert_ok(hints_count(world.hints, &range, on_counted, NULL, err));
    RUN_UNTIL(world.counted >= 0);
    ck_assert_int_eq(world.count_status, STATUS_OK);
}

int64_t count_of(const char *queue, const char *kind, int priority)
{
    count(queue, kind, priority, false);
    ck_assert_int_eq(world.first, -1);
    return world.counted;
}

int64_t first_of(const char *queue, int priority)
{
    count(queue, NULL, priority, true);
    return world.first;
}

const char *cli(size_t node, const char *const *words)
{
    static struct buf out = BUF_INIT(65536);
    buf_reset(&out);
    assert_ok(redis_server_ask(&world.servers[node], words, &out, err));
    return buf_at(&out);
}

static void setup(void)
{
    world_start(NULL);
}

int world_main(const char *name, void (*add_tests)(TCase *t))
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    struct err err = {0};
    if (dir_make(dir, sizeof dir, &err) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, setup, world_stop);
    add_tests(t);
    suite_add_tcase(s, t);
    int code = suite_run(s);
    dir_remove(dir);
    return code;
}
