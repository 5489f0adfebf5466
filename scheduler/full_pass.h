/* SPDX-License-Identifier: Apache-2.0
 *
 * Full passes while this scheduler leads: discovers all lanes again and reads each from its
 * beginning up to its cursor, as model/feed_full plans it. It has a connection of its own, so that
 * neither young rows nor heartbeats wait for the index entries that a full pass may have to walk
 * over. It is the safety net of the feed (INTERFACES rule 13). */
#ifndef CLAIMD_SCHEDULER_FULL_PASS_H
#define CLAIMD_SCHEDULER_FULL_PASS_H

#include "model/feed_full.h"
#include "scheduler/feed_reader.h"

struct full_pass;

struct full_pass_options {
    uv_loop_t *loop;
    const char *conninfo; /* borrowed, like the next three */
    struct hints *hints;
    struct feed *feed;
    const struct feed_served *served;
    int64_t timeout_us; /* for connecting */
    int64_t every_us;
    int page_rows;
    /* Called when a full pass is complete and no other is running: lanes that it did not find may
     * be forgotten. */
    void (*on_complete)(void *ctx);
    void *ctx;
};

enum status full_pass_open(const struct full_pass_options *options, struct full_pass **ret,
                           struct err *err) MUST_USE;
/* Accepts NULL; no reply may arrive afterwards. */
void full_pass_close(struct full_pass *p);

/* Connects; the first full pass begins when one is requested, or after every_us. */
enum status full_pass_start(struct full_pass *p, struct err *err) MUST_USE;
/* Begins no more passes. A pass that is in progress ends by itself: see full_pass_is_busy(). */
void full_pass_stop(struct full_pass *p);
bool full_pass_is_busy(const struct full_pass *p);

/* Requests a full pass: somewhere behind the cursors there may be a row without a hint. */
void full_pass_want(struct full_pass *p);
void full_pass_set_every(struct full_pass *p, int64_t every_us);

struct full_pass_counters {
    uint64_t passes;    /* complete ones */
    uint64_t recovered; /* hints that were missing */
    /* BOOTTIME of the last complete one, or when leading began; 0 = not leading */
    int64_t began_us;
    int64_t took_us;
};
const struct full_pass_counters *full_pass_counters(const struct full_pass *p);

#endif
