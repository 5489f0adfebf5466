/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/hint_look.h"

#include "base/clock.h"
#include "base/timer.h"
#include "model/hint.h"
#include "redis/redis.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define TIMEOUT_US (2 * US_PER_S)
#define REQUEST_BYTES_MAX ((size_t)1 << 20)
/* Of each job: ZSCORE, ZCOUNT in the queue's own set, then in that of its kind. */
#define QUESTIONS 4

struct node_look {
    struct redis_node *node;
    struct look *look;
    bool is_settled; /* up or down, then answered or not */
    bool is_answered;
    int64_t count; /* of the job whose replies are coming in */
    struct err why;
};

struct look {
    uv_loop_t loop;
    uv_timer_t limit;
    const struct config *config;
    struct hint_look *list;
    size_t count;
    struct node_look nodes[CONFIG_NODES_MAX];
};

/* The loop runs until all nodes are settled. */
static void settle(struct node_look *n)
{
    bool is_all = true;
    n->is_settled = true;
    for (size_t i = 0; i < n->look->config->hints.node_count; i++) {
        is_all = is_all && n->look->nodes[i].is_settled;
    }
    if (is_all) {
        uv_stop(&n->look->loop);
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
    struct node_look *n = ctx;
    (void)node;
    n->why = n->why.status == STATUS_OK ? *why : n->why;
    settle(n);
}

static void on_limit(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

/* ---- asking ---- */

static enum status put_questions(const struct look *look, const struct hint_look *job,
                                 const char *kind, struct buf *out, struct err *err)
{
    char key[HINT_KEY_MAX];
    char id[24];
    char low[32];
    char high[32];
    size_t len = hint_key(key, look->config->redis.prefix, job->queue, kind);
    (void)snprintf(id, sizeof id, "%" PRId64, job->id);
    (void)snprintf(low, sizeof low, "%" PRId64, job->priority * HINT_PRIORITY_STEP);
    (void)snprintf(high, sizeof high, "(%" PRId64, (job->priority + 1) * HINT_PRIORITY_STEP);
    const struct redis_arg score[] = {redis_word("ZSCORE"), redis_bytes(key, len), redis_word(id)};
    const struct redis_arg count[] = {redis_word("ZCOUNT"), redis_bytes(key, len), redis_word(low),
                                      redis_word(high)};
    enum status st = redis_command(out, score, ARRAY_COUNT(score), err);
    return st == STATUS_OK ? redis_command(out, count, ARRAY_COUNT(count), err) : st;
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct node_look *n = ctx;
    struct hint_look *job = &n->look->list[index / QUESTIONS];
    n->count = index % QUESTIONS == 0 ? 0 : n->count;
    if (v->type == REDIS_ERROR) {
        err_set(&n->why, STATUS_INVALID, 0, "a hint node refuses: %s", v->text);
    } else if (v->type == REDIS_STRING) {
        job->has_hint = true;
    } else if (v->type == REDIS_INTEGER) {
        n->count += v->integer;
        job->others = n->count > job->others ? n->count : job->others;
    }
}

static void on_done(void *ctx, enum status st)
{
    struct node_look *n = ctx;
    n->is_answered = st == STATUS_OK && n->why.status == STATUS_OK;
    if (st != STATUS_OK) {
        err_set(&n->why, st, 0, "a hint node connected, then: %s", status_text(st));
    }
    settle(n);
}

static void ask(struct node_look *n, const struct buf *questions)
{
    const struct redis_request request = {.bytes = buf_at(questions),
                                          .len = questions->len,
                                          .reply_count = n->look->count * QUESTIONS,
                                          .timeout_us = TIMEOUT_US,
                                          .on_reply = on_reply,
                                          .on_done = on_done,
                                          .ctx = n};
    n->is_settled = redis_node_send(n->node, &request, &n->why) != STATUS_OK;
}

/* ---- all nodes ---- */

static enum status open_nodes(struct look *look, struct err *err)
{
    const struct config *c = look->config;
    for (size_t i = 0; i < c->hints.node_count; i++) {
        struct node_look *n = &look->nodes[i];
        struct redis_options options = {.loop = &look->loop,
                                        .connect_timeout_us = TIMEOUT_US,
                                        .on_up = on_up,
                                        .on_down = on_down,
                                        .ctx = n};
        n->look = look;
        enum status st = redis_endpoint_parse(c->hints.nodes[i], &options.endpoint, err);
        if (st == STATUS_OK) {
            st = redis_endpoint_login(&options.endpoint, c->redis.user, c->redis.password, err);
        }
        if (st == STATUS_OK) {
            st = redis_node_open(&options, &n->node, err);
        }
        if (st != STATUS_OK) {
            err_prefix(err, "hints.nodes");
            return st;
        }
    }
    return STATUS_OK;
}

static enum status ask_all(struct look *look, struct err *err)
{
    autobuf struct buf out = BUF_INIT(REQUEST_BYTES_MAX);
    enum status st = open_nodes(look, err);
    for (size_t i = 0; st == STATUS_OK && i < look->count; i++) {
        st = put_questions(look, &look->list[i], NULL, &out, err);
        if (st == STATUS_OK) {
            st = put_questions(look, &look->list[i], look->list[i].kind, &out, err);
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    (void)uv_run(&look->loop, UV_RUN_DEFAULT); /* until each is up or down */
    bool is_waiting = false;
    for (size_t i = 0; i < look->config->hints.node_count; i++) {
        if (redis_node_is_up(look->nodes[i].node)) {
            ask(&look->nodes[i], &out);
            is_waiting = is_waiting || !look->nodes[i].is_settled;
        }
    }
    if (is_waiting) {
        (void)uv_run(&look->loop, UV_RUN_DEFAULT);
    }
    return STATUS_OK;
}

static enum status judge(const struct look *look, struct err *err)
{
    const struct node_look *silent = NULL;
    size_t answered = 0;
    for (size_t i = 0; i < look->config->hints.node_count; i++) {
        const struct node_look *n = &look->nodes[i];
        if (n->why.status == STATUS_INVALID) {
            return err_fail(err, STATUS_INVALID, "%s", n->why.msg);
        }
        answered += n->is_answered;
        silent = n->is_answered ? silent : n;
    }
    if (answered == 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no hint node answers: %s",
                        silent == NULL ? "none is named" : silent->why.msg);
    }
    return STATUS_OK;
}

enum status hint_look(const struct config *config, struct hint_look *list, size_t count,
                      struct err *err)
{
    assert(count <= HINT_LOOK_MAX);
    autofree struct look *look = calloc(1, sizeof *look);
    if (look == NULL || uv_loop_init(&look->loop) != 0) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    look->config = config;
    look->list = list;
    look->count = count;
    for (size_t i = 0; i < count; i++) {
        list[i].has_hint = false;
        list[i].others = 0;
    }
    (void)uv_timer_init(&look->loop, &look->limit);
    timer_start(&look->limit, on_limit, 2 * TIMEOUT_US / US_PER_MS, 0);
    enum status st = ask_all(look, err);
    if (st == STATUS_OK) {
        st = judge(look, err);
    }
    for (size_t i = 0; i < config->hints.node_count; i++) {
        redis_node_close(look->nodes[i].node);
    }
    uv_close((uv_handle_t *)&look->limit, NULL);
    while (uv_loop_close(&look->loop) == UV_EBUSY) {
        (void)uv_run(&look->loop, UV_RUN_DEFAULT);
    }
    return st;
}
