/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages over HTTP, for GET and HEAD, served by a thread of its own: nothing that a client does
 * affects the loop. The only user of libmicrohttpd. */
#ifndef CLAIMD_DAEMON_HTTP_H
#define CLAIMD_DAEMON_HTTP_H

#include "base/buf.h"
#include "config/config.h"

struct http;

struct http_answer {
    bool is_fine;     /* 200, else 503 */
    const char *type; /* a constant */
    struct buf text;  /* zeroed at first; to be given a bound */
};

/* Called in the HTTP thread. If it fails, for lack of memory, the connection is closed. */
typedef enum status http_page_cb(void *ctx, struct http_answer *ret, struct err *err);

struct http_page {
    const char *path;
    http_page_cb *answer;
};

struct http_options {
    const char *key; /* of the configuration: for errors */
    const char *listen;
    const struct http_page *pages; /* borrowed */
    size_t page_count;
    void *ctx; /* of the pages */
};

/* Begins to serve on `listen` (config_listen()). "" = off: *ret is NULL. UNAVAILABLE: it can't
 * listen there. */
enum status http_open(const struct http_options *options, struct http **ret,
                      struct err *err) MUST_USE;

/* "127.0.0.1:8422", with the real port; "off". */
const char *http_address(const struct http *h);

void http_close(struct http *h); /* waits for its thread; accepts NULL */

/* ---- listener.c ---- */

#define LISTENER_TEXT_MAX 80

/* CLOEXEC, non-blocking; `ret_text` has the address and the real port. Looks the host up, which may
 * block. UNAVAILABLE: no such host here, or the port is taken. */
enum status listener_open(const struct config_listen *where, int *ret_fd,
                          char ret_text[LISTENER_TEXT_MAX], struct err *err) MUST_USE;

#endif
