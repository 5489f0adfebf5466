/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of one host, looked up in a thread that lives as long as the lookup: a name server
 * that hangs stops neither the loop, nor libuv's pool, nor closing. The last good answer is kept
 * and used at once, while a lookup, one at a time, renews it for the next try (lock.C7). */
#ifndef CLAIMD_REDIS_RESOLVE_H
#define CLAIMD_REDIS_RESOLVE_H

#include "redis/redis.h"

struct resolver;
struct addrinfo;

/* A lookup is over; `why` is NULL if there are addresses, new or kept ones. */
typedef void resolver_cb(void *ctx, const struct err *why);

enum status resolver_new(uv_loop_t *loop, const struct redis_endpoint *e, resolver_cb *on_over,
                         void *ctx, struct resolver **ret_resolver, struct err *err) MUST_USE;
/* Never waits: a lookup under way ends by itself, and nobody hears of it. Accepts NULL. */
void resolver_close(struct resolver *r);

/* Looks up, unless the host is a literal address. Is an answer at hand already? If not, `on_over`
 * will be called. UNAVAILABLE: no thread; NOMEM. */
enum status resolver_ask(struct resolver *r, bool *ret_is_known, struct err *err) MUST_USE;

/* Valid until the next callback; not NULL after resolver_ask() or on_over() said so. */
const struct addrinfo *resolver_answer(const struct resolver *r);

#endif
