/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of one connection: connect, TLS, read, gathered writes, close. A link is for one
 * connection; for another connection, open another link. It knows nothing of the protocol. libuv
 * makes every socket non-blocking and CLOEXEC, and reads it. Writes use send(), since libuv's own
 * writes raise SIGPIPE when the peer is gone (lock.F2). */
#ifndef CLAIMD_REDIS_LINK_H
#define CLAIMD_REDIS_LINK_H

#include "redis/redis.h"

#define LINK_OUT_BYTES_MAX (2 * REDIS_IN_FLIGHT_BYTES_MAX)

struct link;

struct link_events {
    void (*on_connected)(void *ctx);
    void (*on_bytes)(void *ctx, const char *bytes, size_t len); /* borrowed */
    void (*on_failed)(void *ctx, const struct err *why); /* called once; then call link_close() */
    void *ctx;
};

struct link_target {
    const struct redis_endpoint *endpoint;
    const struct sockaddr *address; /* address of its host; NULL for a unix socket */
    const struct redis_tls *tls;    /* if the endpoint is_tls */
};

/* Starts connecting; never calls back from inside this call. NOMEM, UNAVAILABLE, INVALID. */
enum status link_open(uv_loop_t *loop, const struct link_target *target,
                      const struct link_events *events, struct link **ret_link,
                      struct err *err) MUST_USE;

/* Returns what a link that is not connected yet still lacks, for an error: "no connection in time",
 * … */
const char *link_lacks(const struct link *l);

/* Closes the link. No event comes afterwards; memory is freed when libuv no longer uses it. Accepts
 * NULL. */
void link_close(struct link *l);

/* Returns the buffer to which bytes are appended; link_flush() sends them. */
struct buf *link_out(struct link *l);
void link_flush(struct link *l);

#endif
