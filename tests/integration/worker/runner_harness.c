/* SPDX-License-Identifier: Apache-2.0 */
#include "runner_harness.h"

#include "base/clock.h"
#include "cluster/servers.h"
#include "protocol/result_ring.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LIMIT_US (120 * US_PER_S)

static const char *needed(const char *variable)
{
    const char *value = getenv(variable);
    ck_assert_msg(value != NULL, "%s is not set: run this by ctest", variable);
    return value;
}

const char *harness_plugins(void)
{
    return needed("CLAIMD_PLUGIN_DIR");
}

const char *harness_test_plugins(void)
{
    return needed("CLAIMD_TEST_PLUGIN_DIR");
}

void harness_bad_plugins(char *ret_path)
{
    (void)snprintf(ret_path, HARNESS_PATH_MAX, "%s_bad", harness_test_plugins());
}

static void runner_path(char *ret_path)
{
    (void)snprintf(ret_path, HARNESS_PATH_MAX, "%s/claimd-runner", needed("CLAIMD_BIN_DIR"));
}

/* Moves the ends of the test to the descriptors where a runner looks for them. */
static bool take_places(const int *fds)
{
    int high[RUNNER_FD_LAST + 1];
    bool is_taken = true;
    for (int fd = STDOUT_FILENO; fd <= RUNNER_FD_LAST; fd++) {
        high[fd] = fcntl(fds[fd], F_DUPFD_CLOEXEC, 10);
    }
    for (int fd = STDOUT_FILENO; fd <= RUNNER_FD_LAST; fd++) {
        is_taken = dup2(high[fd], fd) == fd && is_taken;
    }
    return is_taken;
}

static _Noreturn void become_runner(const char *directory, pid_t parent, const int *fds)
{
    char path[HARNESS_PATH_MAX];
    char number[16];
    runner_path(path);
    (void)snprintf(number, sizeof number, "%d", (int)parent);
    if (!take_places(fds)) {
        _exit(126);
    }
    (void)execl(path, path, "--parent", number, "--plugins", directory, (char *)NULL);
    _exit(127);
}

void harness_start(struct harness *h, const char *directory)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    int page = memfd_create("page", MFD_CLOEXEC);
    ck_assert_int_ge(page, 0);
    ck_assert_int_eq(ftruncate(page, RUNNER_PAGE_SIZE), 0);
    void *mapped = mmap(NULL, RUNNER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    ck_assert(mapped != MAP_FAILED);
    int output[2];
    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(output[0], F_SETFL, O_NONBLOCK), 0);
    int log_fd = h->log_fd > 0 ? h->log_fd : STDERR_FILENO;
    const int fds[] = {-1, output[1], output[1], ends[1], page, output[0], log_fd};
    pid_t parent = getpid();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        become_runner(directory, parent, fds);
    }
    (void)close(ends[1]);
    (void)close(page);
    (void)close(output[0]);
    (void)close(output[1]);
    *h = (struct harness){.pid = pid, .fd = ends[0], .page = mapped};
    buf_init(&h->in, 2 * FRAME_MAX);
    buf_init(&h->results, 2 * FRAME_MAX);
}

void harness_stop(struct harness *h)
{
    if (h->pid > 0) {
        (void)kill(-h->pid, SIGKILL);
        (void)kill(h->pid, SIGKILL);
        (void)waitpid(h->pid, NULL, 0);
    }
    if (h->page != NULL) {
        (void)munmap(h->page, RUNNER_PAGE_SIZE);
        (void)close(h->fd);
    }
    buf_release(&h->in);
    buf_release(&h->results);
    *h = (struct harness){.fd = -1};
}

/* Returns false at the end of the stream. */
static bool read_more(struct harness *h)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, (int)(LIMIT_US / US_PER_MS)) == 1, "the runner says nothing");
    ck_assert_int_eq(buf_reserve(&h->in, 65536, NULL), STATUS_OK);
    ssize_t n = recv(h->fd, buf_at(&h->in) + h->in.len, 65536, 0);
    if (n <= 0) {
        return false; /* ECONNRESET: it ended with unread data of ours */
    }
    buf_grew(&h->in, (size_t)n);
    return true;
}

static enum status take(struct harness *h, struct buf *from, enum frame_type *ret_type,
                        const char **ret_body, size_t *ret_len)
{
    h->read_from = from;
    return frame_take(from, ret_type, ret_body, ret_len, &h->frame_size, NULL);
}

static void consume(struct harness *h)
{
    if (h->read_from != NULL) {
        buf_consume(h->read_from, h->frame_size);
    }
    h->read_from = NULL;
    h->frame_size = 0;
}

