/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_out.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define RESERVE_BYTES (LOG_RING_BYTES / 4)
#define PIECE_MAX ((size_t)PIPE_BUF) /* a pipe takes this much in one piece */
#define CRASH_WAIT_MS 250

static_assert(PIPE_BUF >= LOG_LINE_MAX, "a line fits into a piece");

/* How to write a line without blocking. */
enum way {
    WAY_NONE,   /* leave it to the thread */
    WAY_WRITE,  /* write() to `fd` does not block */
    WAY_SOCKET, /* send() with MSG_DONTWAIT */
};

static struct {
    pthread_mutex_t mutex; /* guards everything except the atomics */
    pthread_cond_t filled;
    pthread_t thread;
    log_out_dropped_cb *say_dropped;
    enum way way;
    int to;
    int fd; /* `to`, or our own open file description of it, with O_NONBLOCK */
    bool is_ending;
    uint64_t said; /* how many of `dropped` are reported */
    size_t head;
    size_t len; /* includes the chunk being written */
    char ring[LOG_RING_BYTES];
    atomic_bool is_started;
    atomic_bool is_empty; /* len == 0, for the signal handler */
    atomic_ullong dropped;
} out = {.mutex = PTHREAD_MUTEX_INITIALIZER,
         .filled = PTHREAD_COND_INITIALIZER,
         .to = STDERR_FILENO,
         .fd = -1};

/* ---- the ring ---- */

static bool ring_put(const char *bytes, size_t len, bool matters)
{
    size_t room = LOG_RING_BYTES - out.len;
    if (len > room || (!matters && len + RESERVE_BYTES > room)) {
        return false;
    }
    size_t tail = (out.head + out.len) % LOG_RING_BYTES;
    size_t first = len < LOG_RING_BYTES - tail ? len : LOG_RING_BYTES - tail;
    memcpy(out.ring + tail, bytes, first);
    memcpy(out.ring, bytes + first, len - first);
    out.len += len;
    atomic_store(&out.is_empty, false);
    (void)pthread_cond_signal(&out.filled);
    return true;
}

/* Copies the next whole lines, at most PIECE_MAX bytes, and returns their length. */
static size_t ring_peek(char ret_bytes[PIECE_MAX])
{
    size_t len = out.len < PIECE_MAX ? out.len : PIECE_MAX;
    size_t first = len < LOG_RING_BYTES - out.head ? len : LOG_RING_BYTES - out.head;
    memcpy(ret_bytes, out.ring + out.head, first);
    memcpy(ret_bytes + first, out.ring, len - first);
    const char *end = memrchr(ret_bytes, '\n', len);
    assert(end != NULL);
    return (size_t)(end - ret_bytes) + 1;
}

static void ring_consume(size_t len)
{
    out.head = (out.head + len) % LOG_RING_BYTES;
    out.len -= len;
    atomic_store(&out.is_empty, out.len == 0);
}

/* ---- writing ---- */

static uint64_t count_lines(const char *bytes, size_t len)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < len; i++) {
        lines += bytes[i] == '\n' ? 1 : 0;
    }
    return lines;
}

