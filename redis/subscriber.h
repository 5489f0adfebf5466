/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection to one Redis that only listens, to one channel for its whole life: it subscribes
 * as soon as the connection is up, and again after every reconnect. A connection that was silent
 * for a while is checked by PING. Messages published while it was down are lost, so after
 * `on_subscribed` the user must check for what it missed. Loop, thread and reconnecting: as in
 * redis.h. */
#ifndef CLAIMD_REDIS_SUBSCRIBER_H
#define CLAIMD_REDIS_SUBSCRIBER_H

#include "redis/redis.h"

#define REDIS_CHANNEL_LEN_MAX 2048

struct redis_subscriber;

/* Callbacks come from the loop, never from inside a call below; they may close the subscriber.
 * Texts are borrowed, like those of a redis_value. */
struct redis_subscriber_options {
    uv_loop_t *loop;
    struct redis_endpoint endpoint;
    const struct redis_tls *tls; /* like in redis_options */
    const char *channel;         /* exact bytes; copied */
    size_t channel_len;          /* 1 … REDIS_CHANNEL_LEN_MAX */
    /* for lookup, connect and handshake together; also for each reply */
    int64_t connect_timeout_us;
    int64_t ping_after_us; /* silence before a PING; 0 = 15 s */
    void (*on_message)(void *ctx, const char *payload, size_t payload_len);
    /* The server confirmed the subscription: from now on each message arrives. Once per
     * connection. */
    void (*on_subscribed)(void *ctx);
    /* The server, most likely its ACL, does not permit the channel. Called once per connection,
     * which stays open and is not asked again. */
    void (*on_refused)(void *ctx, const struct err *why);
    void *ctx;
}; /* callbacks may be NULL */

/* Starts connecting; the options are copied. INVALID (an empty or too long channel, no CAs for
 * TLS), NOMEM. */
enum status redis_subscriber_open(const struct redis_subscriber_options *options,
                                  struct redis_subscriber **ret_sub, struct err *err) MUST_USE;
/* Same as redis_node_set_password(). */
enum status redis_subscriber_set_password(struct redis_subscriber *sub, const char *password,
                                          struct err *err) MUST_USE;
/* Closes it. No callback comes afterwards; its handles close in later turns of the loop. Accepts
 * NULL. */
void redis_subscriber_close(struct redis_subscriber *sub);

#endif
