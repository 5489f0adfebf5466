/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of one host, looked up in a thread that lives as long as the lookup: a hanging name
 * server blocks neither the loop, nor libuv's pool, nor closing. One lookup at a time; the last
 * good answer is kept in case the name server fails (lock.C7). */
#ifndef CLAIMD_REDIS_RESOLVE_H
#define CLAIMD_REDIS_RESOLVE_H

#include "redis/redis.h"

struct resolver;
struct addrinfo;

/* A lookup is over; `why` is NULL if there are addresses, new or kept ones. */
typedef void resolver_cb(void *ctx, const struct err *why);

enum status resolver_new(uv_loop_t *loop, const struct redis_endpoint *e, resolver_cb *on_over,
                         void *ctx, struct resolver **ret_resolver, struct err *err) MUST_USE;
/* Never waits: a lookup under way ends by itself, without a callback. Accepts NULL. */
void resolver_close(struct resolver *r);

/* Starts a lookup: `on_over` will be called, unless *ret_is_known, which is so for a literal
 * address. UNAVAILABLE: no thread; NOMEM. */
enum status resolver_ask(struct resolver *r, bool *ret_is_known, struct err *err) MUST_USE;

/* The last good answer, valid until the next callback. NULL = there was none yet, which can't be
 * after on_over() without a reason. */
const struct addrinfo *resolver_answer(const struct resolver *r);

#endif
