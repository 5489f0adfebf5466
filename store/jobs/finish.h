/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishes that wait for their commit: copied, cleaned, in the order of their arrival, bounded in
 * number and bytes. Whoever takes one owns it until it is put back or freed. Pure: no I/O. */
#ifndef CLAIMD_STORE_JOBS_FINISH_H
#define CLAIMD_STORE_JOBS_FINISH_H

#include "base/fifo.h"
#include "store/jobs/job_store.h"

#define FINISH_WAITING_MAX 10000
#define FINISH_WAITING_BYTES_MAX ((size_t)128 << 20)

struct finish {
    struct finish *next;
    struct job_finish f; /* its texts lie behind this struct; may be DROPPED */
    finish_cb *done;
    void *ctx;
    char worker_id[JOB_WORKER_ID_SIZE];
    size_t bytes;
    bool is_unknown;        /* sent before, and the answer was lost */
    bool is_refused;        /* its data were refused: it is recorded as a failure instead */
    bool is_settled;        /* scratch of the batch that it is in */
    bool is_suspect;        /* refused when it was alone in a batch: it goes alone from then on */
    int refusals;           /* alone, each after others had been committed */
    uint64_t suspect_since; /* how many batches had been committed at the last of them */
    int64_t again_us;       /* BOOTTIME; set aside until then */
    int64_t wait_us;        /* and for so long the last time */
};

/* Copies. A result that PostgreSQL could never take (too long, not UTF-8) is refused right here, a
 * delay is brought into its range. NOMEM. */
enum status finish_new(const struct job_finish *f, finish_cb *done, void *ctx,
                       struct finish **ret_finish, struct err *err) MUST_USE;
void finish_free(struct finish *f); /* accepts NULL */

/* What job_attempt says of a run that failed or snoozed. A literal, or as long as `f`. */
const char *finish_outcome(const struct job_finish *f);

/* PostgreSQL refused its data: what is left of it is a failure with the reason, "result refused":
 * of a completed run for good, since it would return the same again; of a retry after the usual
 * backoff. Asked again, it gives up its log too. NOT_FOUND: nothing is left to give up. */
enum status finish_refuse(struct finish *f, const char *why, struct err *err) MUST_USE;

DEFINE_FIFO(finish_queue, finish);
void finish_queue_release(struct finish_queue *q); /* frees all */
/* All of them, behind those that are there. */
void finish_queue_move(struct finish_queue *to, struct finish_queue *from);

#endif
