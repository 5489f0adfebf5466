/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/survey.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "store/survey_store.h"

#include <assert.h>

#define EVERY_US (15 * US_PER_S)
#define LIMIT_US (10 * US_PER_S)
/* Pause between two surveys, as a multiple of the duration of the last one: at most 2 % of the
 * time. */
#define REST_FACTOR 50

/* A job that a survey found due beside an idle slot. */
struct waiting {
    int64_t job;
    int64_t version;
    int64_t fence;
    int64_t since_us; /* BOOTTIME of the first survey that found it so */
};

struct waitings {
    struct waiting list[SURVEY_UNSERVED_MAX];
    size_t count;
};

struct survey {
    struct survey_options options;
    struct pg *pg;
    uv_timer_t timer;
    int64_t begun_us;
    struct waitings waiting; /* as of the last survey */
    struct complaint complaint;
    bool is_stopping;
};

static const struct metric_family jobs = {.name = "claimd_jobs",
                                          .help = "Open jobs.",
                                          .type = METRIC_GAUGE,
                                          .labels = {"queue", "state"}};
static const struct metric_family oldest_due = {
    .name = "claimd_queue_oldest_due_seconds",
    .help = "How long the oldest due job that nobody runs has been due.",
    .type = METRIC_GAUGE,
    .labels = {"queue"}};
static const struct metric_family oldest_running = {
    .name = "claimd_queue_oldest_running_seconds",
    .help = "For how long the oldest running job has been running.",
    .type = METRIC_GAUGE,
    .labels = {"queue"}};
static const struct metric_family table_bytes = {
    .name = "claimd_job_table_bytes",
    .help = "Size of the table of open jobs, indexes included.",
    .type = METRIC_GAUGE};
static const struct metric_family dead_rows = {.name = "claimd_job_table_dead_rows",
                                               .help = "Its dead rows, by PostgreSQL's estimate.",
                                               .type = METRIC_GAUGE};
static const struct metric_family inserted = {
    .name = "claimd_jobs_enqueued_total",
    .help = "Rows inserted into the table of open jobs, by PostgreSQL's statistics.",
    .type = METRIC_COUNTER};
static const struct metric_family paused = {
    .name = "claimd_queue_paused", .help = "1: paused.", .type = METRIC_GAUGE, .labels = {"queue"}};
static const struct metric_family unserved = {.name = "claimd_jobs_unserved",
                                              .help =
                                                  "Due jobs of kinds that no live worker serves.",
                                              .type = METRIC_GAUGE,
                                              .labels = {"queue", "kind"}};
static const struct metric_family workers = {.name = "claimd_workers",
                                             .help = "Worker processes.",
                                             .type = METRIC_GAUGE,
                                             .labels = {"state"}};
static const struct metric_family days_ahead = {.name = "claimd_history_partitions_ahead",
                                                .help = "Days of the history that are ready.",
                                                .type = METRIC_GAUGE};
static const struct metric_family idle_beside_due = {
    .name = "claimd_idle_beside_due_seconds",
    .help = "How long a job without a limit has waited beside a worker with an idle slot for it.",
    .type = METRIC_GAUGE,
    .labels = {"queue"}};
static const struct metric_family map_rows = {.name = "claimd_map_rows",
                                              .help = "Rows of the newest maps.",
                                              .type = METRIC_GAUGE,
                                              .labels = {"map", "state"}};
static const struct metric_family failed = {
    .name = "claimd_surveys_failed_total",
    .help = "Surveys of the queues that failed or were cut off: the gauges are as old.",
    .type = METRIC_COUNTER};

/* `inserted` is one of them: on a scheduler that no longer leads it would stand still, and jump
 * when it leads again. */
static const struct metric_family *const gauges[] = {
    &jobs,       &oldest_due,  &oldest_running, &paused,   &unserved,        &workers,
    &days_ahead, &table_bytes, &dead_rows,      &inserted, &idle_beside_due, &map_rows};

