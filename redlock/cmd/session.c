/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/cmd/session.h"

#include "base/clock.h"
#include "base/timer.h"

#include <signal.h>

#define OPEN_US (2 * US_PER_S)
#define TICK_MS 5

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* wakes the loop; its user checks the clock */
}

static void on_node(void *ctx, size_t node, enum redlock_event_kind event, int64_t until_us,
                    const char *why)
{
    struct session *s = ctx;
    (void)event;
    (void)until_us;
    (void)why;
    s->is_heard[node] = true;
}

static bool are_all_heard(const struct session *s)
{
    for (size_t i = 0; i < s->node_count; i++) {
        if (!s->is_heard[i]) {
            return false;
        }
    }
    return true;
}

int session_open(struct session *s, const struct cli *cli)
{
    struct redlock_error error;
    const struct settings *set = &cli->settings;
    const struct redlock_options *o = &cli->options;
    const struct redlock_tls tls = {
        .ca_file = o->ca_file, .cert_file = o->cert_file, .key_file = o->key_file};
    *s = (struct session){.node_count = set->node_count,
                          .node_timeout_ms = set->node_timeout_us / US_PER_MS};
    (void)signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&s->loop) != 0) {
        cli_tell("no event loop");
        return CLI_SYSTEM;
    }
    (void)uv_timer_init(&s->loop, &s->tick);
    timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    const struct redlock_async_options options = {.loop = &s->loop,
                                                  .nodes = set->nodes,
                                                  .node_count = set->node_count,
                                                  .tls = &tls,
                                                  .ttl_us = set->ttl_us,
                                                  .ttl_max_us = set->ttl_max_us,
                                                  .node_timeout_us = set->node_timeout_us,
                                                  .drift_ppm = set->drift_ppm,
                                                  .trust_fresh = o->trust_fresh,
                                                  .no_line = !cli->sees_lines,
                                                  .prefix = set->prefix,
                                                  .on_node = on_node,
                                                  .ctx = s};
    int r = redlock_async_open(&options, &s->lock, &error);
    if (r != 0) {
        cli_tell("%s", error.message);
        session_close(s);
        return r == -EINVAL ? CLI_NODES : CLI_SYSTEM;
    }
    int64_t end_us = clock_boot_us() + OPEN_US;
    while (!are_all_heard(s) && clock_boot_us() < end_us) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    return CLI_OK;
}

void session_run_until(struct session *s, const bool *is_done)
{
    while (!*is_done) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
}

static void on_closed(void *ctx)
{
    struct session *s = ctx;
    s->is_closed = true;
}

void session_close(struct session *s)
{
    if (s->lock != NULL) {
        redlock_async_close(TAKE(s->lock), on_closed, s);
        session_run_until(s, &s->is_closed);
    }
    if (s->tick.loop != NULL) {
        uv_close((uv_handle_t *)&s->tick, NULL);
        (void)uv_run(&s->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&s->loop);
        s->tick.loop = NULL;
    }
}
