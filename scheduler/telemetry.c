/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler's telemetry: metrics, readiness, liveness. */
#include "base/clock.h"
#include "scheduler/scheduler_internal.h"

#define FEED_TIMEOUTS 2 /* × postgres.timeout_ms without a pass: the feed has stalled */
#define FEED_REST_US (5 * US_PER_S) /* longest pause between two passes that fail */

/* Returns the time since that moment of the feeder, or since leading began; 0 = not leading. */
static int64_t since_us(const struct scheduler *s, int64_t moment_us)
{
    int64_t from_us = moment_us > s->leader_us ? moment_us : s->leader_us;
    return s->is_leader ? clock_boot_us() - from_us : 0;
}

int64_t scheduler_feed_age_us(const struct scheduler *s)
{
    return since_us(s, s->feeder == NULL ? 0 : feeder_counters(s->feeder)->ended_us);
}

/* Called just before a text of the metrics is made. */
static void on_collect(void *ctx)
{
    struct scheduler *s = ctx;
    const struct scheduler_metrics_facts facts = {.feed_age_us = scheduler_feed_age_us(s),
                                                  .is_pg_up = s->pg != NULL && pg_is_up(s->pg),
                                                  .lock = s->lock,
                                                  .lead = s->lead,
                                                  .feeder = s->feeder,
                                                  .rescuer = s->rescuer};
    scheduler_metrics_collect(&s->metrics, &facts);
    scheduler_log_nodes(s);
}

static int64_t on_lease(void *ctx)
{
    const struct scheduler *s = ctx;
    return lead_until_us(s->lead);
}

/* The leader's feed makes a pass at least once per lead_try_ms, and one may take one timeout. */
static void check_feed(const struct scheduler *s, struct health *ret)
{
    int64_t bound_us =
        FEED_TIMEOUTS * s->config->postgres.timeout_us + s->config->scheduler.lead_try_us;
    int64_t silent_us = scheduler_feed_age_us(s);
    health_add(ret, "feed", silent_us <= bound_us, "no pass of the feed has ended for %lld ms",
               (long long)(silent_us / US_PER_MS));
}

/* Checks the process itself: it has tried to feed, even if servers refused. */
static void on_alive(void *ctx, struct health *ret)
{
    const struct scheduler *s = ctx;
    const struct config *c = s->config;
    int64_t bound_us =
        FEED_TIMEOUTS * c->postgres.timeout_us + c->scheduler.lead_try_us + FEED_REST_US;
    int64_t silent_us = since_us(s, s->feeder == NULL ? 0 : feeder_counters(s->feeder)->tried_us);
    health_add(ret, "feeder", silent_us <= bound_us, "no pass of the feed was tried for %lld ms",
               (long long)(silent_us / US_PER_MS));
}

/* The checks of /readyz. */
static void on_ready(void *ctx, struct health *ret)
{
    const struct scheduler *s = ctx;
    health_add(ret, "started", s->stage == STAGE_READY, "starting");
    health_add(ret, "postgres", s->pg != NULL && pg_is_up(s->pg), "not connected");
    daemon_check_quorum(s->config, s->lead == NULL ? NULL : lead_lock(s->lead), ret);
    check_feed(s, ret);
}

enum status scheduler_telemetry(struct scheduler *s, struct err *err)
{
    struct telemetry_options options = {.loop = &s->loop,
                                        .http_key = "scheduler.http_listen",
                                        .http_listen = s->config->scheduler.http_listen,
                                        .collect = on_collect,
                                        .ready = on_ready,
                                        .alive = on_alive,
                                        .lease_family = &scheduler_metrics_leader,
                                        .lease = on_lease,
                                        .ctx = s};
    enum status st = telemetry_open(&options, &s->telemetry, err);
    scheduler_metrics_init(&s->metrics, telemetry_metrics(s->telemetry), s->config);
    return st;
}
