/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "worker/run_log.h"
#include "worker/runner_env.h"
#include "worker/slot_internal.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#define RESTART_FIRST_MS 100
#define RESTART_MAX_MS 10000
#define HELLO_DEADLINE_MS 20000
#define HELLO_RENEWALS_MAX 8
#define EOF_GRACE_MS \
    200 /* between a child's exit and the end of its pipe, if something keeps that open */
#define LEAVE_DEADLINE_MS 2000 /* for a runner that said it leaves: it ends its children first */

static void start_child(struct slot *s);

/* ---- the end of a run and of a child ---- */

void slot_report(struct slot *s, const struct slot_run *run)
{
    void *job = TAKE(s->job);
    s->options.events->ended(s->options.ctx, s, job, run);
}

static void death_text(const struct slot *s, char *ret_text, size_t size)
{
    if (s->broken[0] != '\0') {
        (void)snprintf(ret_text, size, "%s", s->broken);
    } else if (atomic_load(&s->page->was_left) != 0) {
        (void)snprintf(
            ret_text, size,
            "the handler ended its thread, jumped out of itself or had forged its result");
    } else if (s->term_signal != 0) {
        (void)snprintf(ret_text, size, "signal %d (%s)", s->term_signal, strsignal(s->term_signal));
    } else {
        (void)snprintf(ret_text, size, "exit code %lld without a result",
                       (long long)s->exit_status);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct slot *s = handle->data;
    s->open_handles--;
    if (s->is_closing && s->open_handles == 0) {
        if (s->page != NULL) {
            (void)munmap(s->page, RUNNER_PAGE_SIZE);
        }
        close_slot(&s->page_fd);
        buf_release(&s->in);
        buf_release(&s->out);
        free(s);
        return;
    }
    bool is_free = !s->has_process && !s->has_pipe && s->open_handles == 1; /* the timer stays */
    if (!s->is_closing && s->state == SLOT_EMPTY && is_free &&
        !uv_is_active((uv_handle_t *)&s->timer)) {
        start_child(s);
    }
}

static void close_child_handles(struct slot *s)
{
    if (s->has_process) {
        s->has_process = false;
        uv_close((uv_handle_t *)&s->process, on_handle_closed);
    }
    if (s->has_pipe) {
        s->has_pipe = false;
        uv_close((uv_handle_t *)&s->pipe, on_handle_closed);
    }
}

static void on_restart(uv_timer_t *timer)
{
    start_child(timer->data);
}

static void report_death(struct slot *s, const char *text)
{
    bool was_started = slot_has_started(s);
    bool is_blameless = s->is_spoilt && s->broken[0] != '\0';
    s->has_worked = s->has_worked || was_started;
    struct slot_run run = {.end = !was_started   ? SLOT_NOT_STARTED
                                  : is_blameless ? SLOT_SPOILT
                                                 : SLOT_DIED,
                           .text = text};
    char log_tail[JOB_LOG_TAIL_MAX];
    if (was_started) {
        run.log_tail = log_tail;
        run.log_tail_len = run_log_tail(s->page, log_tail);
    }
    slot_report(s, &run);
}

static void report_load_death(struct slot *s, const char *text)
{
    char file[RUNNER_FILE_SIZE];
    memcpy(file, s->page->loading, sizeof file);
    file[sizeof file - 1] = '\0';
    if (file[0] != '\0' && strchr(file, '/') == NULL) {
        s->options.events->load_died(s->options.ctx, s, file, text, s->is_hung);
    }
}

/* The child is gone and all that it wrote has been read. */
static void child_ended(struct slot *s)
{
    char text[SLOT_TEXT_MAX];
    death_text(s, text, sizeof text);
    (void)uv_timer_stop(&s->timer);
    s->state = SLOT_EMPTY;
    if (s->job != NULL) {
        report_death(s, text);
    }
    if (!s->is_retiring && !s->is_closing) {
        s->options.events->died(s->options.ctx, s, s->pid, text);
    }
    if (!s->has_hello && !s->is_closing) {
        report_load_death(s, text);
    }
    if (s->has_worked || s->is_outdated) {
        s->restart_ms = RESTART_FIRST_MS;
    } else if (!s->is_closing) {
        uint64_t wait = (uint64_t)rand_jitter(&s->rand, s->restart_ms, 10);
        timer_start(&s->timer, on_restart, wait, 0);
        s->restart_ms = s->restart_ms * 2 < RESTART_MAX_MS ? s->restart_ms * 2 : RESTART_MAX_MS;
    }
    close_child_handles(s); /* the next one starts when these are closed, or when the timer fires */
}

static void on_grace_over(uv_timer_t *timer)
{
    child_ended(timer->data);
}

static void check_ended(struct slot *s)
{
    if (s->has_exited && s->has_eof) {
        child_ended(s);
    } else if (s->has_exited) {
        timer_start(&s->timer, on_grace_over, EOF_GRACE_MS, 0);
    }
}

static void on_exit_child(uv_process_t *process, int64_t exit_status, int term_signal)
{
    struct slot *s = process->data;
    s->has_exited = true;
    s->exit_status = exit_status;
    s->term_signal = term_signal;
    (void)kill(-s->pid, SIGKILL); /* what the handler may have left behind (fault.G4) */
    check_ended(s);
}

void slot_kill_child(struct slot *s)
{
    if (s->has_process && !s->has_exited) {
        s->is_dying = true;
        if (kill(-s->pid, SIGKILL) != 0) {
            (void)kill(s->pid, SIGKILL); /* not in its own group yet */
        }
    }
}

void slot_kill(struct slot *s)
{
    s->was_killed = true;
    slot_kill_child(s);
}

/* Counts from the last step of loading: many plugins that hang are told apart by the runner
 * itself. */
static void on_hello_late(uv_timer_t *timer)
{
    struct slot *s = timer->data;
    int32_t loaded = atomic_load(&s->page->loaded);
    if (loaded != s->loaded && s->hello_renewals < HELLO_RENEWALS_MAX) {
        s->loaded = loaded;
        s->hello_renewals++;
        timer_start(timer, on_hello_late, HELLO_DEADLINE_MS, 0);
        return;
    }
    s->is_hung = true;
    (void)snprintf(s->broken, sizeof s->broken, "no hello within %d s", HELLO_DEADLINE_MS / 1000);
    slot_kill_child(s);
}

static void on_leave_late(uv_timer_t *timer)
{
    slot_kill_child(timer->data);
}

void slot_retire(struct slot *s, bool leaves)
{
    s->is_retiring = true;
    s->is_dying = true;
    if (leaves) {
        timer_start(&s->timer, on_leave_late, LEAVE_DEADLINE_MS, 0);
    } else {
        slot_kill_child(s);
    }
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct slot *s = handle->data;
    (void)suggested;
    const size_t chunk = 16384;
    if (buf_reserve(&s->in, chunk, NULL) != STATUS_OK) {
        *ret = uv_buf_init(NULL, 0);
        return;
    }
    *ret = uv_buf_init(buf_at(&s->in) + s->in.len, (unsigned)chunk);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *unused)
{
    struct slot *s = stream->data;
    (void)unused;
    if (n > 0) {
        buf_grew(&s->in, (size_t)n);
        slot_take_frames(s);
    } else if (n < 0) {
        (void)uv_read_stop(stream);
        s->has_eof = true;
        if (!s->has_exited) {
            slot_kill_child(s); /* a child without its pipe is of no use */
        }
        check_ended(s);
    }
}

/* ---- starting ---- */

#define ARGS_MAX (10 + 2 * SLOT_WITHOUT_MAX)

static void put_arguments(const struct slot *s, const char *parent, const char *ret_args[ARGS_MAX])
{
    const struct slot_without *without = s->options.without;
    size_t n = 0;
    ret_args[n++] = s->options.runner;
    ret_args[n++] = "--parent";
    ret_args[n++] = parent;
    ret_args[n++] = "--plugins";
    ret_args[n++] = s->options.plugin_dir;
    ret_args[n++] = "--owners";
    ret_args[n++] = s->options.plugin_owners == NULL ? "" : s->options.plugin_owners;
    if (log_format() == LOG_JSON) {
        ret_args[n++] = "--log-json";
    }
    for (size_t i = 0; without != NULL && i < without->count; i++) {
        ret_args[n++] = "--without";
        ret_args[n++] = without->files[i];
    }
    ret_args[n] = NULL;
}

static enum status spawn(struct slot *s, struct err *err)
{
    char parent[16];
    const char *args[ARGS_MAX];
    (void)snprintf(parent, sizeof parent, "%d", (int)getpid());
    put_arguments(s, parent, args);
    uv_stdio_container_t stdio[5] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&s->pipe},
        {.flags = UV_INHERIT_FD, .data.fd = s->page_fd},
    };
    char *env[RUNNER_ENV_MAX];
    runner_env_list(env); /* ours would stay on its stack, whatever it clears later */
    uv_process_options_t options = {.file = s->options.runner,
                                    .env = env,
                                    .args = (char **)(uintptr_t)args,
                                    .exit_cb = on_exit_child,
                                    .stdio = stdio,
                                    .stdio_count = 5};
    (void)uv_pipe_init(s->options.loop, &s->pipe, 0);
    s->has_pipe = true;
    s->has_process = true;
    s->open_handles += 2;
    int failed = uv_spawn(s->options.loop, &s->process, &options);
    if (failed != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "%s: %s", s->options.runner, uv_strerror(failed));
    }
    s->pid = uv_process_get_pid(&s->process);
    return STATUS_OK;
}

