/* SPDX-License-Identifier: Apache-2.0
 *
 * Inserts jobs at a constant rate by one client with a session of its own, each job in a commit of
 * its own. It runs on the cluster's loop, so it works whenever that loop runs. */
#ifndef CLAIMD_BENCH_STREAM_H
#define CLAIMD_BENCH_STREAM_H

#include "bench/cluster.h"

struct stream {
    struct db db;
    uv_timer_t timer;
    int64_t rate; /* per second */
    int64_t jobs; /* number of jobs to insert, whose times are kept */
    int64_t begun_us;
    int64_t sent;
    int64_t done;
    int64_t behind_us; /* longest time by which a job was sent late */
    int64_t first_id;  /* ids are consecutive from here */
    int64_t *sent_us;
    int64_t *committed_us; /* when the reply to the commit arrived */
    enum status st;
    struct err err;
};

/* Opens the session. Close it in any case. NOMEM, or the status of a failed connection. */
enum status stream_open(struct stream *s, struct cluster *c, int64_t jobs_max,
                        struct err *err) MUST_USE;
void stream_close(struct stream *s, struct cluster *c);

/* Starts a new stream, which overwrites the times of the last one. `jobs` ≤ jobs_max. */
void stream_start(struct stream *s, int64_t rate, int64_t jobs);
bool stream_is_over(const struct stream *s); /* all are committed, or one has failed */

/* Returns the times from each job's commit to the start of its handler, in no particular order;
 * `ret_us` has room for `jobs`. All jobs must have ended. CONFLICT: the history lacks some of
 * them. */
enum status stream_read_waits(const struct stream *s, struct cluster *c, int64_t *ret_us,
                              struct err *err) MUST_USE;

/* Returns how long the commit itself took: the client does not wait for one before it sends the
 * next. */
int64_t stream_commit_us(const struct stream *s, int64_t n);

#endif
