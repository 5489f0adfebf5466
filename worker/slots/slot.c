/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/timer.h"
#include "protocol/run_log.h"
#include "protocol/run_said.h"
#include "protocol/runner_env.h"
#include "worker/slots/slot_internal.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#define RESTART_FIRST_MS 100
#define RESTART_MAX_MS 10000
#define HELLO_DEADLINE_MS 20000
#define HELLO_RENEWALS_MAX 8
/* From a child's exit to the end of its pipe, if some process keeps that open. */
#define EOF_GRACE_MS 200
/* For a runner that announced its exit: it ends its children first. */
#define LEAVE_DEADLINE_MS 2000

/* ---- the page ---- */

static void release_page(struct slot *s)
{
    if (s->page != NULL) {
        (void)munmap(s->page, RUNNER_PAGE_SIZE);
        close_slot(&s->page_fd);
        s->page = NULL;
    }
}

/* Each child gets a new page, since processes that an earlier child left behind may still write to
 * its own. The page is sealed, because a handler that shortened it would kill the worker by
 * SIGBUS. */
static enum status make_page(struct slot *s, struct err *err)
{
    int fd = memfd_create("claimd-runner", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, RUNNER_PAGE_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        at = mmap(NULL, RUNNER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        close_slot(&fd);
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno,
                            "cannot make the shared page of a runner");
    }
    release_page(s);
    s->page = at;
    s->page_fd = fd;
    return STATUS_OK;
}

/* ---- output of the child ---- */

static void close_output(struct slot *s)
{
    close_slot(&s->output.fd);
    s->output.fd = -1;
}

/* Makes the pipe for the child's output. The worker keeps the read end, for output that is left in
 * it. Returns the other end; −1 = the system has no more descriptors, and uv_spawn() will refuse
 * it. */