static void forget(struct metrics *registry)
{
    for (size_t i = 0; i < ARRAY_COUNT(gauges); i++) {
        metrics_forget(registry, gauges[i]);
    }
}

/* ---- results ---- */

static void set(const struct survey *s, const struct metric_family *family, const char *value1,
                const char *value2, double number)
{
    metric_set(metrics_series(s->options.registry, family, value1, value2), number);
}

static void take_queue(const struct survey *s, const struct survey_row *row)
{
    static_assert((SURVEY_QUEUES_MAX + 1) * 5 <= METRICS_SERIES_MAX, "and 'other', in five states");
    set(s, &jobs, row->queue, "available", (double)row->available);
    set(s, &jobs, row->queue, "scheduled", (double)row->scheduled);
    set(s, &jobs, row->queue, "retryable", (double)row->retryable);
    set(s, &jobs, row->queue, "waiting", (double)row->waiting);
    set(s, &jobs, row->queue, "running", (double)row->running);
    set(s, &oldest_due, row->queue, NULL, (double)row->oldest_due_us / US_PER_S);
    set(s, &oldest_running, row->queue, NULL, (double)row->oldest_running_us / US_PER_S);
    set(s, &paused, row->queue, NULL, row->is_paused ? 1 : 0);
    metrics_series(s->options.registry, &idle_beside_due, row->queue, NULL);
}

static void take_map(const struct survey *s, const struct survey_row *row)
{
    static_assert(SURVEY_MAPS_MAX * 4 <= METRICS_SERIES_MAX, "in four states");
    set(s, &map_rows, row->map, "open", (double)row->open);
    set(s, &map_rows, row->map, "completed", (double)row->completed);
    set(s, &map_rows, row->map, "failed", (double)row->failed);
    set(s, &map_rows, row->map, "cancelled", (double)row->cancelled);
}

static void raise_idle(const struct survey *s, const struct survey_row *row, int64_t us)
{
    metric_raise(metrics_series(s->options.registry, &idle_beside_due, row->queue, NULL),
                 (double)us / US_PER_S);
}

/* If an earlier survey saw the same job unchanged, the job and the idle slot have waited beside
 * each other at least since then, or for as long as the worker has had an idle slot. */
static void take_beside(struct survey *s, const struct waitings *before,
                        const struct survey_row *row)
{
    struct waiting now = {
        .job = row->job, .version = row->version, .fence = row->fence, .since_us = s->begun_us};
    for (size_t i = 0; i < before->count; i++) {
        const struct waiting *w = &before->list[i];
        if (w->job == now.job && w->version == now.version && w->fence == now.fence) {
            now.since_us = w->since_us;
        }
    }
    int64_t seen_us = s->begun_us - now.since_us;
    raise_idle(s, row, seen_us < row->idle_us ? seen_us : row->idle_us);
    if (s->waiting.count < ARRAY_COUNT(s->waiting.list)) {
        s->waiting.list[s->waiting.count++] = now;
    }
}

static void take_row(struct survey *s, const struct waitings *before, const struct survey_row *row)
{
    switch (row->part) {
    case SURVEY_CLUSTER:
        set(s, &workers, "live", NULL, (double)row->live_workers);
        set(s, &workers, "stale", NULL, (double)row->stale_workers);
        set(s, &days_ahead, NULL, NULL, (double)row->days_ahead);
        break;
    case SURVEY_QUEUE:
        take_queue(s, row);
        break;
    case SURVEY_TABLE:
        set(s, &table_bytes, NULL, NULL, (double)row->table_bytes);
        set(s, &dead_rows, NULL, NULL, (double)row->dead_rows);
        metric_take(metrics_series(s->options.registry, &inserted, NULL, NULL),
                    (uint64_t)row->inserted);
        break;
    case SURVEY_UNSERVED:
        set(s, &unserved, row->queue, row->kind, (double)row->available);
        break;
    case SURVEY_BESIDE:
        take_beside(s, before, row);
        break;
    case SURVEY_CLAIMED:
        raise_idle(s, row, row->idle_us);
        break;
    case SURVEY_MAP:
        take_map(s, row);
        break;
    }
}

