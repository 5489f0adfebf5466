/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/claim.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "base/recorder.h"
#include "model/hint.h"
#include "worker/intake/intake.h"
#include "worker/jobs/lease.h"

#include <assert.h>
#include <stdio.h>

#define AHEAD_PAUSE_US (100 * US_PER_MS)

/* ---- refused jobs ---- */

/* The hint's score holds the job's rank (docs/decisions/0016) and is kept; the row's due time is on
 * another scale. A job that an edit has moved elsewhere gets a new score. */
static int64_t score_to_keep(const struct active_job *job, const char *queue, int priority,
                             int64_t ready_unix_us)
{
    bool is_moved = strcmp(job->queue, queue) != 0 || priority < hint_score_priority(job->score);
    return is_moved ? hint_score(priority, ready_unix_us) : job->score;
}

static bool serves(const struct intake *in, const char *kind)
{
    return kind_set_find(&in->env.kinds->served, kind) != NULL;
}

static enum refusal refusal_of(const struct intake *in, const struct refused_job *r)
{
    switch (r->why) {
    case CLAIM_GONE:
    case CLAIM_LATER:
        return REFUSED_GONE;
    case CLAIM_LIMITED:
    case CLAIM_QUEUE_FULL:
        return REFUSED_LIMITED;
    case CLAIM_PUT_BACK:
        return r->kind == NULL || serves(in, r->kind) ? REFUSED_LOCKED : REFUSED_UNSERVED;
    case CLAIM_NOT_TRIED:
        break;
    }
    return REFUSED_NOT_TRIED;
}

/* There is nothing to release yet: the lock's verdict has not arrived. If an edit has moved the
 * job, the next worker that takes its hint finds that out. */
static void refused_before_lock(struct intake *in, struct active_job *job, enum claim_refusal why)
{
    job->refused = why;
    if (why == CLAIM_NOT_TRIED) {
        room_pause(in);
    }
}

/* If too many are refused, the keys of this job are most likely asked for already. */
static void ask_for_next(struct intake *in, const struct active_job *job)
{
    question_add(&in->questions[QUESTION_NEXT], &(struct hint){.id = job->id, .queue = job->queue});
}

static void let_refused_go(struct intake *in, struct active_job *job)
{
    if (job->refused == CLAIM_LIMITED) {
        ask_for_next(in, job);
    } else if (job->refused != CLAIM_GONE && job->refused != CLAIM_LATER) {
        let_go_hint(in, job);
    }
    let_go_job(in, job);
}

static void on_refused(struct intake *in, const struct refused_job *r)
{
    struct active_job *job = active_find(in->env.active, r->id);
    assert(job != NULL);
    record("claim", r->why == CLAIM_NOT_TRIED ? "info" : "fail", RECORD_I64("job", r->id),
           RECORD_I64("why", r->why));
    metric_add(in->env.metrics->refused[refusal_of(in, r)], 1);
    bool is_full = r->why == CLAIM_QUEUE_FULL;
    if (active_step(in->env.active, job, ON_REFUSED) == DO_NOTHING) {
        refused_before_lock(in, job, r->why);
        return;
    }
    if ((r->why == CLAIM_PUT_BACK || is_full) && r->queue != NULL && r->kind != NULL) {
        int64_t score = score_to_keep(job, r->queue, r->priority, r->ready_at_unix_us);
        bool is_ours = serves(in, r->kind);
        hint_return_add(in, &(struct hint){.id = r->id,
                                           .score = score,
                                           .queue = r->queue,
                                           .kind = is_ours ? job->hint_kind : r->kind});
        if (is_full) {
            limits_full(in, r->queue);
        } else if (is_ours) {
            in->room.ahead_pause_until_us = clock_boot_us() + AHEAD_PAUSE_US;
        }
    } else if (r->why == CLAIM_PUT_BACK || r->why == CLAIM_NOT_TRIED) {
        let_go_hint(in, job);
    }
    if (r->why == CLAIM_NOT_TRIED) {
        room_pause(in);
    }
    if (r->why == CLAIM_LIMITED) {
        ask_for_next(in, job);
    }
    let_go_job(in, job);
}

/* ---- claimed jobs ---- */

static bool copy_args(struct active_job *job, const char *args, size_t len)
{
    job->args = malloc(len + 1);
    if (job->args == NULL) {
        return false;
    }
    memcpy(job->args, args, len);
    job->args[len] = '\0';
    job->args_len = len;
    return true;
}

/* A NULL text changes nothing. */
static bool copy_text(char **ret, const char *text)
{
    if (text != NULL) {
        free(*ret);
        *ret = strdup(text);
    }
    return text == NULL || *ret != NULL;
}

