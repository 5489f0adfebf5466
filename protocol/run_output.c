/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/run_output.h"

#include "base/log.h"
#include "protocol/run_log.h"

#include <assert.h>
#include <poll.h>
#include <unistd.h>

#define TAKE_MAX ((size_t)64 << 10)

static_assert(RUNNER_OUTPUT_BYTES <= RUN_LOG_LINE_MAX, "what one read() brings fits into the log");
static_assert(RUN_OUTPUT_LINE_MAX < RUNNER_OUTPUT_BYTES, "behind a line that has no end is room");

static bool would_block(int log_fd)
{
    struct pollfd p = {.fd = log_fd, .events = POLLOUT};
    return log_fd >= 0 && poll(&p, 1, 0) == 0;
}

static void log_line(struct run_output *o, int log_fd, const char *bytes, size_t len)
{
    char line[RUN_OUTPUT_LINE_MAX + 1];
    if (len == 0) {
        return;
    }
    if (would_block(log_fd)) {
        o->dropped++;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        line[i] = bytes[i];
        line[i] = line[i] == '\0' ? ' ' : line[i];
    }
    line[len] = '\0';
    const struct log_field fields[] = {LOG_I64("job", o->job), LOG_TEXT("text", line)};
    size_t first = o->job > 0 ? 0 : 1;
    log_write(LOG_INFO, "handler_output", fields + first, ARRAY_COUNT(fields) - first);
}

struct span {
    uint32_t begin, end;
};

/* A handler may have written anything into the page, so the bounds are checked. */
static struct span unlogged(const struct runner_page *page)
{
    uint32_t begin = atomic_load(&page->output_begin);
    uint32_t end = atomic_load(&page->output_end);
    end = end < RUNNER_OUTPUT_BYTES ? end : RUNNER_OUTPUT_BYTES;
    return (struct span){.begin = begin < end ? begin : end, .end = end};
}

/* Logs lines that are complete, or as long as a line may be; with `last`, also the rest. */
static void log_lines(struct run_output *o, int log_fd, bool last)
{
    struct span s = unlogged(o->page);
    while (s.begin < s.end) {
        const char *line = o->page->output + s.begin;
        size_t rest = s.end - s.begin;
        size_t most = rest < RUN_OUTPUT_LINE_MAX ? rest : RUN_OUTPUT_LINE_MAX;
        const char *end = memchr(line, '\n', most);
        if (end == NULL && most < RUN_OUTPUT_LINE_MAX && !last) {
            return;
        }
        size_t len = end != NULL ? (size_t)(end - line) : most;
        log_line(o, log_fd, line, len);
        s.begin += (uint32_t)len + (end != NULL ? 1 : 0);
        atomic_store(&o->page->output_begin, s.begin);
    }
}

void run_output_end_line(struct run_output *o, int log_fd)
{
    log_lines(o, log_fd, true);
}

/* Moves an incomplete line to the front and reads behind it. Returns the result of read(). */
static ssize_t read_chunk(struct run_output *o)
{
    struct runner_page *page = o->page;
    struct span s = unlogged(page);
    uint32_t len = s.end - s.begin;
    memmove(page->output, page->output + s.begin, len);
    atomic_store(&page->output_begin, 0);
    atomic_store(&page->output_end, len);
    ssize_t n = read(o->fd, page->output + len, RUNNER_OUTPUT_BYTES - len);
    if (n > 0) {
        atomic_store(&page->output_end, len + (uint32_t)n);
        run_log_append(page, page->output + len, (size_t)n);
    }
    return n;
}

static void say_dropped(struct run_output *o, int log_fd)
{
    if (o->dropped > 0 && !would_block(log_fd)) {
        log_warn("handler_output_dropped", LOG_I64("lines", o->dropped));
        o->dropped = 0;
    }
}

void run_output_take(struct run_output *o, int log_fd)
{
    ssize_t n = 0;
    log_lines(o, log_fd, false);
    for (size_t taken = 0; taken < TAKE_MAX; taken += (size_t)n) {
        n = read_chunk(o);
        if (n <= 0) {
            break; /* EAGAIN, or end of file */
        }
        log_lines(o, log_fd, false);
    }
    say_dropped(o, log_fd);
}