/* ---- timing ---- */

static void on_timer(uv_timer_t *timer);

int64_t survey_wait_us(int64_t took_us, int64_t every_us)
{
    int64_t rest_us = REST_FACTOR * took_us;
    return rest_us > every_us ? rest_us : every_us;
}

static void wait_for_next(struct survey *s, int64_t took_us)
{
    int64_t wait_us = survey_wait_us(took_us, s->options.every_us);
    timer_start(&s->timer, on_timer, (uint64_t)(wait_us / US_PER_MS) + 1, 0);
}

static void fail(struct survey *s, const struct err *err)
{
    metric_add(metrics_series(s->options.registry, &failed, NULL, NULL), 1);
    if (complaint_due(&s->complaint, clock_boot_us())) {
        log_warn("survey_failed", LOG_TEXT("err", err->msg),
                 LOG_TEXT("action", "the gauges of the queues stay as they were"));
    }
}

static void on_surveyed(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    struct survey *s = ctx;
    if (s->is_stopping) {
        return;
    }
    wait_for_next(s, clock_boot_us() - s->begun_us);
    if (st != STATUS_OK) {
        fail(s, err);
        return;
    }
    log_recovered("survey_recovered", &s->complaint);
    forget(s->options.registry);
    const struct waitings before = s->waiting;
    s->waiting.count = 0;
    for (int i = 0; i < pg_row_count(results[SURVEY_RESULT]); i++) {
        struct survey_row row;
        survey_store_row(results[SURVEY_RESULT], i, &row);
        take_row(s, &before, &row);
    }
}

static void ask(struct survey *s)
{
    struct err err = {0};
    (void)uv_timer_stop(&s->timer);
    s->begun_us = clock_boot_us();
    if (survey_store_read(s->pg, s->options.limit_us + s->options.timeout_us, on_surveyed, s,
                          &err) != STATUS_OK) {
        fail(s, &err);
        wait_for_next(s, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

/* ---- starting and stopping ---- */

static void on_up(void *ctx)
{
    struct survey *s = ctx;
    if (s->begun_us == 0) {
        ask(s);
    }
}

void survey_metrics_init(struct metrics *registry)
{
    (void)metrics_series(registry, &failed, NULL, NULL);
}

enum status survey_start(const struct survey_options *options, struct survey **ret, struct err *err)
{
    struct survey *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the survey");
    }
    s->options = *options;
    struct pg_options pg = {.loop = options->loop,
                            .conninfo = options->conninfo,
                            .application_name = "claimd-scheduler survey",
                            .timeout_us = options->timeout_us,
                            .statement_timeout_ms = (int)(options->limit_us / US_PER_MS),
                            .on_up = on_up,
                            .ctx = s};
    enum status st = pg_open(&pg, &s->pg, err);
    if (st != STATUS_OK) {
        free(s);
        return st;
    }
    (void)uv_timer_init(options->loop, &s->timer);
    s->timer.data = s;
    *ret = s;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void survey_stop(struct survey *s)
{
    if (s == NULL) {
        return;
    }
    s->is_stopping = true;
    forget(s->options.registry);
    pg_close(s->pg);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}

/* ---- leading ---- */

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    const struct survey_options options = {.loop = env->loop,
                                           .registry = env->registry,
                                           .conninfo = env->conninfo,
                                           .timeout_us = env->config->postgres.timeout_us,
                                           .every_us = config_scaled(env->config, EVERY_US),
                                           .limit_us = config_scaled(env->config, LIMIT_US)};
    struct survey *s = NULL;
    enum status st = survey_start(&options, &s, err);
    *ret_self = s;
    return st;
}

static void on_stop(void *ctx)
{
    survey_stop(ctx);
}

const struct service survey_service = {
    .failed = "survey_failed", .start = on_lead, .stop = on_stop};
