/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/run_output.h"

#include "base/log.h"
#include "worker/run_log.h"

#include <poll.h>
#include <unistd.h>

#define CHUNK_BYTES 4096 /* RUN_LOG_LINE_MAX */
#define TAKE_MAX ((size_t)64 << 10)

static bool would_block(int log_fd)
{
    struct pollfd p = {.fd = log_fd, .events = POLLOUT};
    return log_fd >= 0 && poll(&p, 1, 0) == 0;
}

void run_output_end_line(struct run_output *o, int log_fd)
{
    if (o->len == 0) {
        return;
    }
    o->line[o->len] = '\0';
    o->len = 0;
    if (would_block(log_fd)) {
        o->dropped++;
        return;
    }
    const struct log_field fields[] = {LOG_I64("job", o->job), LOG_TEXT("text", o->line)};
    size_t first = o->job > 0 ? 0 : 1;
    log_write(LOG_INFO, "handler_output", fields + first, ARRAY_COUNT(fields) - first);
}

static void take_chunk(struct run_output *o, int log_fd, const char *bytes, size_t len)
{
    run_log_append(o->page, bytes, len);
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            run_output_end_line(o, log_fd);
            continue;
        }
        o->line[o->len++] = bytes[i] == '\0' ? ' ' : bytes[i];
        if (o->len == RUN_OUTPUT_LINE_MAX) {
            run_output_end_line(o, log_fd);
        }
    }
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
    char chunk[CHUNK_BYTES];
    ssize_t n = 0;
    for (size_t taken = 0; taken < TAKE_MAX; taken += (size_t)n) {
        n = read(o->fd, chunk, sizeof chunk);
        if (n <= 0) {
            break; /* EAGAIN, or the end */
        }
        take_chunk(o, log_fd, chunk, (size_t)n);
    }
    say_dropped(o, log_fd);
}
