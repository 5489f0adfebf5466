/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker_metrics.h"

#include "worker/membership/kind_set.h"

#include <assert.h>
#include <stdio.h>

static const double claim_sizes[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 0};

static const struct metric_family finished = {.name = "claimd_jobs_finished_total",
                                              .help = "Ends of jobs that PostgreSQL has accepted.",
                                              .type = METRIC_COUNTER,
                                              .labels = {"queue", "kind", "outcome"}};
/* Fewer bounds than for other durations, since there is a series for each queue and kind. */
static const double waits[] = {0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 60, 300, 1800, 3600, 0};
static const struct metric_family waited = {.name = "claimd_job_wait_seconds",
                                            .help = "From due to claimed, by PostgreSQL's clock.",
                                            .type = METRIC_HISTOGRAM,
                                            .labels = {"queue", "kind"},
                                            .bounds = waits};
static const struct metric_family timeouts = {.name = "claimd_job_timeouts_total",
                                              .help = "Runs that were killed at their timeout.",
                                              .type = METRIC_COUNTER,
                                              .labels = {"queue", "kind"}};
static const double attempts_bounds[] = {1, 2, 3, 5, 10, 25, 0};
static const struct metric_family attempts = {.name = "claimd_job_attempts",
                                              .help = "Attempts that a completed job has taken.",
                                              .type = METRIC_HISTOGRAM,
                                              .labels = {"kind"},
                                              .bounds = attempts_bounds};
static const struct metric_family run = {.name = "claimd_job_run_seconds",
                                         .help = "From handed to a runner to ended.",
                                         .type = METRIC_HISTOGRAM,
                                         .labels = {"kind"}};
static const struct metric_family refused = {.name = "claimd_claims_refused_total",
                                             .help = "Ids that were not claimed.",
                                             .type = METRIC_COUNTER,
                                             .labels = {"reason"}};
static const struct metric_family jobs = {.name = "claimd_worker_jobs",
                                          .help = "Active jobs of this worker, by phase.",
                                          .type = METRIC_GAUGE,
                                          .labels = {"phase"}};

