/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/batches.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/batch_store.h"
#include "store/feed_store.h"

struct batches {
    struct pg *pg;            /* the scheduler's own */
    struct metrics *registry; /* may be NULL */
    struct complaint complaint;
    /* jobs that still wait although their predecessors have ended */
    struct complaint kept_complaint;
    bool is_asking;
    bool is_woken; /* while a request is in flight */
    bool is_stopped;
};

static const struct metric_family expired = {.name = "claimd_jobs_expired_total",
                                             .help = "Jobs that had not begun by their deadline.",
                                             .type = METRIC_COUNTER};

void batches_metrics_init(struct metrics *registry)
{
    (void)metrics_series(registry, &expired, NULL, NULL);
}

static void ask(struct batches *b);

static void tell(const struct batch_end *end)
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
        metric_add(metrics_series(b->registry, &expired, NULL, NULL), (uint64_t)jobs);
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

static void on_ended(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct batches *b = ctx;
    b->is_asking = false;
    if (b->is_stopped) {
        free(b);
        return;
    }
    if (st != STATUS_OK) {
        if (complaint_due(&b->complaint, clock_boot_us())) {
            log_warn("batches_failed", LOG_TEXT("err", err->msg),
                     LOG_TEXT("action", "trying again each second"));
        }
        return;
    }
    log_recovered("batches_recovered", &b->complaint);
    tell_kept(b, results);
    tell_expired(b, batch_store_expired(results));
    for (int i = 0; i < batch_store_count(results); i++) {
        struct batch_end end = batch_store_end(results, i);
        tell(&end);
    }
    if (b->is_woken) {
        ask(b);
    }
}

static void ask(struct batches *b)
{
    b->is_woken = b->is_asking;
    if (!b->is_asking && pg_is_up(b->pg)) {
        b->is_asking = batch_store_end_some(b->pg, on_ended, b, NULL) == STATUS_OK;
    }
}

static void on_wake(void *self)
{
    ask(self);
}

/* The leader's roll finds what a lost or unsent NOTIFY would have announced. */
static void on_roll(void *self, const struct roll *roll)
{
    if ((roll->work & (FEED_TICK_WAKES | FEED_TICK_BATCHES | FEED_TICK_EXPIRED)) != 0) {
        ask(self);
    }
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    struct batches *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the batches");
    }
    b->pg = env->pg;
    b->registry = env->registry;
    *ret_self = b;
    return STATUS_OK;
}

/* The reply in flight still arrives, if only to report that the connection is gone. */
static void on_stop(void *self)
{
    struct batches *b = self;
    b->is_stopped = true;
    if (!b->is_asking) {
        free(b);
    }
}

const struct service batches_service = {.failed = "batches_failed",
                                        .start = on_lead,
                                        .roll = on_roll,
                                        .wake = on_wake,
                                        .stop = on_stop};