/* Hands the job back, since another worker may have a runner for it now. This happens once per job:
 * the next hint of it that this worker pops names its kind, and is taken only if a runner is free
 * for it (docs/decisions/0024). */
static void pass_on(struct intake *in, struct active_job *job, int64_t now_us)
{
    if (job->length != NULL) {
        lengths_handed_back(in->env.lengths, job->length, now_us);
    }
    active_take(in->env.active, job);
    job->hint_goes = HINT_TO_KIND;
    active_leave(in->env.active, job);
}

/* Hints usually do not name the kind of their job, so some of the jobs that were claimed ahead turn
 * out to be long. Each of these needs a runner on which no other long job was placed. */
void claim_place_long(struct intake *in)
{
    int64_t now = clock_boot_us();
    struct active_job *next = NULL;
    for (struct active_job *job = in->env.active->ready; job != NULL; job = next) {
        next = job->next;
        if (job->is_placed || lengths_is_short(job->length, now)) {
            continue;
        }
        if (room_places(in) > 0) {
            active_place(in->env.active, job);
        } else {
            pass_on(in, job, now);
        }
    }
}

static void on_args(void *ctx, enum status st, const struct job_args *args);

struct args_wait {
    struct intake *intake;
    int64_t id;
    int64_t fence;
};

static void fetch_args(struct intake *in, struct active_job *job)
{
    struct args_wait *wait = malloc(sizeof *wait);
    if (wait == NULL) {
        active_leave(in->env.active, job);
        return;
    }
    *wait = (struct args_wait){.intake = in, .id = job->id, .fence = job->fence};
    if (job_store_args(in->env.servers->store, job->id, job->fence, on_args, wait, NULL) !=
        STATUS_OK) {
        free(wait);
        active_leave(in->env.active, job);
        return;
    }
    (void)active_step(in->env.active, job, ON_ARGS_ASKED);
}

static void on_args(void *ctx, enum status st, const struct job_args *args)
{
    autofree struct args_wait *wait = ctx;
    struct intake *in = wait->intake;
    struct active_job *job = active_find(in->env.active, wait->id);
    if (job == NULL || job->fence != wait->fence || job->state != STATE_FETCHING) {
        return;
    }
    if (st == STATUS_LIMIT) {
        job->too_long = args->too_long;
        active_leave(in->env.active, job);
        return;
    }
    if (st != STATUS_OK || !copy_args(job, args->args, args->args_len) ||
        !copy_text(&job->metadata, args->metadata) ||
        !copy_text(&job->checkpoint, args->checkpoint) ||
        !copy_text(&job->predecessors, args->predecessors)) {
        active_leave(in->env.active, job);
        return;
    }
    claim_do(in, job, DO_GO_ON);
    in->env.due->ready = true;
}

/* Takes over the job's queue if an edit has moved it since its hint was pushed. True if this worker
 * does not serve that queue. */
static bool is_moved_away(const struct intake *in, struct active_job *job,
                          const struct claimed_job *c)
{
    job->score = score_to_keep(job, c->queue, c->priority, c->ready_at_unix_us);
    if (strcmp(job->queue, c->queue) == 0) {
        return false;
    }
    (void)snprintf(job->queue, sizeof job->queue, "%s", c->queue);
    job->hint_kind[0] = '\0';
    return !listen_serves(in, c->queue);
}

static void keep_length(struct intake *in, struct active_job *job, const char *kind)
{
    size_t place = listen_place(in, job->queue);
    job->length = place == SIZE_MAX
                      ? NULL
                      : lengths_claimed(in->env.lengths, place, job->queue, kind, job->claimed_us);
}

static bool keep_claimed(struct intake *in, struct active_job *job, const struct claimed_job *c)
{
    job->fence = c->fence;
    (void)snprintf(job->worker_id, sizeof job->worker_id, "%s", c->worker_id);
    job->attempt = c->attempt;
    job->crashes = c->crashes;
    job->flags = c->flags;
    job->key_row = c->key_row;
    job->second_row = c->second_row;
    job->place = c->place;
    job->settings = c->settings;
    job->attempted_at_unix_us = c->attempted_at_unix_us;
    job->claimed_us = clock_boot_us();
    (void)snprintf(job->kind, sizeof job->kind, "%s", c->kind);
    job->metrics = worker_metrics_kind(in->env.metrics, job->queue, c->kind);
    keep_length(in, job, c->kind);
    job->generation = c->generation;
    job->created_at_unix_us = c->created_at_unix_us;
    return copy_text(&job->tags, c->tags) && copy_text(&job->metadata, c->metadata);
}