static void start_child(struct slot *s)
{
    assert(!s->has_process && !s->has_pipe && s->job == NULL);
    struct err err = {0};
    s->has_exited = s->has_eof = s->has_hello = s->has_worked = s->is_dying = s->was_killed =
        s->is_retiring = s->was_asked_to_stop = s->is_spoilt = s->is_outdated = s->is_hung = false;
    s->loaded = s->hello_renewals = 0;
    s->job_nonce = s->last_nonce = 0;
    s->broken[0] = '\0';
    s->jobs_done = 0;
    s->started_us = clock_boot_us();
    s->state = SLOT_STARTING;
    buf_reset(&s->in);
    buf_reset(&s->out);
    memset(s->page, 0, sizeof *s->page);
    if (spawn(s, &err) != STATUS_OK) {
        (void)snprintf(s->broken, sizeof s->broken, "%.200s", err.msg);
        child_ended(s);
        return;
    }
    timer_start(&s->timer, on_hello_late, HELLO_DEADLINE_MS, 0);
    (void)uv_read_start((uv_stream_t *)&s->pipe, on_alloc, on_read);
}

static enum status make_page(struct slot *s, struct err *err)
{
    s->page_fd = memfd_create("claimd-runner", MFD_CLOEXEC);
    if (s->page_fd < 0 || ftruncate(s->page_fd, RUNNER_PAGE_SIZE) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "shared page of a runner");
    }
    void *at = mmap(NULL, RUNNER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, s->page_fd, 0);
    if (at == MAP_FAILED) {
        return err_fail_sys(err, STATUS_NOMEM, errno, "shared page of a runner");
    }
    s->page = at;
    return STATUS_OK;
}

