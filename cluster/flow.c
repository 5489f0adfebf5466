/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/flow.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <sys/socket.h>

struct piece {
    struct piece *next;
    int64_t due_us;
    size_t len;
    size_t sent;
    char bytes[];
};

void flow_init(struct flow *f)
{
    *f = (struct flow){0};
    f->last = &f->first;
}

void flow_drop(struct flow *f)
{
    while (f->first != NULL) {
        struct piece *piece = f->first;
        f->first = piece->next;
        free(piece);
    }
    flow_init(f);
}

void flow_put(struct flow *f, const char *bytes, size_t len, int64_t due_us)
{
    struct piece *piece = len > 0 ? malloc(sizeof *piece + len) : NULL;
    if (piece == NULL) {
        return;
    }
    *piece = (struct piece){.due_us = due_us, .len = len};
    memcpy(piece->bytes, bytes, len);
    *f->last = piece;
    f->last = &piece->next;
    f->bytes += len;
}

bool flow_is_empty(const struct flow *f)
{
    return f->first == NULL;
}

bool flow_is_due(const struct flow *f, int64_t now_us)
{
    return f->first != NULL && f->first->due_us <= now_us;
}

bool flow_send(struct flow *f, int fd, int64_t now_us)
{
    while (flow_is_due(f, now_us)) {
        struct piece *piece = f->first;
        ssize_t n = send(fd, piece->bytes + piece->sent, piece->len - piece->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        piece->sent += (size_t)n;
        if (piece->sent < piece->len) {
            return true;
        }
        f->bytes -= piece->len;
        f->first = piece->next;
        if (f->first == NULL) {
            f->last = &f->first;
        }
        free(piece);
    }
    return true;
}

int flow_wait_ms(const struct flow *f, int64_t now_us, int timeout_ms)
{
    if (f->first == NULL) {
        return timeout_ms;
    }
    int64_t wait_us = f->first->due_us - now_us;
    int wait_ms = wait_us <= 0 ? 0 : (int)((wait_us + US_PER_MS - 1) / US_PER_MS);
    return timeout_ms < 0 || wait_ms < timeout_ms ? wait_ms : timeout_ms;
}
