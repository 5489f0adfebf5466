/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kinds are served where (INTERFACES rule 2): by every live worker of the queue → the queue's
 * own set of hints; by some → the set of that kind; by none → not fed. Pure. */
#ifndef CLAIMD_MODEL_FEED_SERVED_H
#define CLAIMD_MODEL_FEED_SERVED_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum feed_route {
    FEED_ROUTE_NONE,
    FEED_ROUTE_QUEUE, /* hints:<queue> */
    FEED_ROUTE_KIND   /* hints:<queue>:<kind> */
};

struct feed_served_queue {
    char *name;
    int workers;
    bool is_paused;
};

struct feed_served_kind {
    size_t queue;
    char *name;
    int workers;
};

struct feed_served {
    struct feed_served_queue *queues;
    size_t queue_count;
    size_t queue_cap;
    struct feed_served_kind *kinds;
    size_t kind_count;
    size_t kind_cap;
};

void feed_served_release(struct feed_served *s); /* all zeros is a valid empty table */

/* Adds a live worker; both lists are separated by commas. NOMEM. */
enum status feed_served_add(struct feed_served *s, const char *queues, const char *kinds,
                            struct err *err) MUST_USE;
enum status feed_served_pause(struct feed_served *s, const char *queue, struct err *err) MUST_USE;

enum feed_route feed_served_route(const struct feed_served *s, const char *queue, const char *kind);
/* True if a worker serves the queue and it is not paused. */
bool feed_served_has_queue(const struct feed_served *s, const char *queue);
/* Iterates over the served queues, ordered by name: returns the first one after `after` ("" is
 * before all); NULL at the end. */
const char *feed_served_next(const struct feed_served *s, const char *after);
/* Appends the kinds of the queue that some worker serves, separated by commas. */
enum status feed_served_kinds(const struct feed_served *s, const char *queue, struct buf *out,
                              struct err *err) MUST_USE;
/* Calls back for each kind of the queue that has a set of its own. */
typedef void feed_served_cb(void *ctx, const char *kind);
void feed_served_partial(const struct feed_served *s, const char *queue, feed_served_cb *each,
                         void *ctx);

/* Returns a hash of all routes that does not depend on the order in which workers were added: it
 * differs if two tables route any job differently. */
uint64_t feed_served_routes(const struct feed_served *s);
/* True if the two route any job of this queue differently. */
bool feed_served_differs(const struct feed_served *a, const struct feed_served *b,
                         const char *queue);

#endif
