/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs that a slot's child is given: one, or several of one kind that it runs in a row. Jobs
 * that it has not begun can be taken back at any time. */
#include "base/clock.h"
#include "worker/slots/slot_internal.h"

#include <assert.h>
#include <signal.h>

#define BEHIND_BYTES ((size_t)48 << 10) /* a socket takes this much at once */

static size_t index_of(const struct slot *s, size_t n)
{
    return (s->jobs.first + n) % RUNNER_DEPTH;
}

static struct slot_job *job_at(struct slot *s, size_t n)
{
    return &s->jobs.items[index_of(s, n)];
}

struct slot_job *slot_first(struct slot *s)
{
    return s->jobs.count > 0 ? job_at(s, 0) : NULL;
}

static const struct slot_job *find(const struct slot *s, int64_t nonce)
{
    for (size_t n = 0; n < s->jobs.count; n++) {
        const struct slot_job *job = &s->jobs.items[index_of(s, n)];
        if (job->nonce == nonce) {
            return job;
        }
    }
    return NULL;
}

static _Atomic int64_t *place_of(const struct slot *s, const struct slot_job *job)
{
    return &s->page->places[job->number % RUNNER_DEPTH];
}

enum slot_place slot_place(const struct slot *s, const struct slot_job *job)
{
    int64_t value = atomic_load(place_of(s, job));
    if (value == job->ticket) {
        return PLACE_WAITS;
    }
    if (value == -job->nonce) {
        return PLACE_BEGUN;
    }
    return value == -job->ticket ? PLACE_UNSERVED : PLACE_WRITTEN_OVER;
}

bool slot_has_started(const struct slot *s, int64_t nonce)
{
    const struct slot_job *job = find(s, nonce);
    return job != NULL && slot_place(s, job) != PLACE_WAITS;
}

void *slot_present(struct slot *s)
{
    const struct slot_job *first = slot_first(s);
    return first == NULL ? NULL : first->user;
}

size_t slot_waiting(const struct slot *s)
{
    return s->jobs.count > 1 ? s->jobs.count - 1 : 0;
}

/* ---- giving jobs ---- */

/* Returns −1 if the system yields no random bytes. */
static int64_t draw_nonce(struct slot *s)
{
    if (s->nonce_count == 0 && rand_bytes(s->nonces, sizeof s->nonces, NULL) == STATUS_OK) {
        s->nonce_count = SLOT_NONCES;
    }
    if (s->nonce_count == 0) {
        return -1;
    }
    s->nonce_count--;
    return s->nonces[s->nonce_count] & INT64_MAX;
}

bool slot_is_spent(const struct slot *s)
{
    return s->child.is_outdated || s->child.jobs_done >= s->options.jobs_max ||
           clock_boot_us() - s->child.started_us >= s->options.age_us;
}

/* The numbers of jobs that were taken back are not used again, so that no two jobs of a child share
 * a place. */
bool slot_takes(struct slot *s, const char *kind, size_t bytes)
{
    if (s->child.state == CHILD_IDLE) {
        return true;
    }
    return s->child.state == CHILD_BUSY && s->jobs.count > 0 && !s->is_writing &&
           !s->jobs.is_slow && !s->jobs.was_asked_to_stop && s->out.len + bytes <= BEHIND_BYTES &&
           s->jobs.sent - job_at(s, 0)->number < RUNNER_DEPTH &&
           s->child.jobs_done + (int)s->jobs.count < s->options.jobs_max &&
           strcmp(s->jobs.kind, kind) == 0 && !slot_is_spent(s);
}

/* Sets the earliest limit of all runs. */
static void limit_child(struct slot *s, int64_t at_us)
{
    s->jobs.kill_at_us = at_us;
    atomic_store(&s->page->kill_at_us, at_us);
}

static void set_kill_at(struct slot *s)
{
    int64_t first_us = INT64_MAX;
    for (size_t n = 0; n < s->jobs.count; n++) {
        int64_t at_us = job_at(s, n)->kill_at_us;
        first_us = at_us < first_us ? at_us : first_us;
    }
    limit_child(s, first_us);
}

void slot_limit(struct slot *s, int64_t nonce, int64_t kill_at_us)
{
    for (size_t n = 0; n < s->jobs.count; n++) {
        struct slot_job *job = job_at(s, n);
        if (job->nonce == nonce && job->kill_at_us != kill_at_us) {
            job->kill_at_us = kill_at_us;
            set_kill_at(s);
        }
    }
}

/* Starts a series of jobs on an idle child: flags in the page were for earlier jobs. */
static void begin_kind(struct slot *s, const char *kind, size_t len)
{
    memcpy(s->jobs.kind, kind, len);
    s->jobs.kind[len] = '\0';
    limit_child(s, 0);
    atomic_store(&s->page->should_stop, 0); /* any process of the user may send a SIGTERM */
    atomic_store(&s->page->is_cancelled, 0);
    slot_step(s, ON_JOB);
}

int64_t slot_run(struct slot *s, const struct job_frame *frame, int64_t kill_at_us, void *user)
{
    assert(slot_takes(s, frame->kind, 0) && frame->kind_len <= JOB_NAME_MAX);
    struct job_frame sent = *frame;
    sent.nonce = draw_nonce(s);
    if (s->jobs.count == 0) {
        begin_kind(s, frame->kind, frame->kind_len);
    }
    s->jobs.count++;
    struct slot_job *job = job_at(s, s->jobs.count - 1);
    *job = (struct slot_job){.user = user,
                             .id = frame->id,
                             .fence = frame->fence,
                             .nonce = sent.nonce,
                             .ticket = draw_nonce(s),
                             .number = s->jobs.sent++,
                             .kill_at_us = kill_at_us};
    if (s->jobs.kill_at_us == 0 || kill_at_us < s->jobs.kill_at_us) {
        limit_child(s, kill_at_us);
    }
    atomic_store(place_of(s, job), job->ticket);
    struct err err = {0};
    if (sent.nonce < 1 || job->ticket < 1 || job_frame_put(&s->out, &sent, &err) != STATUS_OK) {
        slot_step(s, ON_KILL);
    }
    return sent.nonce;
}

