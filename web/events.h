/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream of events (SSE) for browsers that watch: counters, and hints of what has changed. One
 * thread makes one snapshot for all; the thread of each connection waits for the next one. */
#ifndef CLAIMD_WEB_EVENTS_H
#define CLAIMD_WEB_EVENTS_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

struct web;
struct events;
struct stream;

enum status events_open(struct web *w, struct events **ret, struct err *err) MUST_USE;
/* Ends all streams, so that their connections can end. */
void events_stop(struct events *e);
void events_close(struct events *e); /* after all streams are closed; accepts NULL */

/* LIMIT: there are web.streams already. */
enum status stream_open(struct events *e, struct stream **ret, struct err *err) MUST_USE;
void stream_close(struct stream *s);
/* Writes what comes next, after waiting for it for up to 10 s. 0 = the stream has ended. */
size_t stream_read(struct stream *s, char *ret_bytes, size_t size);

#endif