static ssize_t write_now(const char *bytes, size_t len)
{
    ssize_t n = -1;
    do {
        n = out.way == WAY_SOCKET ? send(out.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : write(out.fd, bytes, len);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* Writes the line directly, or puts what could not be written into the ring. False if the line is
 * lost. */
static bool put(const char *bytes, size_t len, bool matters)
{
    if (out.way != WAY_NONE && out.len == 0) {
        ssize_t n = write_now(bytes, len);
        if (n < 0 && errno != EAGAIN) {
            return false; /* a full disk, or the reader has exited */
        }
        size_t done = n < 0 ? 0 : (size_t)n;
        if (done == len) {
            return true;
        }
        bytes += done;
        len -= done;
        matters = matters || done > 0; /* complete a line that was begun */
    }
    return ring_put(bytes, len, matters);
}

/* Reports dropped lines, but not before half of the ring is free: the log of a slow reader should
 * not consist of such reports. */
static void put_dropped(void)
{
    char line[LOG_LINE_MAX];
    uint64_t total = atomic_load(&out.dropped);
    if (total == out.said || out.len > LOG_RING_BYTES / 2) {
        return;
    }
    size_t len = out.say_dropped(total - out.said, total, line);
    if (put(line, len, true)) {
        out.said = total;
    }
}

static void put_line(const char *line, size_t len, bool matters)
{
    put_dropped();
    /* keep ordinary lines out until the gap is reported */
    bool is_gap_open = out.said != atomic_load(&out.dropped);
    if ((is_gap_open && !matters) || !put(line, len, matters)) {
        (void)atomic_fetch_add(&out.dropped, 1);
    }
}

/* Blocks until the reader takes the bytes; only the thread may call it. */
static bool write_whole(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(out.to, bytes, len);
        if (n < 0 && (errno == EAGAIN)) {
            struct pollfd p = {.fd = out.to, .events = POLLOUT};
            (void)poll(&p, 1, -1); /* another process made it non-blocking */
        } else if (n < 0 && errno != EINTR) {
            return false;
        } else if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static void *run(void *arg)
{
    char piece[PIECE_MAX];
    (void)arg;
    (void)pthread_mutex_lock(&out.mutex);
    for (;;) {
        while (out.len == 0 && !out.is_ending) {
            (void)pthread_cond_wait(&out.filled, &out.mutex);
        }
        if (out.len == 0) {
            break;
        }
        size_t len = ring_peek(piece);
        (void)pthread_mutex_unlock(&out.mutex);
        bool is_written = write_whole(piece, len);
        (void)pthread_mutex_lock(&out.mutex);
        ring_consume(len);
        if (!is_written) {
            (void)atomic_fetch_add(&out.dropped, count_lines(piece, len));
        } else if (out.len == 0) {
            put_dropped();
        }
    }
    (void)pthread_mutex_unlock(&out.mutex);
    return NULL;
}

/* ---- start and stop ---- */

int log_out_reopen(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* O_NONBLOCK on descriptor 2 would affect every process that shares the open file description: the
 * user's shell, our runners. Instead, a pipe or a terminal is opened a second time, and a socket
 * gets MSG_DONTWAIT per call. A file needs neither: it has no reader to wait for, and a second
 * description would have its own offset. */
static void choose_way(void)
{
    struct stat st;
    out.way = WAY_NONE;
    out.fd = out.to;
    if (fstat(out.to, &st) != 0) {
        return;
    }
    if (S_ISSOCK(st.st_mode)) {
        out.way = WAY_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || isatty(out.to) == 1) {
        int fd = log_out_reopen(out.to);
        out.fd = fd < 0 ? out.to : fd;
        out.way = fd < 0 ? WAY_NONE : WAY_WRITE;
    } else {
        out.way = WAY_WRITE;
    }
}

/* Waits while the thread writes out the ring, then raises the signal again, with its default
 * action. */
static void on_crash(int number)
{
    const struct timespec step = {.tv_nsec = 1000000};
    for (int i = 0; i < CRASH_WAIT_MS && !atomic_load(&out.is_empty); i++) {
        (void)nanosleep(&step, NULL);
    }
    (void)raise(number);
}

static void catch_crashes(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction action = {.sa_flags = (int)SA_RESETHAND};
    action.sa_handler = on_crash;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        struct sigaction present;
        if (sigaction(numbers[i], NULL, &present) == 0 && present.sa_handler == SIG_DFL) {
            (void)sigaction(numbers[i], &action, NULL); /* keep a sanitizer's handler */
        }
    }
}

void log_out_to(int fd)
{
    out.to = fd;
}

void log_out_start(log_out_dropped_cb *say_dropped)
{
    sigset_t all;
    sigset_t before;
    assert(!atomic_load(&out.is_started));
    out.say_dropped = say_dropped;
    out.is_ending = false;
    atomic_store(&out.is_empty, true);
    choose_way();
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&out.thread, NULL, run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0) {
        atomic_store(&out.is_started, true);
        catch_crashes();
    }
}

void log_out_stop(int64_t within_us)
{
    const struct timespec step = {.tv_nsec = 1000000};
    if (!atomic_load(&out.is_started)) {
        return;
    }
    for (int64_t end = clock_boot_us() + within_us;
         !atomic_load(&out.is_empty) && clock_boot_us() < end;) {
        (void)nanosleep(&step, NULL);
    }
    (void)pthread_mutex_lock(&out.mutex);
    bool is_written = out.len == 0;
    out.is_ending = true;
    (void)pthread_cond_signal(&out.filled);
    (void)pthread_mutex_unlock(&out.mutex);
    if (!is_written) {
        /* it is blocked on the reader, and ends with the process */
        (void)pthread_detach(out.thread);
        return;
    }
    (void)pthread_join(out.thread, NULL);
    atomic_store(&out.is_started, false);
    if (out.fd != out.to) {
        (void)close(out.fd);
    }
}

void log_out_line(const char *line, size_t len, bool matters)
{
    if (!atomic_load(&out.is_started)) {
        ssize_t written = write(out.to, line, len);
        (void)written; /* there is nowhere to report a failure */
        return;
    }
    (void)pthread_mutex_lock(&out.mutex);
    put_line(line, len, matters);
    (void)pthread_mutex_unlock(&out.mutex);
}

uint64_t log_out_dropped(void)
{
    return atomic_load(&out.dropped);
}