void claim_do(struct intake *in, struct active_job *job, enum active_action action)
{
    int64_t now = clock_boot_us();
    switch (action) {
    case DO_GO_ON:
        if (!lease_is_held(job, now) || in->env.standing->stage != WORKER_RUNNING) {
            active_leave(in->env.active, job); /* ARCHITECTURE §4.7 */
        } else if (job->args == NULL) {
            fetch_args(in, job);
        } else {
            lengths_fetched(in->env.lengths, now - job->popped_us);
            active_push_ready(in->env.active, job);
        }
        break;
    case DO_HAND_BACK:
        active_leave(in->env.active, job);
        break;
    case DO_LET_GO:
        let_refused_go(in, job);
        break;
    case DO_NOTHING: /* the answer to the lock or to the claim is still outstanding */
    case DO_CLAIM:   /* the caller claims many jobs at once */
        break;
    }
}

static void on_one_claimed(struct intake *in, const struct claimed_job *c)
{
    struct active_job *job = active_find(in->env.active, c->id);
    assert(job != NULL);
    bool is_away = is_moved_away(in, job, c);
    bool is_kept =
        keep_claimed(in, job, c) && (c->args == NULL || copy_args(job, c->args, c->args_len));
    limits_claimed(in, job);
    record("claim", "ok", RECORD_I64("job", c->id), RECORD_I64("f", c->fence),
           RECORD_I64("att", c->attempt), RECORD_I64("max", c->settings.max_attempts));
    metric_observe_us(job->metrics->wait, c->attempted_at_unix_us - c->ready_at_unix_us);
    log_debug("job_claimed", LOG_I64("job", c->id), LOG_I64("fence", c->fence),
              LOG_I64("attempt", c->attempt));
    bool may_run = is_kept && !is_away;
    claim_do(in, job, active_step(in->env.active, job, may_run ? ON_CLAIMED : ON_CLAIMED_UNFIT));
}

/* ---- the reply ---- */

/* All ids of a claim were asked for at the same moment, so any of them gives the time. */
static void count_claim(struct intake *in, int64_t id)
{
    const struct active_job *job = active_find(in->env.active, id);
    metric_observe_us(in->env.metrics->claim, clock_boot_us() - job->asked_us);
}

static void on_claimed(void *ctx, const struct claimed_job *jobs, size_t count,
                       const struct refused_job *refused, size_t refused_count)
{
    struct intake *in = ctx;
    probe("W5");
    count_claim(in, count > 0 ? jobs[0].id : refused[0].id);
    if (count > 0) {
        in->room.pause_us = 0;
        in->room.setbacks_since_us = 0;
    }
    for (size_t i = 0; i < count; i++) {
        on_one_claimed(in, &jobs[i]);
    }
    bool is_any_put_back = false;
    size_t limited = 0;
    size_t gone = 0;
    for (size_t i = 0; i < refused_count; i++) {
        is_any_put_back = is_any_put_back || refused[i].why == CLAIM_PUT_BACK;
        limited += refused[i].why == CLAIM_LIMITED || refused[i].why == CLAIM_QUEUE_FULL;
        gone += refused[i].why == CLAIM_GONE;
        on_refused(in, &refused[i]);
    }
    if (count > 0 || is_any_put_back) {
        hint_return_pace(in, count > 0);
    }
    sift_claimed(&in->sift, count, gone, refused_count);
    limits_answered(in, count, limited);
    question_ask(&in->questions[QUESTION_NEXT]);
    limits_update(in);
    in->env.due->ready = true;
    in->env.due->room = true;
    in->env.due->end = true;
}

bool claim_ask(struct intake *in, struct active_job *const *jobs, size_t count, size_t ahead_from)
{
    int64_t ids[REDLOCK_KEYS_MAX];
    assert(count <= REDLOCK_KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        ids[i] = jobs[i]->id;
    }
    struct claim_request request = {.ids = ids,
                                    .count = count,
                                    .kinds = in->env.kinds->served.names,
                                    .kind_count = in->env.kinds->served.count,
                                    .ahead_from = ahead_from,
                                    .done = on_claimed,
                                    .ctx = in};
    for (size_t i = 0; recorder_is_on() && i < count; i++) {
        record("claim", "inv", RECORD_I64("job", ids[i]));
    }
    if (job_store_claim(in->env.servers->store, &request, NULL) != STATUS_OK) {
        return false;
    }
    metric_observe(in->env.metrics->batch, (double)count);
    probe("W4");
    return true;
}
