/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishes that wait for their commit: copied, cleaned, in order of arrival, bounded in number and
 * bytes. The caller that takes one owns it until it puts it back or frees it. Pure: no I/O. */
#ifndef CLAIMD_STORE_JOBS_FINISH_H
#define CLAIMD_STORE_JOBS_FINISH_H

#include "base/fifo.h"
#include "store/jobs/job_store.h"

#define FINISH_WAITING_MAX 10000
#define FINISH_WAITING_BYTES_MAX ((size_t)128 << 20)

struct finish {
    struct finish *next;
    struct job_finish f; /* its texts are stored behind this struct; kind may be DROPPED */
    finish_cb *done;
    void *ctx;
    char worker_id[JOB_WORKER_ID_SIZE];
    size_t bytes;
    bool is_unknown; /* sent before, and the reply was lost */
    bool is_refused; /* its data were refused, so it is recorded as a failure instead */
    bool is_settled; /* scratch space for the segment that holds it */
    bool is_suspect; /* refused when it was alone in a segment; from then on it is sent alone */
    int refusals;    /* number of refusals alone, each after others had been committed */
    uint64_t suspect_since; /* number of segments committed at the time of the last refusal */
    int64_t again_us;       /* BOOTTIME until which it is set aside */
    int64_t wait_us;        /* how long it was set aside the last time */
};

/* Copies a finish. A result that PostgreSQL could never store (too long, not UTF-8) is refused
 * here, and the delay is clamped to its range. NOMEM. */
enum status finish_new(const struct job_finish *f, finish_cb *done, void *ctx,
                       struct finish **ret_finish, struct err *err) MUST_USE;
void finish_free(struct finish *f); /* accepts NULL */

/* Returns the outcome for job_attempt of a run that failed or snoozed: a literal, or a text that
 * lives as long as `f`. */
const char *finish_outcome(const struct job_finish *f);

/* Turns a finish whose data PostgreSQL refused into a failure with the reason "result refused". A
 * completed run fails for good, since it would return the same again; a retry keeps its kind, with
 * the usual backoff. A second call drops the log, too. NOT_FOUND: there is nothing left to drop. */
enum status finish_refuse(struct finish *f, const char *why, struct err *err) MUST_USE;

DEFINE_FIFO(finish_queue, finish);
void finish_queue_release(struct finish_queue *q); /* frees all finishes */
/* Appends all of `from` to `to`. */
void finish_queue_move(struct finish_queue *to, struct finish_queue *from);

#endif
