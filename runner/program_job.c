/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one job on a program that serves: sends the job and a stop, and handles the lines that the
 * program sends. */
#include "base/clock.h"
#include "base/parse.h"
#include "protocol/run_log.h"
#include "runner/host.h"
#include "runner/process_state.h"
#include "runner/program_internal.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>

/* Ends this process. The worker finds the reason in the page, beside the log and checkpoint. */
static _Noreturn void end_runner(const struct program_job *t, const struct err *why)
{
    (void)utf8_clean(why->msg, strlen(why->msg), t->page->end_reason, sizeof t->page->end_reason);
    process_state_end_children(NULL);
    _exit(1);
}

static const char *stop_reason(const struct program_job *t)
{
    if (atomic_load(&t->page->is_cancelled) != 0) {
        return "cancel";
    }
    int32_t why = atomic_load(&t->page->should_stop);
    return why == STOP_TIMEOUT ? "timeout" : why == STOP_LEASE ? "lease" : "shutdown";
}

static enum status tell_stop(struct program_job *t, struct err *err)
{
    struct program *p = t->program;
    if (t->was_told_to_stop || atomic_load(&t->page->should_stop) == 0) {
        return STATUS_OK;
    }
    t->was_told_to_stop = true;
    return program_line_put_stop(&p->to, p->n, stop_reason(t), err);
}

/* Waits until the stop is in the pipe, where the signal's handler looks for the reason. */
static void send_sigterm(struct program_job *t)
{
    struct program *p = t->program;
    if (t->was_told_to_stop && !t->was_signalled && p->takes_sigterm && p->to.len == 0) {
        t->was_signalled = true;
        (void)kill(p->process.pid, SIGTERM);
    }
}

void program_job_log(const struct program_job *t, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += RUN_LOG_LINE_MAX) {
        run_log_append(t->page, bytes + at, len - at);
    }
}

static void take_log(const struct program_job *t, struct json_span text)
{
    char line[PROGRAM_LOG_LINE_MAX + 1];
    size_t len = json_text(text, line, sizeof line);
    line[len] = '\n'; /* over the NUL */
    program_job_log(t, line, len + 1);
}

static void refuse(const struct program_job *t, const char *what)
{
    char note[64];
    int len = snprintf(note, sizeof note, "claimd: the %s was refused\n", what);
    program_job_log(t, note, (size_t)len);
}

static void take_progress(const struct program_job *t, const struct program_line *line)
{
    char text[RUNNER_PROGRESS_BYTES + 2];
    (void)json_text(line->text, text, sizeof text);
    int percent = line->number < 0 || line->number > 100 ? -1 : (int)line->number;
    if (HOST.set_progress(t->job, percent, text) != 0) {
        refuse(t, "progress");
    }
}

static void take_end(struct program_job *t, const struct program_line *line)
{
    char error[JOB_ERROR_MAX + 1];
    const struct claimd_context *job = t->job;
    t->is_over = true;
    t->outcome = line->end;
    if (line->end == CLAIMD_DONE) {
        (void)HOST.set_result(job, line->json.at, line->json.len); /* logs one that is too long */
        return;
    }
    (void)json_text(line->text, error, sizeof error);
    (void)claimd_retry(job, line->number < 0 ? -1 : (long)line->number, "%s", error);
}

void program_job_take(struct program_job *t, const struct program_line *line)
{
    switch (line->said) {
    case SAID_LOG:
        take_log(t, line->text);
        break;
    case SAID_PROGRESS:
        take_progress(t, line);
        break;
    case SAID_CHECKPOINT:
        if (HOST.set_checkpoint(t->job, line->json.at, line->json.len) != 0) {
            refuse(t, "checkpoint");
        }
        break;
    case SAID_END:
        take_end(t, line);
        break;
    case SAID_HELLO:
    case SAID_RESULT:
        break;
    }
}

