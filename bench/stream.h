/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs at a constant rate by one client with a session of its own, each with a commit of its own.
 * It runs on the cluster's loop: whatever waits there lets it work. */
#ifndef CLAIMD_BENCH_STREAM_H
#define CLAIMD_BENCH_STREAM_H

#include "bench/cluster.h"

struct stream {
    struct db db;
    uv_timer_t timer;
    int64_t rate; /* a second */
    int64_t jobs; /* to insert; of this many there are times */
    int64_t begun_us;
    int64_t sent;
    int64_t done;
    int64_t behind_us; /* so much later than due one was sent, at most */
    int64_t first_id;  /* the others follow it */
    int64_t *sent_us;
    int64_t *committed_us; /* the reply to the commit had come */
    enum status st;
    struct err err;
};

/* Close it in any case. NOMEM, or there is no session. */
enum status stream_open(struct stream *s, struct cluster *c, int64_t jobs_max,
                        struct err *err) MUST_USE;
void stream_close(struct stream *s, struct cluster *c);

/* Begins anew; the times of what went before are gone. `jobs` ≤ jobs_max. */
void stream_start(struct stream *s, int64_t rate, int64_t jobs);
bool stream_is_over(const struct stream *s); /* all are committed, or one failed */

/* From each job's commit to the start of its handler, in no order; room for `jobs`. All must have
 * ended. CONFLICT: the history has not all of them. */
enum status stream_read_waits(const struct stream *s, struct cluster *c, int64_t *ret_us,
                              struct err *err) MUST_USE;

/* What the commit itself took: the client does not wait for one before it sends the next. */
int64_t stream_commit_us(const struct stream *s, int64_t n);

#endif
