/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "runner/process_state.h"
#include "runner/program_internal.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#define PROGRAMS_MAX 64
#define LOAD_LOOK_MS 500

/* The programs of this process, in which a kind is looked up. */
static struct {
    struct program *list[PROGRAMS_MAX];
    size_t count;
} programs;

/* ---- the list of programs ---- */

static char *variable(const char *name, const char *value)
{
    char *text = NULL;
    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

static bool is_own(const struct handler_file *h, const char *name)
{
    size_t i = 0;
    while (i < h->env_count && strcmp(h->env[i][0], name) != 0) {
        i++;
    }
    return i < h->env_count;
}

static bool fill_env(struct program *p)
{
    const struct handler_file *h = &p->file;
    size_t n = 0;
    for (size_t i = 0; i < h->env_count; i++) {
        p->env[n++] = variable(h->env[i][0], h->env[i][1]);
    }
    for (size_t i = 0; RUNNER_ENV_NAMES[i] != NULL; i++) {
        const char *value = getenv(RUNNER_ENV_NAMES[i]);
        if (value != NULL && !is_own(h, RUNNER_ENV_NAMES[i])) {
            p->env[n++] = variable(RUNNER_ENV_NAMES[i], value);
        }
    }
    if (!h->is_once) {
        p->env[n++] = variable("CLAIMD_IN", "3");
        p->env[n++] = variable("CLAIMD_OUT", "4");
    }
    bool is_whole = true;
    for (size_t i = 0; i < n; i++) {
        is_whole = is_whole && p->env[i] != NULL;
    }
    return is_whole;
}

static void release(struct program *p)
{
    for (size_t i = 0; i < PROGRAM_ENV_TEXTS; i++) {
        free(p->env[i]);
    }
    free(p);
}

enum status program_add(struct handler_file *h, struct claimd_plugin *ret_plugin, struct err *err)
{
    if (programs.count == PROGRAMS_MAX) {
        return err_fail(err, STATUS_LIMIT, "more than %d programs", PROGRAMS_MAX);
    }
    struct program *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "program");
    }
    p->file = *h;
    buf_init(&p->to, PROGRAM_JOB_MAX);
    buf_init(&p->said, PROGRAM_LINE_MAX + PROGRAM_READ_BYTES);
    if (!fill_env(p)) {
        release(p);
        return err_fail(err, STATUS_NOMEM, "program");
    }
    h->root = NULL;
    programs.list[programs.count++] = p;
    *ret_plugin =
        (struct claimd_plugin){.abi = CLAIMD_ABI, .name = p->file.name, .version = p->file.version};
    memcpy(ret_plugin->kinds, p->file.kinds, sizeof ret_plugin->kinds);
    for (size_t i = 0; i < CLAIMD_KINDS_MAX && ret_plugin->kinds[i].name != NULL; i++) {
        ret_plugin->kinds[i].handle = program_handle;
    }
    return STATUS_OK;
}

bool program_serves(const struct claimd_kind *kind)
{
    return kind->handle == program_handle;
}

struct program *program_find(const char *kind)
{
    for (size_t i = 0; i < programs.count; i++) {
        const struct claimd_kind *kinds = programs.list[i]->file.kinds;
        for (size_t k = 0; k < CLAIMD_KINDS_MAX && kinds[k].name != NULL; k++) {
            if (strcmp(kinds[k].name, kind) == 0) {
                return programs.list[i];
            }
        }
    }
    return NULL;
}

const char *program_file(const struct claimd_kind *kind)
{
    const struct program *p = program_find(kind->name);
    return p == NULL ? "" : p->file.file;
}

bool program_is(pid_t pid)
{
    for (size_t i = 0; i < programs.count; i++) {
        if (programs.list[i]->process.pid == pid) {
            return true;
        }
    }
    return false;
}

/* ---- its pipes ---- */

void program_end(struct program *p)
{
    program_process_end(&p->process);
    process_state_end_children(program_is); /* processes that it left behind */
    buf_reset(&p->to);
    buf_reset(&p->said);
    p->n = 0;
}

/* Call with SIGPIPE blocked: if writing raises one, it is consumed here. */
enum status program_flush(struct program *p, struct err *err)
{
    while (p->to.len > 0) {
        ssize_t n = write(p->process.in, buf_at(&p->to), p->to.len);
        if (n < 0 && errno == EAGAIN) {
            return STATUS_OK;
        }
        if (n < 0 && errno != EINTR) {
            int failed = errno;
            sigset_t pipe;
            (void)sigemptyset(&pipe);
            (void)sigaddset(&pipe, SIGPIPE);
            (void)sigtimedwait(&pipe, NULL, &(struct timespec){0});
            return err_fail_sys(err, STATUS_UNAVAILABLE, failed,
                                "the program does not accept a job");
        }
        buf_consume(&p->to, n > 0 ? (size_t)n : 0);
    }
    return STATUS_OK;
}

