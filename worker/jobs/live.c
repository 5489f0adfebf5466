/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/live.h"

#include "base/clock.h"
#include "base/parse.h"
#include "protocol/run_log.h"
#include "protocol/run_said.h"
#include "sql/queries.h"
#include "store/pg/params.h"
#include "worker/jobs/jobs.h"

#define PERIOD_US (1 * US_PER_S)
#define ALONE_US (10 * US_PER_S)
#define GROUP_MAX 64
#define LOG_BYTES ((size_t)4 << 10)

/* The rows of one statement; the texts are copies. */
struct sent {
    struct jobs *jobs;
    bool is_last; /* for an attempt that has ended: nothing waits for the reply */
    size_t count;
    int64_t ids[GROUP_MAX];
    int64_t fences[GROUP_MAX];
    int64_t percents[GROUP_MAX];
    char texts[GROUP_MAX][RUNNER_PROGRESS_BYTES + 1];
    char *checkpoints[GROUP_MAX];
    size_t lens[GROUP_MAX];
    char *logs[GROUP_MAX]; /* NULL = unchanged */
    size_t log_lens[GROUP_MAX];
    char worker_id[JOB_WORKER_ID_SIZE];
};

static void sent_free(struct sent *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->checkpoints[i]);
        free(s->logs[i]);
    }
    free(s);
}

static bool has_news(const struct active_job *job)
{
    const struct runner_page *page = slot_page(job->slot);
    return atomic_load(&page->started_nonce) == job->nonce &&
           (atomic_load(&page->progress_count) != job->progress_count ||
            atomic_load(&page->checkpoint_count) != job->checkpoint_count);
}

static bool has_new_log(const struct active_job *job)
{
    const struct runner_page *page = slot_page(job->slot);
    return atomic_load(&page->started_nonce) == job->nonce &&
           atomic_load(&page->log_total) != job->log_total;
}

/* A run that takes less than a second leaves its log to its finish: it costs no row of its own. */
static bool has_logged(const struct active_job *job, int64_t now_us)
{
    return has_new_log(job) && now_us - job->started_us >= PERIOD_US;
}

/* Returns the end of the log, at most LOG_BYTES and valid UTF-8; NULL if it is not new. While a
 * line is being appended, a part of it may be missing until the next one. */
static char *take_log(struct active_job *job, size_t *ret_len)
{
    char tail[JOB_LOG_TAIL_MAX];
    const char *end = tail;
    *ret_len = 0;
    char *log = has_new_log(job) ? malloc(LOG_BYTES + 1) : NULL;
    if (log == NULL) {
        return NULL;
    }
    job->log_total = atomic_load(&slot_page(job->slot)->log_total);
    size_t len = run_log_tail(slot_page(job->slot), tail);
    utf8_cut_head(&end, &len, LOG_BYTES);
    *ret_len = utf8_clean(end, len, log, LOG_BYTES + 1);
    return log;
}

/* Returns NULL if there is no new checkpoint that can be stored. */
static char *take_checkpoint(struct active_job *job, size_t *ret_len)
{
    char *json = malloc(JOB_CHECKPOINT_MAX);
    *ret_len = 0;
    if (json != NULL &&
        run_said_read_checkpoint(slot_page(job->slot), job->nonce, &job->checkpoint_count, json,
                                 ret_len) &&
        !job->is_checkpoint_bad && utf8_is_clean(json, *ret_len)) {
        return json;
    }
    free(json);
    return NULL;
}

/* Sends the last progress again even if only the checkpoint is new, because the statement
 * overwrites it. */
static void take(struct sent *s, struct active_job *job, int64_t now_us)
{
    char text[RUNNER_PROGRESS_BYTES];
    size_t len = 0;
    int percent = -1;
    size_t n = s->count;
    uint32_t none = 0;
    s->texts[n][0] = '\0';
    if (run_said_read_progress(slot_page(job->slot), job->nonce, &none, &percent, text, &len)) {
        job->progress_count = none;
        (void)utf8_clean(text, len, s->texts[n], sizeof s->texts[n]);
    }
    s->ids[n] = job->id;
    s->fences[n] = job->fence;
    s->percents[n] = percent;
    s->checkpoints[n] = take_checkpoint(job, &s->lens[n]);
    s->logs[n] = s->is_last ? NULL : take_log(job, &s->log_lens[n]); /* the finish has it */
    s->count++;
    job->said_us = now_us;
}

