/* SPDX-License-Identifier: Apache-2.0
 *
 * A bad network in front of one Redis: a TCP port of 127.0.0.1 whose connections are carried to
 * the server's unix socket by a thread of its own, which delays, swallows, replaces or breaks what
 * comes back, as the test says meanwhile. It knows which reply answers which command, so a fault
 * can be meant for the replies to one command only. */
#ifndef CLAIMD_TESTS_SUPPORT_FAULT_PROXY_H
#define CLAIMD_TESTS_SUPPORT_FAULT_PROXY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define FAULT_TEXT_MAX 64

enum fault_kind {
    FAULT_NONE,
    FAULT_SWALLOW, /* the reply never comes */
    FAULT_REPLACE, /* `text` comes instead */
    FAULT_ENDLESS, /* `text`, and then `more` again and again until the client goes away */
    FAULT_RESET,   /* RST instead of the reply */
    FAULT_CUT      /* the first half of the reply, then the end of the connection */
};

struct fault {
    enum fault_kind kind;
    const char *on; /* replies to this command (its first word); NULL = to any */
    const char *text;
    size_t text_len; /* 0 = strlen(text) */
    const char *more;
    size_t count; /* this many replies; 0 = all from now on */
};

struct fault_proxy;

/* `path`: the server's unix socket. UNAVAILABLE, NOMEM. Texts are copied, at most FAULT_TEXT_MAX
 * bytes of each. */
enum status fault_proxy_start(const char *path, struct fault_proxy **ret, struct err *err) MUST_USE;
void fault_proxy_stop(struct fault_proxy *p);             /* breaks its connections; accepts NULL */
const char *fault_proxy_url(const struct fault_proxy *p); /* "127.0.0.1:port" */

/* Each takes effect before it returns. */
void fault_proxy_set(struct fault_proxy *p, const struct fault *fault); /* NULL = none */
void fault_proxy_delay(struct fault_proxy *p, int64_t to_server_us, int64_t to_client_us);
/* New connections are accepted and never answered, those that exist fall silent; false = they are
 * heard again. */
void fault_proxy_half_open(struct fault_proxy *p, bool is_on);
void fault_proxy_inject(struct fault_proxy *p, const char *text); /* to every client, unasked */
void fault_proxy_break(struct fault_proxy *p, bool is_reset);     /* every connection: RST or FIN */

struct fault_proxy_counts {
    size_t accepted; /* connections, ever */
    size_t open;
    size_t replies; /* of the server, ever */
    size_t faults;  /* how many of them met the fault */
};
struct fault_proxy_counts fault_proxy_counts(struct fault_proxy *p);

#endif
