/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP server for a few pages, GET and HEAD only. It runs in a thread of its own, so that no
 * client can disturb the loop. Only this module uses libmicrohttpd. */
#ifndef CLAIMD_DAEMON_HTTP_H
#define CLAIMD_DAEMON_HTTP_H

#include "base/buf.h"
#include "config/config.h"

struct http;

struct http_answer {
    bool is_fine;     /* 200 if true, else 503 */
    const char *type; /* a constant */
    struct buf text;  /* zeroed; the callback initialises it with a bound */
};

/* Fills the answer; runs in the HTTP thread. If it fails, for lack of memory, the connection is
 * closed. */
typedef enum status http_page_cb(void *ctx, struct http_answer *ret, struct err *err);

struct http_page {
    const char *path;
    http_page_cb *answer;
};

struct http_options {
    const char *key; /* the configuration key, for error messages */
    const char *listen;
    const struct http_page *pages; /* borrowed */
    size_t page_count;
    void *ctx; /* for the pages' callbacks */
};

/* Starts to serve on `listen` (config_listen()). "" = off: *ret is NULL. Returns UNAVAILABLE if it
 * can't listen there. */
enum status http_open(const struct http_options *options, struct http **ret,
                      struct err *err) MUST_USE;

/* Returns the address with the actual port, such as "127.0.0.1:8422", or "off". */
const char *http_address(const struct http *h);

void http_close(struct http *h); /* waits for its thread; accepts NULL */

/* ---- listener.c ---- */

#define LISTENER_TEXT_MAX 80

/* Opens a CLOEXEC, non-blocking socket and writes its address with the actual port. Resolves the
 * host name, which may block. Returns UNAVAILABLE if this host has no such address or the port is
 * taken. */
enum status listener_open(const struct config_listen *where, int *ret_fd,
                          char ret_text[LISTENER_TEXT_MAX], struct err *err) MUST_USE;

#endif
