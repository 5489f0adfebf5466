/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/run.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/probe.h"
#include "base/recorder.h"
#include "worker/intake/capacity.h"
#include "worker/jobs/jobs.h"
#include "worker/jobs/lease.h"
#include "worker/jobs/outcome.h"

#include <assert.h>
#include <stdio.h>

#define READY_WAIT_MAX_US (1 * US_PER_S)
#define RUNNERS_QUIET_US (60 * US_PER_S)

/* ---- the reply to a finish ---- */

static const char *const verdict_texts[] = {[FINISH_ACCEPTED] = "accepted",
                                            [FINISH_ALREADY] = "accepted before",
                                            [FINISH_STALE] = "stale",
                                            [FINISH_REFUSED] = "result refused"};

/* The context of a finish until its reply: the job, and the fields of its log line. */
struct finish_wait {
    struct jobs *jobs;
    int64_t id;
    int64_t fence;
    const char *outcome; /* a literal */
    int64_t ran_us;
    int64_t ended_us;
    bool is_handed_back;
};

static const char *outcome_text(const struct finish_wait *f, const struct finish_reply *reply)
{
    if (f->outcome != NULL) {
        return f->outcome;
    }
    if (reply->verdict == FINISH_REFUSED) { /* the job failed, whatever its handler returned */
        return "failed";
    }
    return f->is_handed_back ? "uncharged" : "done";
}

/* Successful jobs are counted (claimd_jobs_finished_total); a log line for each would drown the
 * others. */
static enum log_level finished_level(const struct finish_reply *reply, bool is_failed)
{
    if (reply->verdict != FINISH_ACCEPTED && reply->verdict != FINISH_ALREADY) {
        return LOG_WARN;
    }
    return reply->kind == FINISH_COMPLETED && !is_failed ? LOG_DEBUG : LOG_INFO;
}

static void log_finished(const struct finish_wait *f, const struct active_job *job,
                         const struct finish_reply *reply)
{
    const struct finish_kind_facts *kind = &finish_kinds[reply->kind];
    bool is_failed = (f->outcome != NULL && !kind->is_wanted) || reply->verdict == FINISH_REFUSED;
    const char *event = is_failed ? "job_failed" : "job_finished";
    log_at(finished_level(reply, is_failed), event, LOG_I64("job", f->id),
           LOG_TEXT("kind", job->kind), LOG_I64("attempt", job->attempt),
           LOG_I64("fence", f->fence), LOG_TEXT("state", kind->name),
           LOG_TEXT("outcome", outcome_text(f, reply)),
           LOG_TEXT("verdict", verdict_texts[reply->verdict]), LOG_I64("ran_us", f->ran_us));
}

static void count_finished(struct jobs *j, const struct finish_wait *f,
                           const struct active_job *job, const struct finish_reply *reply)
{
    metric_observe_us(j->env.metrics->finish, clock_boot_us() - f->ended_us);
    if (reply->verdict != FINISH_STALE) {
        metric_add(job->metrics->finished[reply->kind], 1);
    }
    if (reply->verdict != FINISH_STALE && reply->kind == FINISH_COMPLETED) {
        metric_observe(job->metrics->attempts, (double)job->attempt);
    }
}

static void on_finished(void *ctx, const struct finish_reply *reply)
{
    autofree struct finish_wait *f = ctx;
    struct jobs *j = f->jobs;
    struct active_job *job = active_find(j->env.active, f->id);
    assert(job != NULL && job->fence == f->fence && active_phase(job) == ACTIVE_FINISHING);
    probe("W9");
    record(finish_kinds[reply->kind].recorded_as, reply->verdict == FINISH_STALE ? "stale" : "ok",
           RECORD_I64("job", f->id), RECORD_I64("f", f->fence),
           RECORD_I64("final", reply->kind == FINISH_DISCARDED || reply->kind == FINISH_CANCELLED),
           RECORD_I64("again", reply->verdict == FINISH_ALREADY));
    log_finished(f, job, reply);
    count_finished(j, f, job, reply);
    job->is_returned = f->is_handed_back && !SEEDED_BUG(15) &&
                       (reply->verdict == FINISH_ACCEPTED || reply->verdict == FINISH_ALREADY);
    lease_release(job);
    active_end(j->env.active, job);
}

/* The finish can't be queued. The job stays running in PostgreSQL under a fence that no heartbeat
 * names any more, and the leader's full pass rescues it (ARCHITECTURE §4.3). */
static void give_up(struct jobs *j, struct active_job *job, const struct err *why)
{
    log_error("job_refused", LOG_I64("job", job->id), LOG_TEXT("err", why->msg));
    if (job->batch != NULL) {
        redlock_batch_drop(job->batch, job->lease_index);
    }
    active_remove(j->env.active, job);
}

