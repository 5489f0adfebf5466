/* SPDX-License-Identifier: Apache-2.0
 *
 * What node.c (the life of the connection) and send.c (requests to it) share. */
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
    struct redis_tls *own_tls; /* where the options have none; else NULL */
    struct resolver *resolver; /* NULL = a unix socket */
    enum node_state state;
    struct link *link; /* NULL = none, or its address is being looked up */
    struct reader *reader;
    struct handshake handshake;
    struct requests requests;
    struct stale stale;
    uv_timer_t timer; /* the next try, or the earliest deadline */
    int64_t timer_at_us;
    uv_prepare_t flush; /* before the loop polls: everything sent in this turn, in one write */
    uv_idle_t no_wait;  /* keeps the loop from blocking while `flush` has work */
    uv_check_t overdue; /* after the loop polled: replies that were in the socket count */
    size_t handles_open;
    struct sockaddr_storage address; /* of the link, where there is a resolver */
    int64_t give_up_us;              /* deadline of name, connect and handshake */
    int64_t kept_us;                 /* without an answer by then, the last one is used */
    int64_t retry_us;
    size_t tries; /* in a row that failed */
    bool is_down_told;
    bool is_refusal_told;
    struct rand rand;
};

/* node.c: what was appended to the link's output leaves before the loop polls. */
void node_flush_this_turn(struct redis_node *n);

/* send.c: sends the first request again, with its whole script, behind all others; false = no
 * room. */
bool node_resend_whole(struct redis_node *n);

/* ---- command.c ---- */

/* The two halves of redis_command(), for commands whose arguments come from several arrays. Both
 * append; on failure the caller drops what was appended. */
enum status redis_command_head(struct buf *out, size_t count, struct err *err) MUST_USE;
enum status redis_command_args(struct buf *out, const struct redis_arg *args, size_t count,
                               struct err *err) MUST_USE;

#endif
