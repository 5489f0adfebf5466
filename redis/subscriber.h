/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection to one Redis that only listens: wanted channels are subscribed as soon as it is
 * up, and again after every reconnect. A connection that was silent for a while is checked by PING.
 * Messages published while it was down are lost, so after `on_subscribed` the user must look for
 * itself. Loop, thread and reconnecting: as in redis.h. */
#ifndef CLAIMD_REDIS_SUBSCRIBER_H
#define CLAIMD_REDIS_SUBSCRIBER_H

#include "redis/redis.h"

#define REDIS_CHANNELS_MAX 4096
#define REDIS_CHANNEL_LEN_MAX 2048

struct redis_subscriber;

/* From the loop; they may call anything below. Texts are borrowed, as a redis_value is. */
struct redis_subscriber_options {
    uv_loop_t *loop;
    struct redis_endpoint endpoint;
    const struct redis_tls *tls; /* as in redis_options */
    int64_t connect_timeout_us;  /* name, connect and handshake together; also for each reply */
    int64_t ping_after_us;       /* silence before a PING; 0 = 15 s */
    void (*on_message)(void *ctx, const char *channel, size_t channel_len, const char *payload,
                       size_t payload_len);
    /* From now on each message comes; again after every reconnect. */
    void (*on_subscribed)(void *ctx, const char *channel, size_t len);
    /* The server, most likely its ACL, does not permit it: once per connection, which stays
     * open. */
    void (*on_refused)(void *ctx, const struct err *why);
    void (*on_up)(void *ctx);
    void (*on_down)(void *ctx, const struct err *why); /* as redis_down_cb */
    void *ctx;
}; /* callbacks may be NULL */

enum status redis_subscriber_open(const struct redis_subscriber_options *options,
                                  struct redis_subscriber **ret_sub, struct err *err) MUST_USE;
void redis_subscriber_close(struct redis_subscriber *sub); /* no callback after it; accepts NULL */

/* Wants a channel, by its exact bytes, whether the connection is up or not. Does nothing if it is
 * wanted already. INVALID (too long), LIMIT, NOMEM. */
enum status redis_subscribe(struct redis_subscriber *sub, const char *channel, size_t len,
                            struct err *err) MUST_USE;
/* No message of the channel comes any more. Does nothing if it is not wanted. */
void redis_unsubscribe(struct redis_subscriber *sub, const char *channel, size_t len);

/* Has the server confirmed it on the connection that is up now? */
bool redis_is_subscribed(const struct redis_subscriber *sub, const char *channel, size_t len);

#endif