enum status program_check_alive(const struct program *p, int wait_ms, struct err *err)
{
    struct program_exit end;
    return program_process_ended(&p->process, wait_ms, &end)
               ? err_fail(err, STATUS_UNAVAILABLE, "the program ended: %s", end.how)
               : STATUS_OK;
}

enum status program_read(struct program *p, struct err *err)
{
    enum status st = buf_reserve(&p->said, PROGRAM_READ_BYTES, err);
    if (st != STATUS_OK) {
        return st;
    }
    ssize_t n = read(p->process.out, buf_at(&p->said) + p->said.len, PROGRAM_READ_BYTES);
    if (n < 0) {
        return STATUS_NOT_FOUND;
    }
    if (n == 0) {
        st = program_check_alive(p, PROGRAM_END_WAIT_MS, err);
        if (st != STATUS_OK) {
            return st;
        }
        return err_fail(err, STATUS_UNAVAILABLE, "the program closed its descriptor 4");
    }
    buf_grew(&p->said, (size_t)n);
    return STATUS_OK;
}

/* Parses the next line. Consume *ret_size bytes when done with it. NOT_FOUND: no whole line has
 * been read. */
static enum status next_line(const struct program *p, struct program_line *ret, size_t *ret_size,
                             struct err *err)
{
    const char *begin = buf_at(&p->said);
    const char *end = p->said.len == 0 ? NULL : memchr(begin, '\n', p->said.len);
    size_t len = end == NULL ? p->said.len : (size_t)(end - begin);
    if (len >= PROGRAM_LINE_MAX) {
        return err_fail(err, STATUS_INVALID, "the program sent a line of more than %zu bytes",
                        PROGRAM_LINE_MAX);
    }
    if (end == NULL) {
        return STATUS_NOT_FOUND;
    }
    *ret_size = len + 1;
    enum status st = program_line_parse(begin, len, ret, err);
    if (st != STATUS_OK) {
        err_prefix(err, "the program sent");
    }
    return st;
}

enum status program_take_lines(struct program *p, program_line_fn *take, void *ctx, struct err *err)
{
    for (;;) {
        struct program_line line;
        size_t size = 0;
        enum status st = next_line(p, &line, &size, err);
        if (st == STATUS_NOT_FOUND) {
            return STATUS_OK;
        }
        if (st == STATUS_OK) {
            st = take(ctx, &line, err);
        }
        if (st != STATUS_OK) {
            return st;
        }
        buf_consume(&p->said, size);
    }
}

/* ---- its start ---- */

static enum status take_hello(struct program *p, const struct program_line *line, struct err *err)
{
    if (line->said != SAID_HELLO) {
        return err_fail(err, STATUS_INVALID, "the program did not begin with a hello");
    }
    if (line->number != PROGRAM_PROTOCOL_VERSION) {
        return err_fail(err, STATUS_INVALID,
                        "the program speaks version %" PRId64 " of the protocol, expected %d",
                        line->number, PROGRAM_PROTOCOL_VERSION);
    }
    for (size_t i = 0; i < CLAIMD_KINDS_MAX && p->file.kinds[i].name != NULL; i++) {
        if (!program_line_has_kind(line, p->file.kinds[i].name)) {
            return err_fail(err, STATUS_INVALID, "the program has no handler of kind %s",
                            p->file.kinds[i].name);
        }
    }
    p->takes_sigterm = line->takes_sigterm;
    return STATUS_OK;
}

/* Waits for the hello and checks it. TIMEOUT: it did not arrive within start_timeout. */
static enum status await_hello(struct program *p, struct runner_page *page, struct err *err)
{
    int64_t deadline_us = clock_boot_us() + p->file.start_timeout_us;
    struct program_line line;
    size_t size = 0;
    for (;;) {
        enum status st = next_line(p, &line, &size, err);
        if (st == STATUS_OK) {
            st = take_hello(p, &line, err);
            buf_consume(&p->said, size);
            return st;
        }
        if (st != STATUS_NOT_FOUND) {
            return st;
        }
        if (clock_boot_us() >= deadline_us) {
            return err_fail(err, STATUS_TIMEOUT, "the program sent no hello within %" PRId64 " ms",
                            p->file.start_timeout_us / US_PER_MS);
        }
        struct pollfd polled[] = {{.fd = p->process.out, .events = POLLIN},
                                  {.fd = p->process.pidfd, .events = POLLIN}};
        (void)poll(polled, 2, LOAD_LOOK_MS);
        atomic_fetch_add(&page->loaded, 1); /* shows the worker that loading continues */
        st = program_read(p, err);
        if (st == STATUS_NOT_FOUND && polled[1].revents != 0) {
            st = program_check_alive(p, 0, err);
        }
        if (st != STATUS_OK && st != STATUS_NOT_FOUND) {
            err_prefix(err, "before its hello");
            return st;
        }
    }
}