static int make_output(struct slot *s)
{
    int ends[2] = {-1, -1};
    close_output(s);
    if (pipe2(ends, O_CLOEXEC) == 0) {
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    s->output = (struct run_output){.fd = ends[0], .page = s->page};
    return ends[1];
}

/* Logs the output that the runner did not get to read. */
static void take_output(struct slot *s)
{
    const struct slot_job *job = slot_first(s);
    s->output.job = job != NULL && slot_place(s, job) == PLACE_BEGUN ? job->id : 0;
    if (s->output.fd >= 0) {
        run_output_take(&s->output, -1);
        run_output_end_line(&s->output, -1);
        close_output(s);
    }
}

static void start_child(struct slot *s);

/* ---- the life of a child ---- */

typedef void enter_fn(struct slot *s);

static void send_kill(struct slot *s);
static void child_gone(struct slot *s);

/* For each state: the state that the worker sees, how long it may last until ON_LATE, what is done
 * on entering it, and the next state for each event. An event without one changes nothing. */
static const struct {
    enum slot_state seen_as;
    uint64_t limit_ms; /* 0 = none */
    enter_fn *enter;
    enum child_state after[CHILD_EVENT_COUNT];
} states[] = {
    [CHILD_NONE] = {.seen_as = SLOT_EMPTY},
    [CHILD_LOADING] = {.seen_as = SLOT_STARTING,
                       .limit_ms = HELLO_DEADLINE_MS,
                       .after = {[ON_FREE] = CHILD_IDLE,
                                 [ON_KILL] = CHILD_KILLED,
                                 [ON_PIPE_END] = CHILD_MUTE,
                                 [ON_EXIT] = CHILD_EXITED}},
    [CHILD_IDLE] = {.seen_as = SLOT_IDLE,
                    .after = {[ON_JOB] = CHILD_BUSY,
                              [ON_KILL] = CHILD_KILLED,
                              [ON_PIPE_END] = CHILD_MUTE,
                              [ON_EXIT] = CHILD_EXITED}},
    [CHILD_BUSY] = {.seen_as = SLOT_BUSY,
                    .after = {[ON_FREE] = CHILD_IDLE,
                              [ON_LEAVE] = CHILD_LEAVING,
                              [ON_KILL] = CHILD_KILLED,
                              [ON_PIPE_END] = CHILD_MUTE,
                              [ON_EXIT] = CHILD_EXITED}},
    [CHILD_LEAVING] = {.seen_as = SLOT_ENDING,
                       .limit_ms = LEAVE_DEADLINE_MS,
                       .enter = slot_take_back,
                       .after = {[ON_LATE] = CHILD_KILLED,
                                 [ON_KILL] = CHILD_KILLED,
                                 [ON_PIPE_END] = CHILD_MUTE,
                                 [ON_EXIT] = CHILD_EXITED}},
    [CHILD_KILLED] = {.seen_as = SLOT_ENDING,
                      .enter = send_kill,
                      .after = {[ON_PIPE_END] = CHILD_MUTE, [ON_EXIT] = CHILD_EXITED}},
    [CHILD_MUTE] = {.seen_as = SLOT_ENDING, .enter = send_kill, .after = {[ON_EXIT] = CHILD_GONE}},
    [CHILD_EXITED] = {.seen_as = SLOT_ENDING,
                      .limit_ms = EOF_GRACE_MS,
                      .after = {[ON_LATE] = CHILD_GONE, [ON_PIPE_END] = CHILD_GONE}},
    [CHILD_GONE] = {.seen_as = SLOT_EMPTY, .enter = child_gone},
};

static void on_late(uv_timer_t *timer);

static void enter(struct slot *s, enum child_state state)
{
    s->child.state = state;
    (void)uv_timer_stop(&s->timer); /* it belongs to the previous state */
    if (states[state].limit_ms > 0) {
        timer_start(&s->timer, on_late, states[state].limit_ms, 0);
    }
    if (states[state].enter != NULL) {
        states[state].enter(s);
    }
}

void slot_step(struct slot *s, enum child_event event)
{
    enum child_state next = states[s->child.state].after[event];
    if (next != CHILD_NONE) {
        enter(s, next);
    }
}

enum slot_state slot_state(const struct slot *s)
{
    return states[s->child.state].seen_as;
}

bool slot_is_up(const struct slot *s)
{
    return slot_state(s) != SLOT_EMPTY && slot_state(s) != SLOT_ENDING;
}

static void send_kill(struct slot *s)
{
    slot_take_back(s);
    if (kill(-s->child.pid, SIGKILL) != 0) {
        (void)kill(s->child.pid, SIGKILL); /* not in its own group yet */
    }
}

static void on_exit_child(uv_process_t *process, int64_t exit_status, int term_signal)
{
    struct slot *s = process->data;
    s->child.exit_status = exit_status;
    s->child.term_signal = term_signal;
    (void)kill(-s->child.pid, SIGKILL); /* ends what the handler may have left behind (fault.G4) */
    slot_step(s, ON_EXIT);
}

/* The deadline restarts at each loading step; the runner itself finds out which plugin hangs. */
static void hello_is_late(struct slot *s)
{
    int32_t loaded = atomic_load(&s->page->loaded);
    if (loaded != s->child.loaded && s->child.hello_renewals < HELLO_RENEWALS_MAX) {
        s->child.loaded = loaded;
        s->child.hello_renewals++;
        enter(s, CHILD_LOADING);
        return;
    }
    struct err why = {0};
    err_set(&why, STATUS_TIMEOUT, 0, "no hello within %d s", HELLO_DEADLINE_MS / 1000);
    s->child.cause = CAUSE_HUNG;
    slot_break_off(s, &why);
}

static void on_late(uv_timer_t *timer)
{
    struct slot *s = timer->data;
    if (s->child.state == CHILD_LOADING) {
        hello_is_late(s);
        return;
    }
    slot_step(s, ON_LATE);
}

void slot_break_off(struct slot *s, const struct err *why)
{
    s->child.broken = *why;
    slot_step(s, ON_KILL);
}

void slot_retire(struct slot *s, bool leaves)
{
    s->child.cause = CAUSE_REPLACED;
    slot_step(s, leaves ? ON_LEAVE : ON_KILL);
}

void slot_kill(struct slot *s)
{
    if (s->child.cause == CAUSE_ITSELF) {
        s->child.cause = CAUSE_ORDERED;
    }
    slot_step(s, ON_KILL);
}

/* ---- the end of a run and of a child ---- */

static void death_text(const struct slot *s, char *ret_text, size_t size)
{
    const struct slot_child *c = &s->child;
    if (c->broken.status != STATUS_OK) {
        (void)snprintf(ret_text, size, "%s", c->broken.msg);
    } else if (*(volatile char *)s->page->end_reason != '\0') {
        char reason[RUNNER_REASON_SIZE];
        memcpy(reason, s->page->end_reason, sizeof reason);
        (void)utf8_clean(reason, strnlen(reason, sizeof reason), ret_text, size);
    } else if (atomic_load(&s->page->was_left) != 0) {
        (void)snprintf(
            ret_text, size,
            "the handler ended its thread, jumped out of itself or had forged its result");
    } else if (c->term_signal != 0) {
        (void)snprintf(ret_text, size, "signal %d (%s)", c->term_signal, strsignal(c->term_signal));
    } else {
        (void)snprintf(ret_text, size, "exit code %lld without a result",
                       (long long)c->exit_status);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct slot *s = handle->data;
    s->open_handles--;
    if (s->is_closing && s->open_handles == 0) {
        release_page(s);
        close_output(s);
        buf_release(&s->in);
        buf_release(&s->results);
        buf_release(&s->out);
        free(s);
        return;
    }
    bool is_free = s->open_handles == 1; /* only the timer is left */
    if (!s->is_closing && is_free && !uv_is_active((uv_handle_t *)&s->timer)) {
        start_child(s);
    }
}

static void close_child_handles(struct slot *s)
{
    uv_close((uv_handle_t *)&s->process, on_handle_closed);
    uv_close((uv_handle_t *)&s->pipe, on_handle_closed);
}

static void on_restart(uv_timer_t *timer)
{
    start_child(timer->data);
}

static void report_started_death(struct slot *s, const char *text, bool is_sure)
{
    char log_tail[JOB_LOG_TAIL_MAX];
    bool is_blameless = s->child.is_spoilt && s->child.broken.status != STATUS_OK;
    enum run_end certain = is_blameless ? RUN_END_SPOILT : RUN_END_CRASHED;
    struct slot_run run = {.end = is_sure ? certain : RUN_END_DOUBTED,
                           .text = text,
                           .log_tail = log_tail,
                           .log_tail_len = run_log_tail(s->page, log_tail)};
    slot_report(s, &run);
}

static void report_load_death(struct slot *s, const char *text)
{
    char file[RUNNER_FILE_SIZE];
    char path[PATH_MAX];
    memcpy(file, s->page->loading, sizeof file);
    file[sizeof file - 1] = '\0';
    int len = snprintf(path, sizeof path, "%s/%s", s->options.plugin_dir, file);
    bool is_name = file[0] != '\0' && strchr(file, '/') == NULL && len < (int)sizeof path;
    if (is_name && access(path, F_OK) == 0) { /* otherwise it was written over */
        s->options.events->load_died(s->options.ctx, s, file, text, s->child.cause == CAUSE_HUNG);
    }
}

/* Restarts at once if the last child had started a job, otherwise with increasing delay. */
static void plan_restart(struct slot *s, bool has_worked)
{
    if (has_worked || s->child.is_outdated) {
        s->restart_ms = RESTART_FIRST_MS;
        return; /* on_handle_closed() starts it */
    }
    uint64_t wait = (uint64_t)rand_jitter(&s->rand, s->restart_ms, 10);
    timer_start(&s->timer, on_restart, wait, 0);
    s->restart_ms = s->restart_ms * 2 < RESTART_MAX_MS ? s->restart_ms * 2 : RESTART_MAX_MS;
}

/* Jobs begin in their order, each when the one before it is answered, so of those that are left
 * only the first can have begun. Returns true if it may have. */
static bool report_left(struct slot *s, const char *text)
{
    bool was_started = false;
    bool is_first = true;
    for (const struct slot_job *job = slot_first(s); job != NULL; job = slot_first(s)) {
        enum slot_place place = slot_place(s, job);
        if (place == PLACE_WAITS || place == PLACE_UNSERVED) {
            slot_report(s, &(struct slot_run){.end = RUN_END_NOT_STARTED, .text = text});
        } else {
            was_started = true;
            report_started_death(s, text, is_first && place == PLACE_BEGUN);
        }
        is_first = false;
    }
    return was_started;
}

static void child_gone(struct slot *s)
{
    char text[ERR_TEXT_MAX];
    slot_take_results(s); /* what it put into the ring before it died */
    slot_take_back(s);
    take_output(s);
    death_text(s, text, sizeof text);
    close_child_handles(s);
    bool was_started = report_left(s, text);
    if (s->child.cause != CAUSE_REPLACED && !s->is_closing) {
        s->options.events->died(s->options.jobs, s, s->child.pid, text);
    }
    if (s->child.hellos == 0 && !s->is_closing) {
        report_load_death(s, text);
    }
    if (!s->is_closing) {
        plan_restart(s, was_started || s->child.jobs_done > 0);
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
        slot_step(s, ON_PIPE_END);
    }
}

/* ---- starting ---- */

#define ARGS_MAX (14 + 4 * SLOT_WITHOUT_MAX)

static size_t put_files(const char *option, const struct slot_without *list, const char **ret_args)
{
    size_t n = 0;
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        ret_args[n++] = option;
        ret_args[n++] = list->files[i];
    }
    return n;
}

static void put_arguments(const struct slot *s, const char *parent, const char *ret_args[ARGS_MAX])
{
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
    if (s->options.handlers != NULL) {
        ret_args[n++] = "--handlers";
        ret_args[n++] = s->options.handlers;
    }
    if (s->options.commands != NULL) {
        ret_args[n++] = "--commands";
        ret_args[n++] = s->options.commands;
    }
    n += put_files("--without", s->options.without, ret_args + n);
    n += put_files("--start", s->options.doubtful, ret_args + n);
    ret_args[n] = NULL;
}

static enum status spawn(struct slot *s, struct err *err)
{
    autoclose int in = make_output(s);
    char parent[16];
    const char *args[ARGS_MAX];
    (void)snprintf(parent, sizeof parent, "%d", (int)getpid());
    put_arguments(s, parent, args);
    uv_stdio_container_t stdio[RUNNER_FD_LAST + 1] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = in},
        {.flags = UV_INHERIT_FD, .data.fd = in},
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&s->pipe},
        {.flags = UV_INHERIT_FD, .data.fd = s->page_fd},
        {.flags = UV_INHERIT_FD, .data.fd = s->output.fd},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    char *env[RUNNER_ENV_MAX];
    runner_env_list(env); /* the worker's own would stay on the child's stack */
    uv_process_options_t options = {.file = s->options.runner,
                                    .env = env,
                                    .args = (char **)(uintptr_t)args,
                                    .exit_cb = on_exit_child,
                                    .stdio = stdio,
                                    .stdio_count = RUNNER_FD_LAST + 1};
    (void)uv_pipe_init(s->options.loop, &s->pipe, 0);
    s->open_handles += 2;
    int failed = uv_spawn(s->options.loop, &s->process, &options);
    if (failed != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "%s: %s", s->options.runner, uv_strerror(failed));
    }
    s->child.pid = uv_process_get_pid(&s->process);
    return STATUS_OK;
}