/* Families without a label: one series each, stored at `offset`. */
static const struct single {
    struct metric_family family;
    size_t offset;
} singles[] = {
    {{.name = "claimd_hints_popped_total", .help = "Ids taken from Redis.", .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, popped)},
    {{.name = "claimd_hints_put_back_total",
      .help = "Ids given back to Redis.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, put_back)},
    {{.name = "claimd_hints_junk_total",
      .help = "Members of hint sets that were no ids; they were dropped.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, junk)},
    {{.name = "claimd_pops_lost_total",
      .help = "Pops whose answer was lost.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, pops_lost)},
    {{.name = "claimd_jobs_claimed_total",
      .help = "Claims won in PostgreSQL.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, claimed)},
    {{.name = "claimd_stale_writes_refused_total",
      .help = "Ends that came too late: the job had moved on, nothing was changed.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, stale)},
    {{.name = "claimd_results_refused_total",
      .help = "Results that PostgreSQL would not store.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, results_refused)},
    {{.name = "claimd_leases_lost_total",
      .help = "Leases that could not be extended in time.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, leases_lost)},
    {{.name = "claimd_runner_deaths_total",
      .help = "Runners that ended by themselves.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, runner_deaths)},
    {{.name = "claimd_lock_seconds",
      .help = "One round that locks the popped jobs.",
      .type = METRIC_HISTOGRAM},
     offsetof(struct worker_metrics, lock)},
    {{.name = "claimd_claim_seconds",
      .help = "One claim in PostgreSQL, including its wait for the previous commit.",
      .type = METRIC_HISTOGRAM},
     offsetof(struct worker_metrics, claim)},
    {{.name = "claimd_finish_seconds",
      .help = "From ended to committed.",
      .type = METRIC_HISTOGRAM},
     offsetof(struct worker_metrics, finish)},
    {{.name = "claimd_claim_batch_jobs",
      .help = "Jobs per claim.",
      .type = METRIC_HISTOGRAM,
      .bounds = claim_sizes},
     offsetof(struct worker_metrics, batch)},
    {{.name = "claimd_worker_slots",
      .help = "Jobs that can run at the same time.",
      .type = METRIC_GAUGE},
     offsetof(struct worker_metrics, slots)},
    {{.name = "claimd_worker_slots_busy", .help = "Jobs that run now.", .type = METRIC_GAUGE},
     offsetof(struct worker_metrics, slots_busy)},
    {{.name = "claimd_runners_cpu_seconds_total",
      .help = "CPU time of its runners, those that have ended included.",
      .type = METRIC_COUNTER},
     offsetof(struct worker_metrics, runners_cpu)},
    {{.name = "claimd_runners_resident_memory_bytes",
      .help = "Memory of its runners; pages that they share count once for each.",
      .type = METRIC_GAUGE},
     offsetof(struct worker_metrics, runners_memory)},
    {{.name = "claimd_worker_kinds_served",
      .help = "Kinds whose jobs it can run, with those that are paused.",
      .type = METRIC_GAUGE},
     offsetof(struct worker_metrics, kinds_served)},
    {{.name = "claimd_worker_plugins_refused",
      .help =
          "Files of worker.plugin_dir and worker.handlers that are not served; the log says why.",
      .type = METRIC_GAUGE},
     offsetof(struct worker_metrics, plugins_refused)},
    {{.name = "claimd_worker_draining", .help = "1: it is stopping.", .type = METRIC_GAUGE},
     offsetof(struct worker_metrics, draining)},
};

static void open_singles(struct worker_metrics *m)
{
    for (size_t i = 0; i < ARRAY_COUNT(singles); i++) {
        struct metric *series = metrics_series(m->registry, &singles[i].family, NULL, NULL);
        memcpy((char *)m + singles[i].offset, &series, sizeof series);
    }
}

static struct kind_metrics *add_kind(struct worker_metrics *m, const char *queue, const char *kind)
{
    static_assert(WORKER_METRICS_KINDS_MAX > KIND_SET_MAX,
                  "all that it may serve of one queue at once");
    assert(m->kind_count < WORKER_METRICS_KINDS_MAX);
    struct kind_metrics *k = &m->kinds[m->kind_count++];
    (void)snprintf(k->queue, sizeof k->queue, "%s", queue);
    (void)snprintf(k->kind, sizeof k->kind, "%s", kind);
    for (size_t i = 0; i < FINISH_KIND_COUNT; i++) {
        const char *const values[METRIC_LABELS_MAX] = {queue, kind, finish_kinds[i].name};
        k->finished[i] = metrics_series_of(m->registry, &finished, values);
    }
    k->timeouts = metrics_series(m->registry, &timeouts, queue, kind);
    k->wait = metrics_series(m->registry, &waited, queue, kind);
    k->run = metrics_series(m->registry, &run, kind, NULL);
    k->attempts = metrics_series(m->registry, &attempts, kind, NULL);
    return k;
}

void worker_metrics_init(struct worker_metrics *m, struct metrics *registry,
                         const struct config *config)
{
    static const char *const reasons[] = {
        [REFUSED_HELD] = "held",           [REFUSED_SPLIT] = "split",
        [REFUSED_NO_QUORUM] = "no_quorum", [REFUSED_EXPIRED] = "expired",
        [REFUSED_GONE] = "gone",           [REFUSED_LOCKED] = "locked",
        [REFUSED_UNSERVED] = "unserved",   [REFUSED_LIMITED] = "limited",
        [REFUSED_NOT_TRIED] = "not_tried"};
    static const char *const phases[] = {
        [ACTIVE_LOCKING] = "locking",   [ACTIVE_CLAIMING] = "claiming",
        [ACTIVE_FETCHING] = "fetching", [ACTIVE_READY] = "ready",
        [ACTIVE_RUNNING] = "running",   [ACTIVE_FINISHING] = "finishing"};
    m->registry = registry;
    daemon_metrics_init(&m->daemon, registry, config);
    open_singles(m);
    for (size_t i = 0; i < ARRAY_COUNT(reasons); i++) {
        m->refused[i] = metrics_series(registry, &refused, reasons[i], NULL);
    }
    for (size_t i = 0; i < ARRAY_COUNT(phases); i++) {
        m->jobs[i] = metrics_series(registry, &jobs, phases[i], NULL);
    }
}

static bool is_of(const struct kind_metrics *k, const char *queue, const char *kind)
{
    return strcmp(k->kind, kind) == 0 && strcmp(k->queue, queue) == 0;
}

static struct kind_metrics *find_kind(struct worker_metrics *m, const char *queue, const char *kind)
{
    for (size_t i = 0; i < m->kind_count; i++) {
        if (is_of(&m->kinds[i], queue, kind)) {
            return &m->kinds[i];
        }
    }
    return NULL;
}

/* Checks the last kind first, since jobs of one kind usually come in a row. */
struct kind_metrics *worker_metrics_kind(struct worker_metrics *m, const char *queue,
                                         const char *kind)
{
    if (m->last_kind != NULL && is_of(m->last_kind, queue, kind)) {
        return m->last_kind;
    }
    struct kind_metrics *k = find_kind(m, queue, kind);
    if (k == NULL && m->kind_count == WORKER_METRICS_KINDS_MAX - 1) {
        queue = WORKER_METRICS_KIND_MORE;
        kind = WORKER_METRICS_KIND_MORE;
        k = find_kind(m, queue, kind);
    }
    m->last_kind = k != NULL ? k : add_kind(m, queue, kind);
    return m->last_kind;
}