void program_block_signals(sigset_t *ret_before)
{
    sigset_t both;
    (void)sigemptyset(&both);
    (void)sigaddset(&both, SIGTERM);
    (void)sigaddset(&both, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &both, ret_before);
}

static enum status start(struct program *p, struct runner_page *page, struct err *err)
{
    enum status st = handler_file_check_command(&p->file, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = program_process_start(&p->file, (char *const *)(uintptr_t)p->file.argv, p->env, -1, -1,
                               &p->process, err);
    if (st != STATUS_OK) {
        return st;
    }
    sigset_t before;
    program_block_signals(&before);
    st = program_line_put_hello(&p->to, err);
    if (st == STATUS_OK && program_flush(p, NULL) != STATUS_NOMEM) { /* await_hello() says why */
        st = await_hello(p, page, err);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (st != STATUS_OK) {
        program_end(p);
    }
    return st;
}

/* ---- between jobs ---- */

/* Drops a line about a run that is over. */
enum status program_take_late(struct program *p, const struct program_line *line, struct err *err)
{
    if (line->said == SAID_END) {
        return err_fail(err, STATUS_INVALID, "the program ended run %" PRId64 " again", line->n);
    }
    if (line->said == SAID_HELLO || line->n < 1 || line->n > p->n) {
        return err_fail(err, STATUS_INVALID,
                        "the program sent a line of run %" PRId64 ", expected %" PRId64, line->n,
                        p->n);
    }
    p->dropped++;
    return STATUS_OK;
}

static enum status take_late(void *ctx, const struct program_line *line, struct err *err)
{
    return program_take_late(ctx, line, err);
}

/* Handles what a program says or does while it has no job. One that has died or broken the protocol
 * is ended: no attempt is charged, and its next job starts another process. */
static void look_between(struct program *p)
{
    struct pollfd polled[] = {{.fd = p->process.out, .events = POLLIN},
                              {.fd = p->process.pidfd, .events = POLLIN}};
    struct err err = {0};
    if (poll(polled, ARRAY_COUNT(polled), 0) == 0) {
        return; /* the usual case: costs one system call per job */
    }
    struct err end = {0};
    enum status st = program_read(p, &err);
    if (st == STATUS_OK) {
        st = program_take_lines(p, take_late, p, &err);
    }
    if (program_check_alive(p, 0, &end) != STATUS_OK) {
        st = end.status;
        err = end;
    }
    if (st != STATUS_OK && st != STATUS_NOT_FOUND) {
        log_warn("program_ended", LOG_TEXT("file", p->file.file), LOG_TEXT("err", err.msg),
                 LOG_TEXT("action", "the next job starts the program again"));
        program_end(p);
    }
}

void programs_wait(int fd)
{
    struct pollfd polled[1 + 2 * PROGRAMS_MAX] = {{.fd = fd, .events = POLLIN}};
    struct program *owner[1 + 2 * PROGRAMS_MAX] = {NULL};
    for (;;) {
        nfds_t n = 1;
        for (size_t i = 0; i < programs.count; i++) {
            struct program *p = programs.list[i];
            if (p->process.pid > 0) {
                owner[n] = owner[n + 1] = p;
                polled[n++] = (struct pollfd){.fd = p->process.out, .events = POLLIN};
                polled[n++] = (struct pollfd){.fd = p->process.pidfd, .events = POLLIN};
            }
        }
        if (n == 1 || (poll(polled, n, -1) > 0 && polled[0].revents != 0)) {
            return; /* without programs there is nothing to watch: the caller waits itself */
        }
        for (nfds_t i = 1; i < n; i += 2) { /* none is set after EINTR */
            if (polled[i].revents != 0 || polled[i + 1].revents != 0) {
                look_between(owner[i]);
            }
        }
    }
}

enum status program_prepare(const struct claimd_kind *kind, struct runner_page *page,
                            struct err *err)
{
    struct program *p = program_find(kind->name);
    if (p->file.is_once) {
        return handler_file_check_command(&p->file, err);
    }
    if (p->process.pid > 0) {
        look_between(p);
    }
    if (p->process.pid > 0) {
        return STATUS_OK;
    }
    (void)snprintf(page->loading, sizeof page->loading, "%s", p->file.file);
    enum status st = start(p, page, err);
    page->loading[0] = '\0';
    return st;
}