/* Makes the next tick send the rows again. If PostgreSQL rejects a checkpoint as JSON, its handler
 * has written into the page without the runner's check. The rows are then sent one by one, so that
 * it costs the other jobs only another try. */
static void on_failed(struct jobs *j, const struct sent *s, enum status st)
{
    bool is_bad = st == STATUS_INVALID && s->count == 1;
    if (st == STATUS_INVALID && s->count > 1) {
        j->live.alone_until_us = clock_boot_us() + ALONE_US;
    }
    for (size_t i = 0; i < s->count; i++) {
        struct active_job *job = active_find(j->env.active, s->ids[i]);
        if (job != NULL && job->fence == s->fences[i]) {
            job->is_checkpoint_bad = job->is_checkpoint_bad || is_bad;
            job->checkpoint_count = 0;
            job->progress_count = 0;
            job->log_total = -1;
        }
    }
}

static void on_saved(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct sent *s = ctx;
    struct jobs *j = s->jobs;
    (void)results;
    if (!s->is_last) {
        j->live.is_in_flight = false;
    }
    if (st == STATUS_OK) {
        log_recovered("live_recovered", &j->live.complaint);
    } else if (complaint_due(&j->live.complaint, clock_boot_us())) {
        log_warn("live_failed", LOG_I64("jobs", s->count), LOG_TEXT("err", err->msg),
                 LOG_TEXT("action", "progress, checkpoints and logs are saved later"));
    }
    if (st != STATUS_OK) {
        on_failed(j, s, st);
    }
    sent_free(s);
}

static bool send_sent(struct jobs *j, struct sent *s)
{
    const char *texts[GROUP_MAX];
    const char *checkpoints[GROUP_MAX];
    const char *logs[GROUP_MAX];
    for (size_t i = 0; i < s->count; i++) {
        texts[i] = s->texts[i];
        checkpoints[i] = s->checkpoints[i];
        logs[i] = s->logs[i];
    }
    struct params p = {.count = 0};
    struct pg_request request = {.step_count = 1, .done = on_saved, .ctx = s};
    params_i64_array(&p, s->ids, s->count);
    params_i64_array(&p, s->fences, s->count);
    params_i64_array(&p, s->percents, s->count);
    params_text_array(&p, texts, NULL, s->count);
    params_text_array(&p, checkpoints, s->lens, s->count);
    params_uuid(&p, s->worker_id);
    params_text_array(&p, logs, s->log_lens, s->count);
    enum status st = params_step(&p, &SQL_JOB_LIVE_SAVE, &request.steps[0], NULL);
    if (st == STATUS_OK) {
        st = pg_send(j->env.servers->pg, &request, NULL);
    }
    params_release(&p);
    return st == STATUS_OK;
}

static struct sent *sent_new(struct jobs *j, const struct active_job *job)
{
    struct sent *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->jobs = j;
        memcpy(s->worker_id, job->worker_id, sizeof s->worker_id);
    }
    return s;
}

static void send_or_drop(struct jobs *j, struct sent *s)
{
    j->live.is_in_flight = j->live.is_in_flight || !s->is_last;
    if (!send_sent(j, s)) {
        struct err err = {0};
        err_set(&err, STATUS_UNAVAILABLE, 0, "no session with PostgreSQL");
        on_saved(s, STATUS_UNAVAILABLE, NULL, &err);
    }
}

void live_tick(struct jobs *j, int64_t now_us)
{
    struct sent *s = NULL;
    size_t max = now_us < j->live.alone_until_us ? 1 : GROUP_MAX;
    if (j->live.is_in_flight || !pg_is_up(j->env.servers->pg)) {
        return;
    }
    for (struct active_job *job = j->env.active->by_id;
         job != NULL && (s == NULL || s->count < max); job = job->hh.next) {
        if (active_phase(job) != ACTIVE_RUNNING || now_us - job->said_us < PERIOD_US ||
            (!has_news(job) && !has_logged(job, now_us))) {
            continue;
        }
        s = s != NULL ? s : sent_new(j, job);
        if (s != NULL && strcmp(s->worker_id, job->worker_id) == 0) {
            take(s, job, now_us);
        }
    }
    if (s != NULL) {
        send_or_drop(j, s);
    }
}

void live_take_end(struct jobs *j, struct active_job *job, bool is_done)
{
    if (is_done || !has_news(job)) {
        return;
    }
    struct sent *s = sent_new(j, job);
    if (s == NULL) {
        return;
    }
    s->is_last = true;
    take(s, job, clock_boot_us());
    send_or_drop(j, s);
}
