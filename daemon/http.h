/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /metrics, /healthz and /readyz, answered by one thread of its own from what the telemetry has
 * published: nothing that a client does reaches the loop. The only user of libmicrohttpd. */
#ifndef CLAIMD_DAEMON_HTTP_H
#define CLAIMD_DAEMON_HTTP_H

#include "daemon/telemetry.h"

struct http;

/* Begins to answer on `listen` (config_listen()); `key` names it in errors. "" = off: *ret is NULL.
 * UNAVAILABLE: the address can't be had. */
enum status http_open(const char *key, const char *listen, struct telemetry *telemetry,
                      struct http **ret, struct err *err) MUST_USE;

/* "127.0.0.1:8422", with the real port; "off". */
const char *http_address(const struct http *h);

void http_close(struct http *h); /* waits for its thread; accepts NULL */

#endif
