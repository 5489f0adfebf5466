/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a runner after its plugins are loaded: HELLO, then one RESULT per JOB until the
 * worker closes its end. Anything that is not a valid JOB ends the runner; the worker starts
 * another. */
#include "base/clock.h"
#include "base/log.h"
#include "protocol/result_ring.h"
#include "runner/host.h"
#include "runner/process_state.h"
#include "runner/program.h"
#include "runner/runner.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#define READ_BYTES ((size_t)64 << 10)
#define IN_MAX (2 * FRAME_MAX)

#define PROVE_RUNS 64 /* clean runs in a row, each checked, before a runner is trusted … */
#define TRUST_RUNS 64 /* … with this many runs between two checks */
#define NUDGE_RESULTS 16
#define NUDGE_US (1 * US_PER_MS) /* after the first result that the worker was not nudged about */
#define WAIT_US 200              /* until the worker looks */

struct server {
    struct runner_page *page;
    struct plugin_set *plugins;
    struct watchdog *watchdog;
    struct buf in;
    struct buf out;
    struct buf result; /* the frame for the ring */
    struct run *run;
    struct process_state clean;
    pid_t self;
    uint64_t received; /* number of JOB frames */
    int clean_runs;    /* runs in a row that were checked one by one */
    int unchecked;     /* runs since the last check for leftovers */
    int unsaid;        /* results in the ring since the last NUDGE, and since when */
    int64_t unsaid_us;
};

/* Where the stop flag is: all that the signal handler needs. */
static struct runner_page *volatile signal_page;

static void on_term(int number)
{
    int32_t no = STOP_NOT; /* otherwise the worker has given a reason */
    (void)number;
    (void)atomic_compare_exchange_strong(&signal_page->should_stop, &no, STOP_SHUTDOWN);
}

static enum status catch_term(struct runner_page *page, struct err *err)
{
    signal_page = page;
    struct sigaction action = {.sa_handler =
                                   on_term}; /* no SA_RESTART: a blocked handler wakes up */
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
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot send to the worker");
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
    programs_wait(RUNNER_FD_FRAMES);
    do {
        n = recv(RUNNER_FD_FRAMES, buf_at(in) + in->len, READ_BYTES, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot receive from the worker");
    }
    if (n == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "the worker closed its end");
    }
    buf_grew(in, (size_t)n);
    return STATUS_OK;
}

/* A handler was left by a jump into the runner's own stack frames, or the worker has sent the next
 * job because it holds a forged result: the state of this process can't be relied on. */
static _Noreturn void end_as_left(struct runner_page *page, int64_t id)
{
    atomic_store(&page->was_left, 1);
    log_error("handler_left", LOG_I64("job", id),
              LOG_TEXT("err", "the handler did not return, or its result was already sent"),
              LOG_TEXT("action", "the runner ends itself"));
    _exit(1);
}

static void check_between_jobs(const struct server *s)
{
    if (atomic_load(&s->watchdog->job_runs)) {
        end_as_left(s->page, 0);
    }
}

/* ---- results ---- */

static enum status nudge(struct server *s, bool leaving, struct err *err)
{
    s->unsaid = 0;
    enum status st = nudge_frame_put(&s->out, leaving, err);
    if (st != STATUS_OK) {
        return st;
    }
    return send_all(&s->out, err);
}

static void wait_a_little(void)
{
    const struct timespec pause = {.tv_nsec = WAIT_US * 1000};
    (void)nanosleep(&pause, NULL);
}

static enum status put_result(struct server *s, const struct result_frame *result, struct err *err)
{
    buf_reset(&s->result);
    enum status st = result_frame_put(&s->result, result, err);
    while (st == STATUS_OK && !result_ring_put(s->page, buf_at(&s->result), s->result.len)) {
        st = nudge(s, false, err);
        wait_a_little();
    }
    s->unsaid_us = s->unsaid == 0 ? clock_boot_us() : s->unsaid_us;
    s->unsaid++;
    return st;
}

/* The worker reads the progress and checkpoint of a failed run from the page, so no other run may
 * write there before. */
static void wait_until_answered(const _Atomic int64_t *place, int64_t nonce)
{
    while (atomic_load(place) == -nonce) {
        wait_a_little();
    }
}

static bool has_said(const struct runner_page *page)
{
    return atomic_load(&page->progress_count) != 0 || atomic_load(&page->checkpoint_count) != 0;
}