/* Starts the error with "poison", so that these jobs can be found among the discarded ones. */
static void call_poison(char text[JOB_ERROR_MAX + 1], const struct run_facts *facts,
                        struct job_finish *finish)
{
    (void)snprintf(text, JOB_ERROR_MAX + 1, "poison, crash %d of %d: %.*s", facts->crashes + 1,
                   facts->settings.max_crashes, (int)finish->error_len, finish->error);
    finish->error = text;
    finish->error_len = strlen(text);
}

/* True if the end frees nothing that others may wait for (a key, a place, a batch, jobs after it),
 * and the job would only run again if this worker died now. */
static bool may_group(const struct jobs *j, const struct active_job *job, enum finish_kind kind)
{
    return kind == FINISH_COMPLETED && job->flags == 0 && !job->settings.at_most_once &&
           j->env.standing->stage == WORKER_RUNNING;
}

static void finish(struct jobs *j, struct active_job *job, const struct run_facts *facts,
                   struct job_finish *finish)
{
    struct err err = {0};
    char text[JOB_ERROR_MAX + 1];
    struct run_verdict v = run_verdict(facts);
    if (v.is_poison && finish->error != NULL) {
        call_poison(text, facts, finish);
    }
    if (v.kind == FINISH_CANCELLED && finish->error == NULL) {
        finish->error = facts->end == RUN_END_NOT_STARTED ? "cancelled before it started"
                                                          : "cancelled while it ran";
        finish->error_len = strlen(finish->error);
    }
    (void)active_step(j->env.active, job, ON_END);
    struct finish_wait *wait = malloc(sizeof *wait);
    if (wait == NULL) {
        (void)err_fail(&err, STATUS_NOMEM, "finish");
        give_up(j, job, &err);
        return;
    }
    *wait = (struct finish_wait){.jobs = j,
                                 .id = job->id,
                                 .fence = job->fence,
                                 .outcome = v.outcome,
                                 .ended_us = clock_boot_us(),
                                 .is_handed_back = v.kind == FINISH_HAND_BACK};
    if (job->started_us > 0) {
        wait->ran_us = wait->ended_us - job->started_us;
    }
    finish->id = job->id;
    finish->fence = job->fence;
    finish->attempt = job->attempt;
    finish->worker_id = job->worker_id;
    finish->attempted_at_unix_us = job->attempted_at_unix_us;
    finish->kind = v.kind;
    finish->outcome = v.outcome;
    finish->delay_us = v.delay_us;
    finish->crashed = v.crashed;
    finish->flags = job->flags;
    finish->key_row = job->key_row;
    finish->second_row = job->second_row;
    finish->place = job->place;
    finish->may_group = may_group(j, job, v.kind);
    finish->has_live = active_has_live(job);
    finish->is_unkept = job->settings.keeps_none;
    finish->keeps_log = job->settings.keeps_log;
    probe("W7");
    record(finish_kinds[v.kind].recorded_as, "inv", RECORD_I64("job", job->id),
           RECORD_I64("f", job->fence));
    if (job_store_finish(j->env.servers->store, finish, on_finished, wait, &err) != STATUS_OK) {
        free(wait);
        give_up(j, job, &err);
        return;
    }
    probe("W8");
}

void run_hand_back(struct jobs *j, struct active_job *job)
{
    struct run_facts facts = {.end = RUN_END_NOT_STARTED, .is_cancelled = job->cancel_us > 0};
    struct job_finish none = {0};
    finish(j, job, &facts, &none);
}

void run_fail(struct jobs *j, struct active_job *job, const struct err *why)
{
    struct run_facts facts = {.end = RUN_END_UNFIT,
                              .is_cancelled = job->cancel_us > 0,
                              .attempt = job->attempt,
                              .crashes = job->crashes,
                              .settings = job->settings,
                              .retry_after_us = -1};
    struct job_finish f = {.error = why->msg, .error_len = strlen(why->msg)};
    finish(j, job, &facts, &f);
}

void run_end_leaving(struct jobs *j)
{
    struct active_job *job;
    while ((job = active_take_leaving(j->env.active)) != NULL) {
        if (job->too_long == NULL) {
            run_hand_back(j, job);
            continue;
        }
        struct err why = {0};
        err_set(&why, STATUS_LIMIT, 0, "%s: too long for a handler", job->too_long);
        run_fail(j, job, &why);
    }
}

