/* SPDX-License-Identifier: Apache-2.0 */
#include "support/lane.h"

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

void lane_init(struct lane *l)
{
    *l = (struct lane){0};
    l->last = &l->first;
}

void lane_drop(struct lane *l)
{
    while (l->first != NULL) {
        struct piece *piece = l->first;
        l->first = piece->next;
        free(piece);
    }
    lane_init(l);
}

void lane_put(struct lane *l, const char *bytes, size_t len, int64_t due_us)
{
    struct piece *piece = len > 0 ? malloc(sizeof *piece + len) : NULL;
    if (piece == NULL) {
        return;
    }
    *piece = (struct piece){.due_us = due_us, .len = len};
    memcpy(piece->bytes, bytes, len);
    *l->last = piece;
    l->last = &piece->next;
    l->bytes += len;
}

bool lane_is_empty(const struct lane *l)
{
    return l->first == NULL;
}

bool lane_is_due(const struct lane *l, int64_t now_us)
{
    return l->first != NULL && l->first->due_us <= now_us;
}

bool lane_send(struct lane *l, int fd, int64_t now_us)
{
    while (lane_is_due(l, now_us)) {
        struct piece *piece = l->first;
        ssize_t n = send(fd, piece->bytes + piece->sent, piece->len - piece->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        piece->sent += (size_t)n;
        if (piece->sent < piece->len) {
            return true;
        }
        l->bytes -= piece->len;
        l->first = piece->next;
        if (l->first == NULL) {
            l->last = &l->first;
        }
        free(piece);
    }
    return true;
}

int lane_wait_ms(const struct lane *l, int64_t now_us, int timeout_ms)
{
    if (l->first == NULL) {
        return timeout_ms;
    }
    int64_t wait_us = l->first->due_us - now_us;
    int wait_ms = wait_us <= 0 ? 0 : (int)((wait_us + US_PER_MS - 1) / US_PER_MS);
    return timeout_ms < 0 || wait_ms < timeout_ms ? wait_ms : timeout_ms;
}