/* ---- leftovers of handlers (docs/decisions/0019) ---- */

static const char *look_for_change(struct server *s)
{
    const char *change = process_state_change(&s->clean);
    s->clean_runs += s->unchecked == 1;
    s->unchecked = 0;
    return change;
}

static bool is_look_due(const struct server *s, const struct job_frame *job, bool is_last)
{
    return is_last || s->clean_runs < PROVE_RUNS || s->unchecked >= TRUST_RUNS || job->crashes > 0;
}

static void tell_change(struct server *s, const struct job_frame *job, const char *change,
                        struct result_frame *result)
{
    char note[128];
    (void)snprintf(note, sizeof note, "claimd: the handler left %s; its runner is replaced",
                   change);
    run_note(s->run, result, note);
    log_info("runner_dirty", LOG_I64("job", job->id), LOG_TEXT("left", change));
    result->leaving = true;
}

/* ---- jobs ---- */

/* Checks for leftovers if the worker took back all jobs behind the last run, which was not known
 * when the run ended. */
static enum status look_before_waiting(struct server *s, bool *ret_leaving, struct err *err)
{
    const char *change = s->unchecked > 0 ? look_for_change(s) : NULL;
    *ret_leaving = change != NULL;
    if (change != NULL) {
        log_info("runner_dirty", LOG_TEXT("left", change));
    }
    return s->unsaid > 0 || *ret_leaving ? nudge(s, *ret_leaving, err) : STATUS_OK;
}