int64_t run_kill_at_us(const struct jobs *j, const struct active_job *job, int64_t now_us)
{
    struct danger_facts facts = deadlines_facts(j, job);
    return danger_verdict(&facts, &j->deadlines.limits, now_us).kill_at_us;
}

void run_limit_all(struct jobs *j, int64_t now_us)
{
    for (struct active_job *job = j->env.active->by_id; job != NULL; job = job->hh.next) {
        if (active_phase(job) == ACTIVE_RUNNING) {
            slot_limit(job->slot, job->nonce, run_kill_at_us(j, job, now_us));
        }
    }
}

/* ---- ends of runs ---- */

/* The runner's own timer may have fired first (fault.A4), or the worker's loop was stopped for long
 * (fault.A3). */
static bool is_past_kill(const struct jobs *j, const struct active_job *job)
{
    struct danger_facts facts = deadlines_facts(j, job);
    struct danger_verdict v = danger_verdict(&facts, &j->deadlines.limits, clock_boot_us());
    return v.action == DANGER_KILL && v.reason == DANGER_LEASE;
}

static enum run_end end_of(const struct jobs *j, const struct active_job *job,
                           const struct slot_run *run)
{
    if (run->end != RUN_END_CRASHED) {
        return run->end;
    }
    if ((job->stops & RUN_KILLED) != 0 || is_past_kill(j, job)) {
        return RUN_END_KILLED;
    }
    return (job->stops & RUN_TIMED_OUT) != 0 ? RUN_END_TIMEOUT : RUN_END_CRASHED;
}

void run_begun(struct jobs *j, struct active_job *job, int64_t now_us)
{
    if (job->state == STATE_BEGUN) {
        return;
    }
    (void)active_step(j->env.active, job, ON_BEGUN);
    job->started_us = now_us;
    record("run", "inv", RECORD_I64("job", job->id), RECORD_I64("f", job->fence),
           RECORD_I64("att", job->attempt), RECORD_I64("once", job->settings.at_most_once));
}

/* Returns how long the job ran, as its runner reports it, but at most the time since
 * job->started_us, because the runner may be wrong. */
static int64_t ran_us(const struct active_job *job, const struct result_frame *result)
{
    int64_t most_us = clock_boot_us() - job->started_us;
    return result->ran_us < most_us ? result->ran_us : most_us;
}

/* The job may have waited behind others in its runner. */
static void set_started(struct jobs *j, struct active_job *job, const struct slot_run *run)
{
    run_begun(j, job, job->started_us);
    if (run->result != NULL) {
        job->started_us = clock_boot_us() - ran_us(job, run->result);
    }
}

/* Call after set_started(). The mean covers only short kinds, since only these are claimed
 * ahead. */
static void take_length(struct jobs *j, const struct active_job *job)
{
    int64_t now_us = clock_boot_us();
    if (job->length != NULL) {
        lengths_ran(j->env.lengths, job->length, now_us - job->started_us, now_us);
    }
    if (lengths_is_short(job->length, now_us)) {
        j->env.lengths->mean_us = capacity_mean(j->env.lengths->mean_us, now_us - job->started_us);
    }
}

/* Returns what is stored of the run: its result or error, and its log. */
static struct job_finish texts_of(const struct jobs *j, const struct active_job *job,
                                  const struct run_facts *facts, const struct slot_run *run)
{
    struct job_finish f = {0};
    if (run->result != NULL) {
        const struct result_frame *r = run->result;
        f.result = r->result_len > 0 ? r->result : NULL;
        f.result_len = r->result_len;
        f.error = r->error_len > 0 ? r->error : NULL;
        f.error_len = r->error_len;
        f.log_tail = r->log_tail_len > 0 ? r->log_tail : NULL;
        f.log_tail_len = r->log_tail_len;
    } else if (run->text != NULL) {
        f.error = facts->end == RUN_END_TIMEOUT ? "timeout: the handler did not stop" : run->text;
        if (cancel_is_kill_due(j, job, clock_boot_us())) {
            f.error = "cancelled while it ran: the handler did not stop and was killed";
        }
        f.error_len = strlen(f.error);
        f.log_tail = run->log_tail_len > 0 ? run->log_tail : NULL;
        f.log_tail_len = run->log_tail_len;
    }
    return f;
}

