/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of one host, looked up in a thread that lives as long as the lookup: a hanging name
 * server blocks neither the loop, nor libuv's thread pool, nor closing. One lookup at a time; the
 * last good answer is kept in case the name server fails (lock.C7). */
#ifndef CLAIMD_REDIS_RESOLVE_H
#define CLAIMD_REDIS_RESOLVE_H

#include "redis/redis.h"

struct resolver;
struct addrinfo;

/* A lookup has ended; `why` is NULL if there are addresses, new or kept ones. */
typedef void resolver_cb(void *ctx, const struct err *why);

enum status resolver_new(uv_loop_t *loop, const struct redis_endpoint *e, resolver_cb *on_over,
                         void *ctx, struct resolver **ret_resolver, struct err *err) MUST_USE;
/* Closes without waiting: a lookup in flight ends by itself, without a callback. Accepts NULL. */
void resolver_close(struct resolver *r);

/* Starts a lookup. `on_over` will be called unless *ret_is_known, which is true for a literal
 * address. UNAVAILABLE: no thread; NOMEM. */
enum status resolver_ask(struct resolver *r, bool *ret_is_known, struct err *err) MUST_USE;

/* Returns the last good answer, valid until the next callback. NULL = there was none yet, which is
 * impossible after on_over() without a reason. */
const struct addrinfo *resolver_answer(const struct resolver *r);

#endif