static void on_written(uv_write_t *request, int status)
{
    struct slot *s = request->data;
    s->is_writing = false;
    buf_reset(&s->out);
    if (status < 0) {
        slot_step(s, ON_KILL); /* its run ends NOT_STARTED */
        return;
    }
    slot_go_on(s);
    if (s->child.state == CHILD_IDLE) { /* the jobs were answered or taken back meanwhile */
        s->options.events->room(s->options.jobs, s);
    }
}

void slot_flush(struct slot *s)
{
    uv_stream_t *stream = (uv_stream_t *)&s->pipe;
    if (s->out.len == 0 || s->is_writing || !slot_is_up(s)) {
        return;
    }
    uv_buf_t all = uv_buf_init(buf_at(&s->out), (unsigned)s->out.len);
    int n = uv_try_write(stream, &all, 1);
    if (n > 0) {
        buf_consume(&s->out, (size_t)n);
    }
    if (s->out.len == 0) {
        return;
    }
    if (n < 0 && n != UV_EAGAIN) {
        slot_step(s, ON_KILL);
        return;
    }
    all = uv_buf_init(buf_at(&s->out), (unsigned)s->out.len);
    s->write.data = s;
    s->is_writing = true;
    if (uv_write(&s->write, stream, &all, 1, on_written) != 0) {
        slot_step(s, ON_KILL);
    }
}

/* ---- a page that was written over ---- */

static void written_over(struct slot *s)
{
    struct err why = {0};
    err_set(&why, STATUS_INVALID, 0,
            "a handler overwrote the page that its runner shares with the worker");
    slot_break_off(s, &why);
}

/* Jobs begin in their order: if a later one has begun, those before it, which are looked at after
 * it, must have begun too. */
static bool is_written_over(const struct slot *s)
{
    bool has_later_begun = false;
    for (size_t n = s->jobs.count; n > 0; n--) {
        enum slot_place place = slot_place(s, &s->jobs.items[index_of(s, n - 1)]);
        if (place == PLACE_WRITTEN_OVER || (place == PLACE_WAITS && has_later_begun)) {
            return true;
        }
        has_later_begun = has_later_begun || place != PLACE_WAITS;
    }
    return false;
}

int64_t slot_look_before(struct slot *s)
{
    bool has_next_begun = s->jobs.count > 1 && slot_place(s, job_at(s, 1)) != PLACE_WAITS;
    return has_next_begun ? job_at(s, 0)->nonce : 0;
}

void slot_look_after(struct slot *s, int64_t overdue_nonce)
{
    const struct slot_job *first = slot_first(s);
    if (first != NULL && slot_is_up(s) &&
        (first->nonce == overdue_nonce || slot_place(s, first) == PLACE_WRITTEN_OVER)) {
        written_over(s);
    }
}

/* ---- taking jobs back ---- */

void slot_take_back(struct slot *s)
{
    while (s->jobs.count > 1) {
        struct slot_job *job = job_at(s, s->jobs.count - 1);
        int64_t ticket = job->ticket;
        if (!atomic_compare_exchange_strong(place_of(s, job), &ticket, 0)) {
            if (slot_is_up(s) && is_written_over(s)) {
                written_over(s);
            }
            return;
        }
        s->jobs.count--;
        s->jobs.is_slow = true;
        s->options.events->returned(s->options.jobs, s, job->user);
    }
}

/* ---- ends of runs ---- */

void slot_report(struct slot *s, const struct slot_run *run)
{
    struct slot_job job = *job_at(s, 0);
    s->options.events->ended(s->options.jobs, s, job.user, run);
    atomic_store(place_of(s, &job), 0); /* its progress and checkpoint have been read */
    s->jobs.first = (s->jobs.first + 1) % RUNNER_DEPTH;
    s->jobs.count--;
    s->jobs.last_nonce = job.nonce;
    s->jobs.is_slow = false;
}

/* ---- stopping runs ---- */

/* Takes back the jobs behind the first. True if this run is the only one left; if not, it has ended
 * or was taken back. */
static bool leave_alone(struct slot *s, int64_t nonce)
{
    slot_take_back(s);
    return s->child.state == CHILD_BUSY && s->jobs.count > 0 &&
           job_at(s, s->jobs.count - 1)->nonce == nonce;
}

void slot_ask_to_stop(struct slot *s, int64_t nonce, enum stop_reason why)
{
    if (leave_alone(s, nonce) && !s->jobs.was_asked_to_stop) {
        s->jobs.was_asked_to_stop = true;
        atomic_store(&s->page->should_stop, (int32_t)why);
        (void)kill(s->child.pid, SIGTERM);
    }
}

void slot_cancel(struct slot *s, int64_t nonce)
{
    if (leave_alone(s, nonce)) {
        atomic_store(&s->page->is_cancelled, 1);
        slot_ask_to_stop(s, nonce, STOP_SHUTDOWN);
    }
}

void slot_kill_run(struct slot *s, int64_t nonce)
{
    if (leave_alone(s, nonce)) {
        slot_kill(s);
    }
}