enum status slot_open(const struct slot_options *options, struct slot **ret_slot, struct err *err)
{
    struct slot *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "slot");
    }
    s->options = *options;
    s->page_fd = -1;
    s->restart_ms = RESTART_FIRST_MS;
    buf_init(&s->in, FRAME_MAX + ((size_t)64 << 10));
    buf_init(&s->out, FRAME_MAX + ((size_t)64 << 10));
    rand_seed_from_system(&s->rand);
    enum status st = make_page(s, err);
    if (st != STATUS_OK) {
        close_slot(&s->page_fd);
        free(s);
        return st;
    }
    s->process.data = s->pipe.data = s->timer.data = s;
    (void)uv_timer_init(options->loop, &s->timer);
    s->open_handles = 1;
    start_child(s);
    *ret_slot = s;
    return STATUS_OK;
}

void slot_close(struct slot *s)
{
    s->is_closing = true;
    s->job = NULL;
    slot_kill_child(s);
    close_child_handles(s);
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
}

void slot_replace(struct slot *s)
{
    s->is_outdated = true;
    if (slot_state(s) == SLOT_IDLE) {
        slot_retire(s, false);
    }
}

bool slot_is_current(const struct slot *s)
{
    bool has_child = s->state != SLOT_EMPTY && !s->is_dying && !s->has_exited;
    return has_child && s->has_hello && !s->is_outdated;
}

