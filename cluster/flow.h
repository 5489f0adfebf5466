/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a connection that a proxy forwards: pieces of bytes, each with the time from
 * which it may be forwarded. Internal to the proxies. */
#ifndef CLAIMD_CLUSTER_FLOW_H
#define CLAIMD_CLUSTER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece;

struct flow {
    struct piece *first;
    struct piece **last;
    size_t bytes;
};

void flow_init(struct flow *f);
void flow_drop(struct flow *f); /* drops all pieces; the flow may be used again */
void flow_put(struct flow *f, const char *bytes, size_t len, int64_t due_us); /* copies the bytes */
bool flow_is_empty(const struct flow *f);
bool flow_is_due(const struct flow *f, int64_t now_us);
/* Sends the pieces that are due, as far as the socket accepts them. Returns false if the peer is
 * gone. */
bool flow_send(struct flow *f, int fd, int64_t now_us);
/* Returns the smaller one of `timeout_ms` (−1 = forever) and the time left until the first piece is
 * due. */
int flow_wait_ms(const struct flow *f, int64_t now_us, int timeout_ms);

#endif