static enum status take_line(void *ctx, const struct program_line *line, struct err *err)
{
    struct program_job *t = ctx;
    struct program *p = t->program;
    if (line->said == SAID_HELLO || line->said == SAID_RESULT || line->n < 1 || line->n > p->n) {
        return err_fail(err, STATUS_INVALID,
                        "the program sent a line without a run, expected \"n\": %" PRId64, p->n);
    }
    if (line->n < p->n || t->is_over) {
        return program_take_late(p, line, err);
    }
    program_job_take(t, line);
    return STATUS_OK;
}

/* Once a program has its job it may close the pipe: only a stop could follow. */
static enum status send_to(struct program_job *t, struct err *err)
{
    struct program *p = t->program;
    struct err why = {0};
    enum status st = program_flush(p, &why);
    t->was_sent = t->was_sent || p->to.len == 0;
    if (st == STATUS_OK) {
        return STATUS_OK;
    }
    t->unsent = p->to.len;
    buf_reset(&p->to);
    if (t->was_sent) {
        return STATUS_OK;
    }
    st = program_check_alive(p, PROGRAM_END_WAIT_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    return err_fail(err, STATUS_UNAVAILABLE, "%s", why.msg);
}

/* Sends what is due, waits for the program and handles what it says. SIGTERM from the worker is
 * unblocked only while this waits. */
static enum status go_on(struct program_job *t, struct err *err)
{
    struct program *p = t->program;
    sigset_t none;
    enum status st = tell_stop(t, err);
    if (st == STATUS_OK) {
        st = send_to(t, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    send_sigterm(t);
    struct pollfd polled[] = {{.fd = p->process.out, .events = POLLIN},
                              {.fd = p->process.pidfd, .events = POLLIN},
                              {.fd = p->to.len > 0 ? p->process.in : -1, .events = POLLOUT}};
    (void)sigemptyset(&none);
    if (ppoll(polled, 3, NULL, &none) < 0) {
        return STATUS_OK; /* EINTR */
    }
    st = program_read(p, err);
    if (st == STATUS_OK) {
        return program_take_lines(p, take_line, t, err);
    }
    if (st == STATUS_NOT_FOUND && polled[1].revents != 0) { /* a child holds its pipe open */
        return program_check_alive(p, 0, err);
    }
    return st == STATUS_NOT_FOUND ? STATUS_OK : st;
}

static enum status run_to_end(struct program_job *t, struct err *err)
{
    struct program *p = t->program;
    size_t before = p->to.len;
    enum status st = program_line_put_job(&p->to, ++p->n, t->job, clock_boot_us(), err);
    t->size = p->to.len - before;
    while (st == STATUS_OK && !t->is_over) {
        st = go_on(t, err);
    }
    return st;
}

/* True if the whole line of the job is still unread: the program ended before it read the job, for
 * example because it leaves after each answer. */
static bool was_unread(const struct program_job *t)
{
    int unread = 0;
    return t->size > 0 && !t->was_told_to_stop &&
           ioctl(t->program->process.in, FIONREAD, &unread) == 0 &&
           (size_t)unread + t->unsent >= t->size;
}

/* Gives the job, which has not begun, to a new process. */
static enum status run_again(struct program_job *t, struct err *err)
{
    const struct claimd_kind kind = {.name = t->job->kind};
    *err = (struct err){0};
    enum status st = program_prepare(&kind, t->page, err);
    if (st != STATUS_OK) {
        return st;
    }
    *t = (struct program_job){
        .program = t->program, .job = t->job, .page = t->page, .outcome = CLAIMD_RETRY};
    return run_to_end(t, err);
}

enum claimd_outcome program_handle(const struct claimd_context *job)
{
    struct program_job t = {.program = program_find(job->kind),
                            .job = job,
                            .page = ((struct run *)job->host_data)->page,
                            .outcome = CLAIMD_RETRY};
    struct err err = {0};
    sigset_t before;
    if (t.program->file.is_once) {
        return program_run_once(t.program, job, t.page);
    }
    program_block_signals(&before);
    enum status st = run_to_end(&t, &err);
    if (st != STATUS_OK && was_unread(&t)) {
        st = run_again(&t, &err);
    }
    if (st != STATUS_OK) {
        end_runner(&t, &err);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t.outcome;
}
