/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/dispatch.h"

#include "base/clock.h"
#include "base/probe.h"
#include "base/timer.h"
#include "worker/intake/capacity.h"
#include "worker/jobs/jobs.h"
#include "worker/jobs/lease.h"

/* How much work a runner is given at once: many times the cost of a system call, but a short wait
 * for the jobs behind it. */
#define AT_ONCE_US 1000
/* At least so many of jobs that take up to a few milliseconds: with one at a time, the runner
 * stands still until the worker has processed each end, and the worker wakes for each. */
#define AT_ONCE_LEAST 4
#define AT_ONCE_MEAN_MAX_US 4000
/* How often the worker looks for results of runners and takes jobs back from slow ones. */
#define LOOK_MS 2
#define SLOW_US (2 * US_PER_MS)
#define WAIT_MAX_US (50 * US_PER_MS)
/* Larger jobs are sent alone. */
#define FRAME_ROOM 1024 /* of a frame, besides its texts; roughly */
#define BEHIND_BYTES_MAX (4096 + FRAME_ROOM)

/* ---- one job ---- */

static size_t text_len(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

static struct job_frame frame_of(const struct active_job *job)
{
    return (struct job_frame){.id = job->id,
                              .fence = job->fence,
                              .attempt = job->attempt,
                              .max_attempts = job->settings.max_attempts,
                              .timeout_us = job->settings.timeout_us,
                              .kind = job->kind,
                              .kind_len = strlen(job->kind),
                              .args = job->args,
                              .args_len = job->args_len,
                              .crashes = job->crashes,
                              .generation = job->generation,
                              .created_at_us = job->created_at_unix_us,
                              .queue = job->queue,
                              .queue_len = strlen(job->queue),
                              .tags = job->tags,
                              .tags_len = text_len(job->tags),
                              .metadata = job->metadata,
                              .metadata_len = text_len(job->metadata),
                              .checkpoint = job->checkpoint,
                              .checkpoint_len = text_len(job->checkpoint),
                              .predecessors = job->predecessors,
                              .predecessors_len = text_len(job->predecessors)};
}

static void give(struct jobs *j, struct slot *slot, struct active_job *job, int64_t now_us)
{
    struct job_frame frame = frame_of(job);
    job->slot = slot;
    job->started_us = now_us;
    (void)active_step(j->env.active, job, ON_SENT);
    job->nonce = slot_run(slot, &frame, run_kill_at_us(j, job, now_us), job);
    if (slot_present(slot) == job) {
        run_begun(j, job, now_us);
    }
    probe("W6");
}

/* A job that takes few bytes in PostgreSQL may be long as text (a large exponent, compressible
 * text, many empty tags). No runner can ever take it, so it fails for good, with the reason. */
static bool fails_unstarted(struct jobs *j, struct active_job *job)
{
    struct err why = {0};
    struct job_frame frame = frame_of(job);
    if (job_frame_check(&frame, &why) == STATUS_OK) {
        return false;
    }
    run_fail(j, job, &why);
    return true;
}

/* If the kind was withdrawn after the claim, the runners that are free now may not have it. */
static bool is_served(const struct jobs *j, struct active_job *job)
{
    if (job->kinds_generation != j->env.kinds->generation) {
        job->kinds_generation =
            kind_set_find(&j->env.kinds->served, job->kind) != NULL ? j->env.kinds->generation : 0;
    }
    return job->kinds_generation != 0;
}

/* If the lease ended while the job waited for a runner, another worker may get the job soon. */
static bool may_start(const struct jobs *j, struct active_job *job, int64_t now_us)
{
    return is_served(j, job) && job->cancel_us == 0 && lease_is_held(job, now_us);
}

/* Returns the next job that may start; hands back those ahead of it that may not. */
static struct active_job *next_startable(struct jobs *j, int64_t now_us)
{
    struct active_job *job = NULL;
    while ((job = j->env.active->ready) != NULL && !may_start(j, job, now_us)) {
        run_hand_back(j, active_take_ready(j->env.active));
    }
    return job;
}

/* ---- all jobs ---- */

static bool is_idle(const struct slot *s)
{
    return slot_state(s) == SLOT_IDLE;
}

/* Returns how many jobs each runner should have, if the ready ones are shared out. */
static size_t jobs_each(const struct jobs *j)
{
    int64_t mean_us = j->env.lengths->mean_us;
    if (mean_us <= 0 || mean_us > AT_ONCE_MEAN_MAX_US) {
        return 1;
    }
    size_t most = (size_t)(AT_ONCE_US / mean_us);
    most = most > AT_ONCE_LEAST ? most : AT_ONCE_LEAST;
    most = most < RUNNER_DEPTH ? most : RUNNER_DEPTH;
    size_t each = 1 + j->env.active->count[ACTIVE_READY] / j->env.slots->count;
    return each < most ? each : most;
}

static size_t frame_bytes(const struct active_job *job)
{
    return job->args_len + text_len(job->tags) + text_len(job->metadata) +
           text_len(job->checkpoint) + text_len(job->predecessors) + FRAME_ROOM;
}

/* The job before it may write over the shared page, and then it is unknown whether this one has
 * begun. So a job may not wait if it would be charged when in doubt, nor behind one that has a
 * strike. */
static bool may_wait_in(struct slot *s, const struct active_job *job, int64_t now_us)
{
    const struct active_job *present = slot_present(s);
    size_t bytes = frame_bytes(job);
    bool is_charged_in_doubt = job->settings.at_most_once || job_strikes(job->flags) > 0 ||
                               job->attempt >= job->settings.max_attempts;
    return !is_charged_in_doubt && (present == NULL || job_strikes(present->flags) == 0) &&
           bytes <= BEHIND_BYTES_MAX && lengths_is_short(job->length, now_us) &&
           slot_takes(s, job->kind, bytes);
}

static void fill_up(struct jobs *j, struct slot *s, size_t wanted, int64_t now_us)
{
    size_t has = slot_waiting(s) + 1;
    if (has > wanted / 2) {
        return; /* later, with more jobs at a time */
    }
    while (has < wanted && next_startable(j, now_us) != NULL &&
           may_wait_in(s, j->env.active->ready, now_us)) {
        give(j, s, active_take_ready(j->env.active), now_us);
        has++;
    }
}

static void on_look(uv_timer_t *timer);

void dispatch_jobs(struct jobs *j)
{
    int64_t now = clock_boot_us();
    if (j->env.standing->stage != WORKER_RUNNING || j->env.active->ready == NULL ||
        j->env.slots->count == 0) {
        return; /* waiting jobs are handed back when the worker drains (lock.F4) */
    }
    for (size_t i = 0; i < j->env.slots->count; i++) {
        while (is_idle(j->env.slots->list[i]) && next_startable(j, now) != NULL) {
            struct active_job *job = active_take_ready(j->env.active);
            if (!fails_unstarted(j, job)) {
                give(j, j->env.slots->list[i], job, now);
            }
        }
    }
    size_t wanted = jobs_each(j);
    size_t waiting = 0;
    for (size_t i = 0; i < j->env.slots->count; i++) {
        if (slot_state(j->env.slots->list[i]) == SLOT_BUSY && wanted > 1) {
            fill_up(j, j->env.slots->list[i], wanted, now);
        }
        slot_flush(j->env.slots->list[i]);
        waiting += slot_waiting(j->env.slots->list[i]);
    }
    if (waiting > 0 && !uv_is_active((uv_handle_t *)&j->dispatch.timer)) {
        timer_start(&j->dispatch.timer, on_look, LOOK_MS, LOOK_MS);
    }
}

/* True if the slot's current job is short and has not been running for long. */
static bool is_soon_idle(const struct jobs *j, struct slot *slot, int64_t now_us)
{
    const struct active_job *job = slot_present(slot);
    return job == NULL || (lengths_is_short(job->length, now_us) &&
                           now_us - job->started_us <= lengths_max_us(j->env.lengths));
}

void dispatch_count_runners(const struct jobs *j, int64_t now_us, struct capacity_facts *f)
{
    for (size_t i = 0; i < j->env.slots->count; i++) {
        struct slot *slot = j->env.slots->list[i];
        enum slot_state s = slot_state(slot);
        f->runners += s == SLOT_IDLE || (s == SLOT_BUSY && is_soon_idle(j, slot, now_us));
        f->idle += s == SLOT_IDLE ? 1U : 0U;
        f->ready += slot_waiting(slot);
    }
}

/* ---- taking back ---- */

static int64_t present_since_us(struct slot *s)
{
    const struct active_job *job = slot_present(s);
    return job == NULL ? INT64_MAX : job->started_us;
}

static bool is_any_idle(const struct jobs *j)
{
    for (size_t i = 0; i < j->env.slots->count; i++) {
        if (is_idle(j->env.slots->list[i])) {
            return true;
        }
    }
    return false;
}

static void take_back_older(struct jobs *j, int64_t than_us)
{
    for (size_t i = 0; i < j->env.slots->count; i++) {
        if (slot_waiting(j->env.slots->list[i]) > 0 &&
            present_since_us(j->env.slots->list[i]) < than_us) {
            slot_take_back(j->env.slots->list[i]);
        }
    }
}

static void on_look(uv_timer_t *timer)
{
    struct jobs *j = timer->data;
    size_t waiting = 0;
    for (size_t i = 0; i < j->env.slots->count; i++) {
        if (slot_waiting(j->env.slots->list[i]) > 0) {
            slot_take_results(j->env.slots->list[i]);
        }
    }
    if (j->env.active->ready == NULL && is_any_idle(j)) {
        take_back_older(j, clock_boot_us() - SLOW_US);
    }
    for (size_t i = 0; i < j->env.slots->count; i++) {
        waiting += slot_waiting(j->env.slots->list[i]);
    }
    if (waiting == 0) {
        (void)uv_timer_stop(timer);
    }
    j->env.due->dispatch = true;
}

void dispatch_take_results(struct jobs *j)
{
    for (size_t i = 0; i < j->env.slots->count; i++) {
        if (slot_state(j->env.slots->list[i]) == SLOT_BUSY) {
            slot_take_results(j->env.slots->list[i]);
        }
    }
}

void dispatch_tick(struct jobs *j, int64_t now_us)
{
    take_back_older(j, j->env.standing->stage == WORKER_RUNNING ? now_us - WAIT_MAX_US : INT64_MAX);
}

/* ---- life ---- */

enum status dispatch_open(struct jobs *j, struct err *err)
{
    return timer_open(j->env.servers->loop, &j->dispatch.timer, j, "dispatch", err);
}

void dispatch_close(struct jobs *j)
{
    uv_close((uv_handle_t *)&j->dispatch.timer, NULL);
}
