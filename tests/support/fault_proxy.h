/* SPDX-License-Identifier: Apache-2.0
 *
 * A bad network in front of one Redis: a TCP port of 127.0.0.1, whose connections a thread forwards
 * to the server's unix socket. The thread delays, swallows, replaces or breaks replies as the test
 * requests. It knows which reply answers which command, so a fault can apply to the replies to one
 * command only. */
#ifndef CLAIMD_TESTS_SUPPORT_FAULT_PROXY_H
#define CLAIMD_TESTS_SUPPORT_FAULT_PROXY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define FAULT_TEXT_MAX 64

enum fault_kind {
    FAULT_NONE,
    FAULT_SWALLOW, /* the reply never arrives */
    FAULT_REPLACE, /* `text` arrives instead */
    FAULT_ENDLESS, /* `text`, then `more` repeatedly until the client leaves */
    FAULT_RESET,   /* RST instead of the reply */
    FAULT_CUT      /* the first half of the reply, then the end of the connection */
};

struct fault {
    enum fault_kind kind;
    const char *on; /* applies to replies to this command (its first word); NULL = to all */
    const char *text;
    size_t text_len; /* 0 = strlen(text) */
    const char *more;
    size_t count; /* number of replies; 0 = all from now on */
};

struct fault_proxy;

/* `path`: the server's unix socket. Returns UNAVAILABLE or NOMEM on failure. Texts are copied, at
 * most FAULT_TEXT_MAX bytes of each. */
enum status fault_proxy_start(const char *path, struct fault_proxy **ret, struct err *err) MUST_USE;
void fault_proxy_stop(struct fault_proxy *p);             /* breaks its connections; accepts NULL */
const char *fault_proxy_url(const struct fault_proxy *p); /* "127.0.0.1:port" */

/* Each of these takes effect before it returns. */
void fault_proxy_set(struct fault_proxy *p, const struct fault *fault); /* NULL = none */
void fault_proxy_delay(struct fault_proxy *p, int64_t to_server_us, int64_t to_client_us);
/* Accepts new connections without answering, and silences the existing ones; false = they work
 * again. */
void fault_proxy_half_open(struct fault_proxy *p, bool is_on);
void fault_proxy_inject(struct fault_proxy *p, const char *text); /* to every client, unrequested */
/* Breaks every connection, by RST or FIN. */
void fault_proxy_break(struct fault_proxy *p, bool is_reset);

struct fault_proxy_counts {
    size_t accepted; /* connections in total */
    size_t open;
    size_t replies; /* from the server, in total */
    size_t faults;  /* replies that met the fault */
};
struct fault_proxy_counts fault_proxy_counts(struct fault_proxy *p);

#endif
