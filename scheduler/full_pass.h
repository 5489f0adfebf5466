/* SPDX-License-Identifier: Apache-2.0
 *
 * Full passes while this scheduler leads: finds every lane anew and reads each from its beginning
 * up to its cursor, as model/feed_full plans it, on a connection of its own, so that neither the
 * young rows nor the beats wait for what a full pass may have to walk. It is the net below the feed
 * (INTERFACES rule 13). */
#ifndef CLAIMD_SCHEDULER_FULL_PASS_H
#define CLAIMD_SCHEDULER_FULL_PASS_H

#include "model/feed_full.h"
#include "scheduler/feed_reader.h"

struct full_pass;

struct full_pass_options {
    uv_loop_t *loop;
    const char *conninfo; /* borrowed, as the next three */
    struct hints *hints;
    struct feed *feed;
    const struct feed_served *served;
    int64_t timeout_us; /* of connecting */
    int64_t every_us;
    int page_rows;
    /* A full pass is complete, and none is under way: lanes that it did not meet may be
     * forgotten. */
    void (*on_complete)(void *ctx);
    void *ctx;
};

enum status full_pass_open(const struct full_pass_options *options, struct full_pass **ret,
                           struct err *err) MUST_USE;
/* Accepts NULL; replies under way must not come any more. */
void full_pass_close(struct full_pass *p);

/* Connects; the first full pass comes when one is wanted, or after every_us. */
enum status full_pass_start(struct full_pass *p, struct err *err) MUST_USE;
/* What is under way ends by itself: full_pass_is_busy(). */
void full_pass_stop(struct full_pass *p);
bool full_pass_is_busy(const struct full_pass *p);

/* Somewhere behind the cursors may be a row without a hint. */
void full_pass_want(struct full_pass *p);
void full_pass_set_every(struct full_pass *p, int64_t every_us);

struct full_pass_counters {
    uint64_t passes;    /* complete ones */
    uint64_t recovered; /* hints that were missing */
    int64_t began_us;   /* of the last complete one, else when leading began; 0 = not leading */
    int64_t took_us;
};
const struct full_pass_counters *full_pass_counters(const struct full_pass *p);

#endif
