/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a connection that a proxy carries: pieces of bytes, each with the moment from
 * which it may go on. Internal to the proxies. */
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
void flow_drop(struct flow *f); /* all pieces; it may be used again */
void flow_put(struct flow *f, const char *bytes, size_t len, int64_t due_us); /* copied */
bool flow_is_empty(const struct flow *f);
bool flow_is_due(const struct flow *f, int64_t now_us);
/* What is due goes out, as far as the socket takes it. False = the peer is gone. */
bool flow_send(struct flow *f, int fd, int64_t now_us);
/* The smaller one of `timeout_ms` (−1 = for ever) and what is left until the first piece is due. */
int flow_wait_ms(const struct flow *f, int64_t now_us, int timeout_ms);

#endif