/* NOT_FOUND: no complete frame has arrived. */
static enum status take_job(const struct server *s, struct job_frame *ret_job, size_t *ret_size,
                            struct err *err)
{
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t len = 0;
    enum status st = frame_take(&s->in, &type, &body, &len, ret_size, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (type != FRAME_JOB) {
        return err_fail(err, STATUS_INVALID, "the worker sent a frame of type %d", type);
    }
    return job_frame_get(body, len, ret_job, err);
}

static bool has_another(const struct server *s, size_t size)
{
    const struct buf rest = {
        .data = s->in.data, .head = s->in.head + size, .len = s->in.len - size};
    enum frame_type type;
    const char *body = NULL;
    size_t len = 0;
    struct err incomplete = {0};
    return frame_take(&rest, &type, &body, &len, &size, &incomplete) != STATUS_NOT_FOUND;
}

/* Waits for the next JOB; its texts are borrowed from s->in until *ret_size bytes are consumed. */
static enum status next_job(struct server *s, struct job_frame *ret_job, size_t *ret_size,
                            bool *ret_leaving, struct err *err)
{
    check_between_jobs(s);
    for (;;) {
        struct err incomplete = {0};
        enum status st = take_job(s, ret_job, ret_size, &incomplete);
        if (st == STATUS_OK) {
            return STATUS_OK;
        }
        if (st != STATUS_NOT_FOUND) {
            return err_fail(err, st, "%s", incomplete.msg);
        }
        st = look_before_waiting(s, ret_leaving, err);
        if (st != STATUS_OK || *ret_leaving) {
            return st;
        }
        st = receive_some(&s->in, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

static enum status call_handler(struct server *s, const struct claimd_kind *kind,
                                const struct job_frame *job, _Atomic int64_t *place,
                                struct result_frame *ret, struct err *err)
{
    if (atomic_load(place) <= 0) {
        return err_fail(err, STATUS_NOT_FOUND, "job %" PRId64 " was taken back", job->id);
    }
    atomic_store(&s->watchdog->job_runs, true);
    if (watchdog_time_is_up(s->page, clock_boot_us())) {
        return err_fail(err, STATUS_TIMEOUT, "job %" PRId64 " arrived after its deadline", job->id);
    }
    enum status st = run_job(s->run, kind, job, place, ret, err);
    if (getpid() != s->self) {
        _exit(1); /* a handler forked, and its child returned from it too */
    }
    if (st == STATUS_OK && atomic_load(place) != -job->nonce) {
        end_as_left(s->page,
                    job->id); /* an earlier run returned, or this one was answered already */
    }
    atomic_store(&s->watchdog->job_runs, false);
    return st;
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

/* Prepares the kind's program before the job begins. If the program can't be started, withdraws the
 * kind and tells the worker by a HELLO. NULL: the kind is not served. */
static const struct claimd_kind *served_kind(struct server *s, const char *name, size_t len,
                                             struct err *err)
{
    const struct claimd_kind *kind = plugin_set_find(s->plugins, name, len);
    struct err why = {0};
    if (kind == NULL || !program_serves(kind) ||
        program_prepare(kind, s->page, &why) == STATUS_OK) {
        return kind;
    }
    if (plugin_set_withdraw(s->plugins, kind, why.msg, err) == STATUS_OK) {
        (void)say_hello(s, err);
    }
    return NULL;
}

/* NOT_FOUND: the worker has taken the job back. */
static enum status run_or_refuse(struct server *s, const struct job_frame *job,
                                 _Atomic int64_t *place, struct result_frame *ret, struct err *err)
{
    struct err failed = {0};
    const struct claimd_kind *kind = served_kind(s, job->kind, job->kind_len, &failed);
    if (failed.status != STATUS_OK) {
        *err = failed;
        return failed.status;
    }
    if (kind != NULL) {
        return call_handler(s, kind, job, place, ret, err);
    }
    int64_t ticket = atomic_load(place);
    if (ticket <= 0 || !atomic_compare_exchange_strong(place, &ticket, -ticket)) {
        return STATUS_NOT_FOUND;
    }
    run_refuse(s->run, job, ret);
    return STATUS_OK;
}

static enum status answer(struct server *s, const struct result_frame *result,
                          const _Atomic int64_t *place, bool is_last, struct err *err)
{
    bool is_read_first = result->outcome != CLAIMD_DONE && has_said(s->page);
    enum status st = put_result(s, result, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (is_last || result->leaving || is_read_first || s->unsaid >= NUDGE_RESULTS ||
        clock_boot_us() - s->unsaid_us >= NUDGE_US) {
        st = nudge(s, false, err);
    }
    if (is_read_first && !result->leaving) {
        wait_until_answered(place, result->nonce);
    }
    return st;
}

/* Runs one job and puts its result into the ring. *ret_leaving: this process must not run
 * another. */
static enum status serve_one(struct server *s, bool *ret_leaving, struct err *err)
{
    struct job_frame job = {0};
    size_t size = 0;
    enum status st = next_job(s, &job, &size, ret_leaving, err);
    if (st != STATUS_OK || *ret_leaving) {
        return st;
    }
    _Atomic int64_t *place = &s->page->places[s->received % RUNNER_DEPTH];
    struct result_frame result = {0};
    s->received++;
    st = run_or_refuse(s, &job, place, &result, err);
    if (st == STATUS_NOT_FOUND) {
        buf_consume(&s->in, size);
        return STATUS_OK;
    }
    if (st != STATUS_OK) {
        return st;
    }
    s->unchecked++;
    bool is_last = !has_another(s, size);
    const char *change = is_look_due(s, &job, is_last) ? look_for_change(s) : NULL;
    if (change != NULL) {
        tell_change(s, &job, change, &result);
    }
    st = answer(s, &result, place, is_last, err);
    *ret_leaving = result.leaving;
    buf_consume(&s->in, size);
    return st;
}

/* Tries the programs that could not be started before, so that their kinds are announced only if
 * they can be started now. */
static enum status start_doubtful(struct server *s, struct err *err)
{
    const struct claimd_kind *kind = NULL;
    while ((kind = plugin_set_doubtful(s->plugins)) != NULL) {
        struct err why = {0};
        enum status st = program_prepare(kind, s->page, &why);
        if (st != STATUS_OK) {
            st = plugin_set_withdraw(s->plugins, kind, why.msg, err);
        }
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status serve_all(struct server *s, struct err *err)
{
    enum status st = start_doubtful(s, err);
    if (st == STATUS_OK) {
        st = say_hello(s, err);
    }
    bool leaving = false;
    while (st == STATUS_OK && !leaving) {
        st = serve_one(s, &leaving, err);
    }
    return st == STATUS_NOT_FOUND ? STATUS_OK : st;
}

enum status serve(struct runner_page *page, struct plugin_set *plugins, struct watchdog *w,
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
                       .result = BUF_INIT(FRAME_MAX),
                       .run = run,
                       .self = getpid()};
    enum status st = catch_term(page, err);
    if (st == STATUS_OK) {
        process_state_end_children(NULL); /* left by constructors during the trials */
        process_state_baseline(&s.clean, program_is);
        st = serve_all(&s, err);
    }
    process_state_end_children(NULL);
    buf_release(&s.in);
    buf_release(&s.out);
    buf_release(&s.result);
    buf_release(&run->args);
    buf_release(&run->more);
    return st;
}