/* ---- running ---- */

enum slot_state slot_state(const struct slot *s)
{
    bool is_ending = s->state != SLOT_EMPTY && (s->is_dying || s->has_exited);
    return is_ending ? SLOT_ENDING : s->state;
}

int slot_pid(const struct slot *s)
{
    return s->pid;
}

bool slot_died_by_itself(const struct slot *s)
{
    return !s->was_killed;
}

static void flush(struct slot *s);

static void on_written(uv_write_t *request, int status)
{
    struct slot *s = request->data;
    s->is_writing = false;
    buf_reset(&s->out);
    if (status < 0 && s->has_process) {
        slot_kill_child(s); /* its run ends as not started */
    }
}

static void flush(struct slot *s)
{
    uv_stream_t *stream = (uv_stream_t *)&s->pipe;
    uv_buf_t all = uv_buf_init(buf_at(&s->out), (unsigned)s->out.len);
    int n = uv_try_write(stream, &all, 1);
    if (n > 0) {
        buf_consume(&s->out, (size_t)n);
    }
    if (s->out.len == 0) {
        return;
    }
    if (n < 0 && n != UV_EAGAIN) {
        slot_kill_child(s);
        return;
    }
    all = uv_buf_init(buf_at(&s->out), (unsigned)s->out.len);
    s->write.data = s;
    s->is_writing = uv_write(&s->write, stream, &all, 1, on_written) == 0;
    if (!s->is_writing) {
        slot_kill_child(s);
    }
}

void slot_run(struct slot *s, const struct job_frame *frame, void *job)
{
    assert(slot_state(s) == SLOT_IDLE && s->job == NULL);
    struct err err = {0};
    struct job_frame sent = *frame;
    sent.nonce = slot_draw_nonce(s);
    s->last_nonce = s->job_nonce;
    s->job_nonce = sent.nonce;
    s->job = job;
    s->job_id = frame->id;
    s->job_fence = frame->fence;
    s->state = SLOT_BUSY;
    s->was_asked_to_stop = false;
    atomic_store(&s->page->should_stop, 0);
    atomic_store(&s->page->started_nonce, 0);
    run_log_reset(s->page);
    if (sent.nonce < 1 || s->is_writing || job_frame_put(&s->out, &sent, &err) != STATUS_OK) {
        slot_kill_child(s);
        return;
    }
    flush(s);
}

void slot_limit(struct slot *s, int64_t kill_at_us, int64_t deadline_us)
{
    atomic_store(&s->page->kill_at_us, kill_at_us);
    atomic_store(&s->page->deadline_us, deadline_us);
}

bool slot_has_started(const struct slot *s)
{
    return atomic_load(&s->page->started_nonce) == s->job_nonce;
}

void slot_give_up_start(struct slot *s, int64_t after_us)
{
    (void)snprintf(s->broken, sizeof s->broken, "it did not start its job within %lld ms",
                   (long long)(after_us / US_PER_MS));
    s->is_spoilt = true;
    slot_kill_child(s);
}

void slot_ask_to_stop(struct slot *s)
{
    if (s->state == SLOT_BUSY && !s->was_asked_to_stop) {
        s->was_asked_to_stop = true;
        atomic_store(&s->page->should_stop, 1);
        (void)kill(s->pid, SIGTERM);
    }
}
