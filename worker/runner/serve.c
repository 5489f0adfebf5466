/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/serve.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/runner/host.h"
#include "worker/runner/process_state.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#define READ_BYTES ((size_t)64 << 10)
#define IN_MAX (2 * FRAME_MAX)

struct server {
    struct runner_page *page;
    const struct plugin_set *plugins;
    struct watchdog *watchdog;
    struct buf in;
    struct buf out;
    struct run *run;
    struct process_state clean;
    pid_t self;
};

/* The one thing that a signal handler needs: where the stop flag is. */
static struct runner_page *volatile signal_page;

static void on_term(int number)
{
    (void)number;
    atomic_store(&signal_page->should_stop, 1);
}

static enum status catch_term(struct runner_page *page, struct err *err)
{
    signal_page = page;
    struct sigaction action = {.sa_handler = on_term}; /* no SA_RESTART: a blocked handler wakes */
    if (sigaction(SIGTERM, &action, NULL) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "SIGTERM");
    }
    return STATUS_OK;
}

static enum status send_all(struct buf *out, struct err *err)
{
    while (out->len > 0) {
        ssize_t n = send(RUNNER_FD_FRAMES, buf_at(out), out->len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "send to the worker");
        }
        buf_consume(out, (size_t)n);
    }
    return STATUS_OK;
}

/* NOT_FOUND: the worker closed its end. */
static enum status receive_some(struct buf *in, struct err *err)
{
    enum status st = buf_reserve(in, READ_BYTES, err);
    if (st != STATUS_OK) {
        return st;
    }
    ssize_t n = 0;
    do {
        n = recv(RUNNER_FD_FRAMES, buf_at(in) + in->len, READ_BYTES, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "receive from the worker");
    }
    if (n == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "the worker closed its end");
    }
    buf_grew(in, (size_t)n);
    return STATUS_OK;
}

/* A handler was left by a jump into frames of ours, or the worker has sent the next job since it
 * holds a forged result: nothing here can be relied on. */
static _Noreturn void end_as_left(struct runner_page *page, int64_t id)
{
    atomic_store(&page->was_left, 1);
    log_error("handler_left", LOG_I64("job", id),
              LOG_TEXT("err", "the handler did not return, or was answered for already"),
              LOG_TEXT("action", "the runner ends itself"));
    _exit(1);
}

static void check_between_jobs(const struct server *s)
{
    if (atomic_load(&s->watchdog->job_runs)) {
        end_as_left(s->page, 0);
    }
}

/* Waits for the next JOB; its texts are borrowed from s->in until *ret_size bytes are consumed. */
static enum status next_job(struct server *s, struct job_frame *ret_job, size_t *ret_size,
                            struct err *err)
{
    check_between_jobs(s);
    for (;;) {
        enum frame_type type = FRAME_HELLO;
        const char *body = NULL;
        size_t len = 0;
        struct err incomplete = {0};
        enum status st = frame_take(&s->in, &type, &body, &len, ret_size, &incomplete);
        if (st == STATUS_NOT_FOUND) {
            st = receive_some(&s->in, err);
            if (st != STATUS_OK) {
                return st;
            }
            continue;
        }
        if (st != STATUS_OK) {
            return err_fail(err, st, "%s", incomplete.msg);
        }
        if (type != FRAME_JOB) {
            return err_fail(err, STATUS_INVALID, "the worker sent a frame of type %d", type);
        }
        return job_frame_get(body, len, ret_job, err);
    }
}

static enum status call_handler(struct server *s, const struct job_frame *job,
                                struct result_frame *ret, struct err *err)
{
    const struct claimd_kind *kind = plugin_set_find(s->plugins, job->kind, job->kind_len);
    if (kind == NULL) {
        run_refuse(s->run, job, ret);
        return STATUS_OK;
    }
    atomic_store(&s->watchdog->job_runs, true);
    if (watchdog_time_is_up(s->page, clock_boot_us())) {
        return err_fail(err, STATUS_TIMEOUT, "job %" PRId64 " came after its time", job->id);
    }
    enum status st = run_job(s->run, kind, job, ret, err);
    if (getpid() != s->self) {
        _exit(1); /* a handler forked and its child returned from it too */
    }
    if (st == STATUS_OK && atomic_load(&s->page->started_nonce) != job->nonce) {
        end_as_left(s->page, job->id); /* the return of an earlier run, or of one that is over */
    }
    atomic_store(&s->watchdog->job_runs, false);
    return st;
}

/* Runs one job and sends its result; *ret_leaving when this process should not run another. */
static enum status serve_one(struct server *s, bool *ret_leaving, struct err *err)
{
    struct job_frame job = {0};
    size_t size = 0;
    enum status st = next_job(s, &job, &size, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct result_frame result = {0};
    st = call_handler(s, &job, &result, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *change = process_state_change(&s->clean);
    if (change != NULL) {
        char note[128];
        (void)snprintf(note, sizeof note, "claimd: the handler left %s; its runner is replaced",
                       change);
        run_note(s->run, &result, note);
        log_info("runner_dirty", LOG_I64("job", job.id), LOG_TEXT("left", change));
        result.leaving = true;
    }
    buf_consume(&s->in, size);
    st = result_frame_put(&s->out, &result, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_leaving = result.leaving;
    return send_all(&s->out, err);
}

static enum status say_hello(struct server *s, struct err *err)
{
    autofree char *json = NULL;
    check_between_jobs(s);
    enum status st = plugin_set_describe(s->plugins, &json, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = hello_frame_put(&s->out, json, strlen(json), err);
    if (st != STATUS_OK) {
        return st;
    }
    return send_all(&s->out, err);
}

static enum status serve_all(struct server *s, struct err *err)
{
    enum status st = say_hello(s, err);
    bool leaving = false;
    while (st == STATUS_OK && !leaving) {
        st = serve_one(s, &leaving, err);
    }
    return st == STATUS_NOT_FOUND ? STATUS_OK : st;
}

enum status serve(struct runner_page *page, const struct plugin_set *plugins, struct watchdog *w,
                  struct err *err)
{
    autofree struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return err_fail(err, STATUS_NOMEM, "runner");
    }
    run_init(run, page);
    struct server s = {.page = page,
                       .plugins = plugins,
                       .watchdog = w,
                       .in = BUF_INIT(IN_MAX),
                       .out = BUF_INIT(FRAME_MAX),
                       .run = run,
                       .self = getpid()};
    enum status st = catch_term(page, err);
    if (st == STATUS_OK) {
        process_state_end_children(); /* of constructors that were tried out */
        process_state_baseline(&s.clean);
        st = serve_all(&s, err);
    }
    process_state_end_children();
    buf_release(&s.in);
    buf_release(&s.out);
    buf_release(&run->args);
    buf_release(&run->more);
    return st;
}