static enum status take_any(struct harness *h, enum frame_type *ret_type, const char **ret_body,
                            size_t *ret_len)
{
    enum status st = result_ring_take(h->page, &h->ring_taken, &h->results, NULL);
    if (st != STATUS_OK) {
        return st;
    }
    st = take(h, &h->results, ret_type, ret_body, ret_len);
    if (st != STATUS_NOT_FOUND) {
        return st;
    }
    h->frame_size = 0;
    st = take(h, &h->in, ret_type, ret_body, ret_len);
    h->frame_size = st == STATUS_OK ? h->frame_size : 0;
    return st;
}

enum status harness_read(struct harness *h, enum frame_type *ret_type, const char **ret_body,
                         size_t *ret_len)
{
    bool is_over = false;
    consume(h);
    for (;;) {
        enum status st = take_any(h, ret_type, ret_body, ret_len);
        if (st == STATUS_OK && *ret_type == FRAME_NUDGE) {
            consume(h);
        } else if (st != STATUS_NOT_FOUND) {
            return st;
        } else if (is_over) {
            return STATUS_UNAVAILABLE;
        } else {
            is_over = !read_more(h); /* a result that it put into the ring before that counts */
        }
    }
}

const char *harness_hello(struct harness *h, size_t *ret_len)
{
    enum frame_type type = FRAME_RESULT;
    const char *body = NULL;
    ck_assert_int_eq(harness_read(h, &type, &body, ret_len), STATUS_OK);
    ck_assert_int_eq(type, FRAME_HELLO);
    return body;
}

static _Atomic int64_t *place_of(struct harness *h, uint64_t number)
{
    return &h->page->places[number % RUNNER_DEPTH];
}

bool harness_take_back(struct harness *h)
{
    int64_t sent = h->last_id + 100;
    return atomic_compare_exchange_strong(place_of(h, h->sent - 1), &sent, 0);
}

void harness_send(struct harness *h, const char *kind, const char *args)
{
    h->last_id++;
    ck_assert_uint_lt(h->sent - h->answered, RUNNER_DEPTH);
    atomic_store(place_of(h, h->sent++), h->last_id + 100);
    const struct job_frame job = {.id = h->last_id,
                                  .fence = h->last_id + 100,
                                  .nonce = h->last_id + 100,
                                  .attempt = 1,
                                  .max_attempts = 25,
                                  .timeout_us = 30 * US_PER_S,
                                  .kind = kind,
                                  .kind_len = strlen(kind),
                                  .args = args,
                                  .args_len = strlen(args)};
    struct buf out = BUF_INIT(FRAME_MAX);
    ck_assert_int_eq(job_frame_put(&out, &job, NULL), STATUS_OK);
    while (out.len > 0) {
        ssize_t n = send(h->fd, buf_at(&out), out.len, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        buf_consume(&out, (size_t)n);
    }
    buf_release(&out);
}

void harness_result(struct harness *h, struct result_frame *ret)
{
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t len = 0;
    ck_assert_int_eq(harness_read(h, &type, &body, &len), STATUS_OK);
    ck_assert_int_eq(type, FRAME_RESULT);
    struct err err = {0};
    ck_assert_msg(result_frame_get(body, len, ret, &err) == STATUS_OK, "%s", err.msg);
    while (atomic_load(place_of(h, h->answered)) == 0 && h->answered < h->sent - 1) {
        h->answered++; /* it was taken back */
    }
    atomic_store(place_of(h, h->answered++), 0);
}

void harness_run(struct harness *h, const char *kind, const char *args, struct result_frame *ret)
{
    harness_send(h, kind, args);
    harness_result(h, ret);
    ck_assert_int_eq(ret->id, h->last_id);
    ck_assert_int_eq(ret->fence, h->last_id + 100);
    ck_assert_int_eq(ret->nonce, h->last_id + 100);
}

int harness_wait(struct harness *h)
{
    int status = 0;
    pid_t got = 0;
    ck_assert_msg(WAIT_UNTIL((got = waitpid(h->pid, &status, WNOHANG)) != 0, LIMIT_US),
                  "the runner goes on");
    ck_assert_int_eq(got, h->pid);
    h->pid = 0;
    return status;
}

int harness_program(const char *const *args, struct buf *out)
{
    char path[HARNESS_PATH_MAX];
    runner_path(path);
    const char *argv[8] = {path};
    size_t count = 1;
    for (; args[count - 1] != NULL; count++) {
        ck_assert_uint_lt(count, ARRAY_COUNT(argv) - 1);
        argv[count] = args[count - 1];
    }
    int code = -1;
    struct err err = {0};
    ck_assert_msg(program_run(argv, NULL, LIMIT_US, out, &code, &err) == STATUS_OK, "%s", err.msg);
    return code;
}
