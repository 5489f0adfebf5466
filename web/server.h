/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server: connections, their bounds and deadlines. Only this module of web/ uses
 * libmicrohttpd. Each connection has a thread of its own, so that PostgreSQL's answers and streams
 * of events may be waited for. The library's own timeout is one of inactivity, so a client that
 * sends a byte now and then could stay for ever: server_sweep() ends such connections. */
#ifndef CLAIMD_WEB_SERVER_H
#define CLAIMD_WEB_SERVER_H

#include "web/api.h"

struct server;

/* Starts to serve on web.listen. UNAVAILABLE: it can't listen there. */
enum status server_open(struct web *w, struct server **ret, struct err *err) MUST_USE;
/* "http://127.0.0.1:8420/", with the actual port and the prefix. */
const char *server_address(const struct server *s);
/* Ends connections whose deadline has passed; call it twice a second. */
void server_sweep(struct server *s);
/* Ends all connections and waits for their threads; accepts NULL. Call events_stop() before. */
void server_close(struct server *s);

#endif
