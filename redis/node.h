/* SPDX-License-Identifier: Apache-2.0
 *
 * The internals shared by node.c (the life of the connection) and send.c (requests). */
#ifndef CLAIMD_REDIS_NODE_H
#define CLAIMD_REDIS_NODE_H

#include "base/rand.h"
#include "redis/handshake.h"
#include "redis/link.h"
#include "redis/reader.h"
#include "redis/requests.h"
#include "redis/resolve.h"
#include "redis/stale.h"
#include "redis/tls.h"

enum node_state { NODE_WAITING, NODE_CONNECTING, NODE_GREETING, NODE_UP, NODE_CLOSED };

struct redis_node {
    struct redis_options options;
    const struct redis_script *scripts[REDIS_SCRIPTS_MAX];
    struct redis_tls *own_tls; /* used if the options have none; else NULL */
    struct resolver *resolver; /* NULL = a unix socket */
    enum node_state state;
    struct link *link; /* NULL = none, or the address is being looked up */
    struct reader *reader;
    struct handshake handshake;
    struct requests requests;
    struct stale stale;
    uv_timer_t timer; /* for the next try or the earliest deadline */
    int64_t timer_at_us;
    /* runs before the loop polls: writes all that was sent in this turn at once */
    uv_prepare_t flush;
    uv_idle_t no_wait;  /* keeps the loop from blocking while `flush` has work */
    uv_check_t overdue; /* runs after the loop polled: replies that are in the socket still count */
    size_t handles_open;
    struct sockaddr_storage address; /* of the link, if there is a resolver */
    int64_t give_up_us;              /* deadline of lookup, connect and handshake */
    int64_t kept_us; /* if the lookup has not ended by then, its last answer is used */
    int64_t retry_us;
    size_t tries; /* failed tries in a row */
    bool is_down_told;
    bool is_refusal_told;
    struct rand rand;
};

/* In node.c: sends what was appended to the link's output before the loop polls. */
void node_flush_this_turn(struct redis_node *n);

/* In send.c: sends the first request again, with its whole script, after all others; false = no
 * room. */
bool node_resend_whole(struct redis_node *n);

/* ---- command.c ---- */

/* The two halves of redis_command(), for commands whose arguments are in several arrays. Both
 * append to `out`; on failure the caller must drop what was appended. */
enum status redis_command_head(struct buf *out, size_t count, struct err *err) MUST_USE;
enum status redis_command_args(struct buf *out, const struct redis_arg *args, size_t count,
                               struct err *err) MUST_USE;

#endif