static void start_child(struct slot *s)
{
    assert(s->open_handles == 1 && s->jobs.count == 0);
    struct err err = {0};
    s->child = (struct slot_child){.started_us = clock_boot_us()};
    s->jobs = (struct slot_jobs){.count = 0};
    s->ring_taken = 0;
    s->is_writing = false;
    buf_reset(&s->in);
    buf_reset(&s->results);
    buf_reset(&s->out);
    if (make_page(s, NULL) != STATUS_OK) { /* then it uses the previous child's */
        memset(s->page, 0, offsetof(struct runner_page, ring));
    }
    if (spawn(s, &err) != STATUS_OK) {
        slot_break_off(s, &err);
        enter(s, CHILD_GONE);
        return;
    }
    enter(s, CHILD_LOADING);
    (void)uv_read_start((uv_stream_t *)&s->pipe, on_alloc, on_read);
}

enum status slot_open(const struct slot_options *options, struct slot **ret_slot, struct err *err)
{
    struct slot *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "slot");
    }
    s->options = *options;
    s->page_fd = -1;
    s->output.fd = -1;
    s->restart_ms = RESTART_FIRST_MS;
    buf_init(&s->in, FRAME_MAX + ((size_t)64 << 10));
    buf_init(&s->results, RUNNER_RING_BYTES + FRAME_MAX);
    buf_init(&s->out, FRAME_MAX + ((size_t)64 << 10));
    rand_seed_from_system(&s->rand);
    enum status st = make_page(s, err);
    if (st != STATUS_OK) {
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
    s->jobs.count = 0;
    slot_step(s, ON_KILL);
    if (s->child.state != CHILD_GONE) {
        close_child_handles(s);
        s->child.state = CHILD_GONE;
    }
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
}

void slot_replace(struct slot *s)
{
    s->child.is_outdated = true;
    if (s->child.state == CHILD_IDLE) {
        slot_retire(s, false);
    }
}

int slot_hellos(const struct slot *s)
{
    return s->child.hellos;
}

bool slot_is_loading(const struct slot *s)
{
    return s->child.hellos > 0 && *(volatile char *)s->page->loading != '\0';
}

bool slot_is_current(const struct slot *s)
{
    return slot_is_up(s) && s->child.hellos > 0 && !s->child.is_outdated;
}

/* ---- running ---- */

int slot_pid(const struct slot *s)
{
    return s->child.pid;
}

bool slot_died_by_itself(const struct slot *s)
{
    return s->child.cause != CAUSE_ORDERED;
}

void slot_give_up_start(struct slot *s, int64_t after_us)
{
    struct err why = {0};
    err_set(&why, STATUS_TIMEOUT, 0, "it did not start its job within %lld ms",
            (long long)(after_us / US_PER_MS));
    s->child.is_spoilt = true;
    slot_break_off(s, &why);
}

const struct runner_page *slot_page(const struct slot *s)
{
    return s->page;
}
