/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/batches.h"

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/poll_service.h"
#include "store/batch_store.h"
#include "store/feed_store.h"

struct batches {
    struct poll_service poll;
    /* jobs that still wait although their predecessors have ended */
    struct complaint kept_complaint;
};

static const struct metric_family expired = {.name = "claimd_jobs_expired_total",
                                             .help = "Jobs that had not begun by their deadline.",
                                             .type = METRIC_COUNTER};

void batches_metrics_init(struct metrics *registry)
{
    (void)metrics_series(registry, &expired, NULL, NULL);
}

static void tell_end(const struct batch_end *end)
{
    if (end->why != NULL) {
        log_warn("batch_follow_up_failed", LOG_I64("batch", end->batch), LOG_TEXT("err", end->why),
                 LOG_TEXT("action", "the batch is over without it"));
    } else {
        log_info("batch_over", LOG_I64("batch", end->batch), LOG_I64("job", end->follow_up),
                 LOG_I64("outcome_job", end->outcome_job));
    }
}

static void tell_expired(const struct batches *b, int64_t jobs)
{
    if (jobs > 0) {
        metric_add(metrics_series(b->poll.env->registry, &expired, NULL, NULL), (uint64_t)jobs);
        log_info("jobs_expired", LOG_I64("jobs", jobs));
    }
}

static void tell_kept(struct batches *b, const struct pg_result *const *results)
{
    const char *why = NULL;
    int64_t kept = batch_store_kept(results, &why);
    if (kept == 0) {
        log_recovered("release_recovered", &b->kept_complaint);
    } else if (complaint_due(&b->kept_complaint, clock_boot_us())) {
        log_warn("release_failed", LOG_I64("jobs", kept), LOG_TEXT("err", why),
                 LOG_TEXT("action", "trying again each second"));
    }
}

static bool take(struct poll_service *p, const struct pg_result *const *results)
{
    struct batches *b = (struct batches *)p;
    tell_kept(b, results);
    tell_expired(b, batch_store_expired(results));
    for (int i = 0; i < batch_store_count(results); i++) {
        struct batch_end end = batch_store_end(results, i);
        tell_end(&end);
    }
    return false;
}

static void tell(struct complaint *complaint, const struct err *why)
{
    if (why == NULL) {
        log_recovered("batches_recovered", complaint);
    } else if (complaint_due(complaint, clock_boot_us())) {
        log_warn("batches_failed", LOG_TEXT("err", why->msg),
                 LOG_TEXT("action", "trying again each second"));
    }
}

/* The cluster poll finds what a lost or unsent NOTIFY would have announced. */
static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    static const struct poll_kind batches = {.work = FEED_TICK_WAKES | FEED_TICK_BATCHES |
                                                     FEED_TICK_EXPIRED,
                                             .send = batch_store_end_some,
                                             .take = take,
                                             .tell = tell};
    return poll_service_start(&batches, sizeof(struct batches), env, ret_self, err);
}

const struct service batches_service = {.failed = "batches_failed",
                                        .start = on_lead,
                                        .polled = poll_service_polled,
                                        .wake = poll_service_wake,
                                        .stop = poll_service_stop};