void run_on_ended(void *jobs, struct slot *slot, void *user, const struct slot_run *run)
{
    struct jobs *j = jobs;
    struct active_job *job = user;
    assert(job->slot == slot && active_phase(job) == ACTIVE_RUNNING);
    struct run_facts facts = {.end = end_of(j, job, run),
                              .stops = job->stops,
                              .is_cancelled = job->cancel_us > 0,
                              .attempt = job->attempt,
                              .crashes = job->crashes,
                              .strikes = job_strikes(job->flags),
                              .settings = job->settings,
                              .retry_after_us = -1,
                              .jitter_unit = (int)rand_below(j->env.rand, 1001)};
    if (run->result != NULL) {
        facts.said = (enum claimd_outcome)run->result->outcome;
        facts.retry_after_us = run->result->retry_after_us;
    }
    bool is_done = facts.end == RUN_END_SAID && facts.said == CLAIMD_DONE;
    live_take_end(j, job, is_done);
    set_started(j, job, run);
    if (facts.end != RUN_END_NOT_STARTED) {
        take_length(j, job);
        metric_observe_us(job->metrics->run, clock_boot_us() - job->started_us);
    }
    job->slot = NULL;
    record("run", is_done ? "ok" : "fail", RECORD_I64("job", job->id), RECORD_I64("f", job->fence),
           RECORD_TEXT("end", run_recorded_as(&facts)));
    metric_add(job->metrics->timeouts, facts.end == RUN_END_TIMEOUT ? 1 : 0);
    struct job_finish f = texts_of(j, job, &facts, run);
    f.overran = is_done && (job->stops & RUN_TIMED_OUT) != 0;
    finish(j, job, &facts, &f);
}

void run_on_room(void *jobs, struct slot *slot)
{
    struct jobs *j = jobs;
    struct active_job *next = slot_present(slot);
    if (next != NULL) {
        run_begun(j, next, clock_boot_us());
    }
    j->env.due->dispatch = true;
    j->env.due->room = true;
}

void run_on_returned(void *jobs, struct slot *slot, void *user)
{
    struct jobs *j = jobs;
    struct active_job *job = user;
    (void)slot;
    assert(job->slot == slot && job->state == STATE_SENT);
    job->slot = NULL;
    job->started_us = 0;
    active_push_ready(j->env.active, job);
}

void run_on_died(void *jobs, struct slot *slot, int pid, const char *text)
{
    struct jobs *j = jobs;
    metric_add(j->env.metrics->runner_deaths, slot_died_by_itself(slot) ? 1 : 0);
    if (complaint_due(&j->runs.died_complaint, clock_boot_us())) {
        log_warn("runner_died", LOG_I64("pid", pid), LOG_TEXT("err", text),
                 LOG_I64("deaths", j->runs.died_complaint.count));
    }
}

/* ---- timer work ---- */

/* Hands back jobs that were claimed ahead and have waited too long because runs take longer than
 * before; then claims nothing ahead until many short runs have ended. */
static void hand_back_waiting(struct jobs *j, int64_t now)
{
    int64_t before_us =
        j->env.standing->stage == WORKER_RUNNING ? now - READY_WAIT_MAX_US : INT64_MAX;
    struct active_job *job;
    while ((job = active_take_waiting(j->env.active, before_us)) != NULL) {
        if (j->env.lengths->mean_us < READY_WAIT_MAX_US) {
            j->env.lengths->mean_us = READY_WAIT_MAX_US;
        }
        log_info("job_waited", LOG_I64("job", job->id), LOG_TEXT("kind", job->kind),
                 LOG_I64("waited_us", now - job->since_us));
        run_hand_back(j, job);
    }
}

/* Results that PostgreSQL does not accept now are kept and tried again; the log must say so
 * (ARCHITECTURE §4.9). */
static void log_kept_results(struct jobs *j, int64_t now)
{
    const struct err *trouble = job_store_trouble(j->env.servers->store);
    if (trouble == NULL) {
        int64_t complaints = complaint_end(&j->runs.kept_complaint);
        if (complaints > 0) {
            log_info("results_settled", LOG_I64("refusals", complaints));
        }
    } else if (complaint_due(&j->runs.kept_complaint, now)) {
        log_error("results_kept", LOG_I64("jobs", job_store_waiting(j->env.servers->store)),
                  LOG_TEXT("err", trouble->msg), LOG_TEXT("action", "trying again"));
    }
}

/* One death needs no recovery line; after several, log once that they have stopped. */
static void log_runners_recovered(struct jobs *j, int64_t now)
{
    if (!complaint_is_quiet(&j->runs.died_complaint, now, RUNNERS_QUIET_US)) {
        return;
    }
    if (j->runs.died_complaint.count == 1) {
        (void)complaint_end(&j->runs.died_complaint);
    } else {
        log_recovered("runners_recovered", &j->runs.died_complaint);
    }
}

void run_tick(struct jobs *j, int64_t now_us)
{
    hand_back_waiting(j, now_us);
    j->env.due->dispatch = true;
    log_kept_results(j, now_us);
    log_runners_recovered(j, now_us);
}
