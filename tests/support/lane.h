/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a connection that a proxy carries: pieces of bytes, each with the moment from
 * which it may go on. Internal to support/. */
#ifndef CLAIMD_TESTS_SUPPORT_LANE_H
#define CLAIMD_TESTS_SUPPORT_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece;

struct lane {
    struct piece *first;
    struct piece **last;
    size_t bytes;
};

void lane_init(struct lane *l);
void lane_drop(struct lane *l); /* all pieces; it may be used again */
void lane_put(struct lane *l, const char *bytes, size_t len, int64_t due_us); /* copied */
bool lane_is_empty(const struct lane *l);
bool lane_is_due(const struct lane *l, int64_t now_us);
/* What is due goes out, as far as the socket takes it. False = the peer is gone. */
bool lane_send(struct lane *l, int fd, int64_t now_us);
/* The smaller one of `timeout_ms` (−1 = for ever) and what is left until the first piece is due. */
int lane_wait_ms(const struct lane *l, int64_t now_us, int timeout_ms);

#endif
