/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/lead.h"

#include "base/clock.h"
#include "base/rand.h"
#include "base/timer.h"
#include "daemon/daemon.h"

#include <assert.h>
#include <stdio.h>

#define KEY_MAX 128
#define WHY_MAX 160
/* a running process notices the end of its lease earlier than this */
#define LATE_US (200 * US_PER_MS)
#define REST_TRIES 3 /* after giving up: time for every standby to try */

struct lead {
    struct lead_options options;
    char key[KEY_MAX];
    redlock_async_node_cb *on_node;
    struct redlock_async *lock;
    struct redlock_batch *batch; /* while leading */
    struct rand rand;
    uv_timer_t timer;
    int64_t rest_until_us;
    bool is_asking;
    bool is_closing;
};

static void timer_set(struct lead *l);

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct lead *l = ctx;
    l->is_asking = false;
    if (redlock_batch_result(batch, 0) != REDLOCK_OK) {
        return;
    }
    if (l->is_closing) {
        redlock_batch_release(batch, 0);
        return;
    }
    l->batch = batch;
    l->options.on_change(l->options.ctx, true, NULL);
}

/* Describes why the last rounds of extension failed. */
static void say_why(const struct lead *l, const struct redlock_batch *batch, size_t index,
                    char *ret_text, size_t size)
{
    size_t nodes = l->options.lock.node_count;
    size_t voting = redlock_async_voting(l->lock);
    size_t needed = redlock_async_quorum(l->lock);
    int64_t late_us = clock_boot_us() - redlock_batch_deadline_us(batch, index);
    size_t confirmed = 0;
    for (size_t i = 0; i < nodes; i++) {
        confirmed += redlock_batch_vote(batch, index, i) == REDLOCK_VOTE_OK;
    }
    if (late_us > LATE_US) {
        (void)snprintf(ret_text, size,
                       "this process stood still: its lease had ended %lld ms before it saw that",
                       (long long)(late_us / US_PER_MS));
    } else if (voting < needed) {
        (void)snprintf(ret_text, size,
                       "its lease could not be extended: %zu of %zu lock nodes have a vote, %zu "
                       "are needed",
                       voting, nodes, needed);
    } else if (confirmed < needed) {
        (void)snprintf(ret_text, size,
                       "its lock is gone: %zu of %zu lock nodes have it, %zu are needed", confirmed,
                       nodes, needed);
    } else {
        (void)snprintf(ret_text, size,
                       "its lease was not extended in time: this process stood still, or fewer "
                       "than %zu of %zu lock nodes answered",
                       needed, nodes);
    }
}

static void on_state(void *ctx, struct redlock_batch *batch, size_t index, void *user,
                     enum redlock_state state)
{
    struct lead *l = ctx;
    (void)user;
    if (state != REDLOCK_STATE_LOST || batch != l->batch) {
        return;
    }
    char why[WHY_MAX];
    say_why(l, batch, index, why, sizeof why);
    l->batch = NULL;
    redlock_batch_release(batch, index);
    l->options.on_change(l->options.ctx, false, why);
}

static void on_node(void *ctx, size_t node, enum redlock_event_kind event, int64_t until_us,
                    const char *why)
{
    struct lead *l = ctx;
    if (l->on_node != NULL) {
        l->on_node(l->options.ctx, node, event, until_us, why);
    }
}

static void on_flushed(void *ctx)
{
    (void)ctx; /* released, or it expires */
}

static void give_up(struct lead *l)
{
    l->rest_until_us = clock_boot_us() + REST_TRIES * l->options.try_us;
    redlock_batch_release(TAKE(l->batch), 0);
    (void)redlock_async_flush(l->lock, on_flushed, l, NULL);
    l->options.on_change(l->options.ctx, false, "it can't feed: a standby may");
}

static void on_timer(uv_timer_t *timer)
{
    struct lead *l = timer->data;
    timer_set(l);
    bool has_lease = l->batch != NULL && clock_boot_us() < lead_until_us(l);
    if (has_lease && !l->options.is_fit(l->options.ctx)) {
        give_up(l);
        return;
    }
    if (l->batch != NULL || l->is_asking || clock_boot_us() < l->rest_until_us ||
        !redlock_async_has_quorum(l->lock)) {
        return;
    }
    struct redlock_async_key key = {.bytes = l->key, .len = strlen(l->key)};
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = on_acquired, .ctx = l};
    /* A failure is tried again when the timer next fires. */
    l->is_asking = redlock_async_acquire(l->lock, &request, NULL) == 0;
}

static void timer_set(struct lead *l)
{
    int64_t us = rand_jitter(&l->rand, l->options.try_us, 10);
    if (l->batch == NULL && !redlock_async_has_quorum(l->lock)) {
        us = us / 10; /* without a quorum no request is sent, so check more often */
    }
    timer_start(&l->timer, on_timer, (uint64_t)(us / US_PER_MS) + 1, 0);
}

enum status lead_open(const struct lead_options *options, struct lead **ret, struct err *err)
{
    struct lead *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the leader's lock");
    }
    l->options = *options;
    l->on_node = options->lock.on_node;
    l->options.lock.on_node = on_node;
    l->options.lock.on_state = on_state;
    l->options.lock.ctx = l;
    (void)snprintf(l->key, sizeof l->key, "%s:leader", options->prefix);
    rand_seed_from_system(&l->rand);
    enum status st = daemon_lock_open(&l->options.lock, &l->lock, err);
    if (st != STATUS_OK) {
        free(l);
        err_prefix(err, "the leader's lock");
        return st;
    }
    (void)uv_timer_init(options->lock.loop, &l->timer);
    l->timer.data = l;
    timer_start(&l->timer, on_timer, 1, 0);
    *ret = l;
    return STATUS_OK;
}

enum status lead_set_password(struct lead *l, const char *password, struct err *err)
{
    return daemon_lock_set_password(l->lock, password, err);
}

bool lead_is_leader(const struct lead *l)
{
    return l->batch != NULL;
}

int64_t lead_until_us(const struct lead *l)
{
    return l == NULL || l->batch == NULL ? 0 : redlock_batch_deadline_us(l->batch, 0);
}

const struct redlock_counters *lead_counters(const struct lead *l)
{
    return redlock_async_counters(l->lock);
}

const struct redlock_async *lead_lock(const struct lead *l)
{
    return l->lock;
}

static void on_timer_closed(uv_handle_t *timer)
{
    free(timer->data);
}

static void on_lock_closed(void *ctx)
{
    struct lead *l = ctx;
    uv_close((uv_handle_t *)&l->timer, on_timer_closed);
}

void lead_close(struct lead *l)
{
    if (l == NULL) {
        return;
    }
    assert(!l->is_closing);
    l->is_closing = true;
    (void)uv_timer_stop(&l->timer);
    if (l->batch != NULL) {
        redlock_batch_release(l->batch, 0);
        l->batch = NULL;
    }
    redlock_async_close(l->lock, on_lock_closed, l);
}
