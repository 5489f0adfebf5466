/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/doctor/redis_ask.h"

#include "base/clock.h"
#include "base/timer.h"

#include <assert.h>
#include <stdlib.h>

#define TIMEOUT_US (2 * US_PER_S)

struct asking;

struct asked {
    struct redis_node *node;
    struct asking *all;
    bool is_settled; /* down, or up and then answered or failed */
    bool is_answered;
    struct err why;
};

struct asking {
    uv_loop_t loop;
    uv_timer_t limit;
    const struct redis_ask *ask;
    struct asked nodes[CONFIG_NODES_MAX];
};

/* The loop runs until all nodes are settled. */
static void settle(struct asked *n)
{
    bool is_all = true;
    n->is_settled = true;
    for (size_t i = 0; i < n->all->ask->node_count; i++) {
        is_all = is_all && n->all->nodes[i].is_settled;
    }
    if (is_all) {
        uv_stop(&n->all->loop);
    }
}

static enum status on_up(void *ctx, struct redis_node *node, const struct redis_server_info *info,
                         struct err *err)
{
    (void)node;
    (void)info;
    (void)err;
    settle(ctx);
    return STATUS_OK;
}

static void on_down(void *ctx, struct redis_node *node, const struct err *why)
{
    struct asked *n = ctx;
    (void)node;
    n->why = n->why.status == STATUS_OK ? *why : n->why;
    settle(n);
}

static void on_limit(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct asked *n = ctx;
    const struct redis_ask *ask = n->all->ask;
    if (v->type == REDIS_ERROR) {
        err_set(&n->why, STATUS_INVALID, 0, "a node refuses: %s", v->text);
        return;
    }
    ask->on_reply(ask->ctx, (size_t)(n - n->all->nodes), index, v);
}

static void on_done(void *ctx, enum status st)
{
    struct asked *n = ctx;
    n->is_answered = st == STATUS_OK && n->why.status == STATUS_OK;
    if (st != STATUS_OK) {
        err_set(&n->why, st, 0, "connected, then: %s", status_text(st));
    }
    settle(n);
}

static enum status open_node(struct asking *all, size_t i, struct err *err)
{
    struct asked *n = &all->nodes[i];
    struct redis_options options = {.loop = &all->loop,
                                    .connect_timeout_us = TIMEOUT_US,
                                    .on_up = on_up,
                                    .on_down = on_down,
                                    .ctx = n};
    n->all = all;
    enum status st = redis_endpoint_parse(all->ask->nodes[i], &options.endpoint, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = redis_endpoint_login(&options.endpoint, all->ask->config->redis.user,
                              all->ask->config->redis.password, err);
    if (st != STATUS_OK) {
        return st;
    }
    return redis_node_open(&options, &n->node, err);
}

static void put(struct asked *n)
{
    const struct redis_ask *ask = n->all->ask;
    const struct redis_request request = {.bytes = buf_at(ask->questions),
                                          .len = ask->questions->len,
                                          .reply_count = ask->question_count,
                                          .timeout_us = TIMEOUT_US,
                                          .on_reply = on_reply,
                                          .on_done = on_done,
                                          .ctx = n};
    n->is_settled = redis_node_send(n->node, &request, &n->why) != STATUS_OK;
}

static enum status ask_all(struct asking *all, struct err *err)
{
    bool is_waiting = false;
    for (size_t i = 0; i < all->ask->node_count; i++) {
        enum status st = open_node(all, i, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    (void)uv_run(&all->loop, UV_RUN_DEFAULT); /* until each is up or down */
    for (size_t i = 0; i < all->ask->node_count; i++) {
        if (redis_node_is_up(all->nodes[i].node)) {
            put(&all->nodes[i]);
            is_waiting = is_waiting || !all->nodes[i].is_settled;
        }
    }
    if (is_waiting) {
        (void)uv_run(&all->loop, UV_RUN_DEFAULT);
    }
    return STATUS_OK;
}

static enum status judge(const struct asking *all, size_t *ret_answered, struct err *err)
{
    const struct asked *silent = NULL;
    size_t answered = 0;
    for (size_t i = 0; i < all->ask->node_count; i++) {
        const struct asked *n = &all->nodes[i];
        if (n->why.status == STATUS_INVALID) {
            return err_fail(err, STATUS_INVALID, "%s", n->why.msg);
        }
        answered += n->is_answered;
        silent = n->is_answered ? silent : n;
    }
    if (answered == 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no node answers: %s",
                        silent == NULL ? "no node is configured" : silent->why.msg);
    }
    *ret_answered = answered;
    return STATUS_OK;
}

enum status redis_ask(const struct redis_ask *ask, size_t *ret_answered, struct err *err)
{
    assert(ask->node_count <= CONFIG_NODES_MAX);
    autofree struct asking *all = calloc(1, sizeof *all);
    if (all == NULL || uv_loop_init(&all->loop) != 0) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    all->ask = ask;
    (void)uv_timer_init(&all->loop, &all->limit);
    timer_start(&all->limit, on_limit, 2 * TIMEOUT_US / US_PER_MS, 0);
    enum status st = ask_all(all, err);
    if (st == STATUS_OK) {
        st = judge(all, ret_answered, err);
    }
    for (size_t i = 0; i < ask->node_count; i++) {
        redis_node_close(all->nodes[i].node);
    }
    uv_close((uv_handle_t *)&all->limit, NULL);
    while (uv_loop_close(&all->loop) == UV_EBUSY) {
        (void)uv_run(&all->loop, UV_RUN_DEFAULT);
    }
    return st;
}
