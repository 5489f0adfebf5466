/* SPDX-License-Identifier: Apache-2.0
 *
 * One segment, hence one commit: the finishes and claims that gathered while the one before it was
 * in flight. It knows the statements and which row settles what; job_store decides what follows. No
 * I/O of its own. */
#ifndef CLAIMD_STORE_JOBS_BATCH_H
#define CLAIMD_STORE_JOBS_BATCH_H

#include "store/jobs/claim.h"
#include "store/jobs/finish.h"
#include "store/pg/params.h"

#define BATCH_FINISHES_MAX 500
#define BATCH_FINISH_BYTES_MAX ((size_t)8 << 20)
#define BATCH_CLAIMS_MAX CLAIM_IDS_MAX

#define BATCH_STEPS_MAX (FINISH_KIND_COUNT + 9) /* one of each kind of finish, and the others */

struct batch_step; /* a statement: batch.c has the table of them */

struct finish_list { /* finishes of one kind, by rising fence once the batch is built */
    struct finish *items[BATCH_FINISHES_MAX];
    size_t count;
};

struct batch {
    struct finish_list finishes[FINISH_KIND_COUNT];
    size_t finish_count;
    size_t finish_bytes;
    struct claim_queue claims; /* all with the same kinds, all limited or none */
    struct claim_place places[BATCH_CLAIMS_MAX];
    bool has_suspect;  /* one finish alone, and no claims */
    bool is_careful;   /* leaves out locked rows */
    bool checks_fence; /* checks, alone, that the fence sequence is ahead of all fences given out */
    bool reads_kinds;  /* reads the defaults of all kinds wanted */
    const struct batch_step *steps[BATCH_STEPS_MAX];
    int step_count;
    struct params params[BATCH_STEPS_MAX];
};

void batch_release(struct batch *b); /* frees what it still holds */

/* Take from the queue what one segment may carry: at most `max` finishes, all under one
 * worker_id; a suspect goes alone. */
void batch_take_finishes(struct batch *b, struct finish_queue *q, size_t max);
void batch_take_claims(struct batch *b, struct claim_queue *q);
/* Give everything back to where it was; the claims may have another destination. */
void batch_return_finishes(struct batch *b, struct finish_queue *q, bool is_unknown);
void batch_return_claims(struct batch *b, struct claim_queue *q);

/* Fills the request's steps. NOMEM, LIMIT. */
enum status batch_build(struct batch *b, struct kind_cache *kinds, const char *worker,
                        struct pg_request *request, struct err *err) MUST_USE;

/* Marks finishes and settles ids that the rows speak of, and reads the kinds' defaults;
 * *ret_fence rises to the highest fence drawn. What there is no memory for stays unsettled: the
 * recheck calls such an id gone, and the scheduler's full pass finds the row that nobody holds. */
void batch_settle(struct batch *b, struct kind_cache *kinds, const struct pg_result *const *results,
                  int64_t now_us, int64_t *ret_fence);

/* Calls back for each job that became claimable by what its finishes freed. */
void batch_tell_freed(const struct batch *b, const struct pg_result *const *results,
                      freed_cb *on_freed, void *ctx);
void batch_tell_freed_rows(const struct pg_result *rows, freed_cb *on_freed, void *ctx);

/* Rows of a claim or of its read-back. */
void batch_settle_claims(const struct claim_place *places, size_t count,
                         const struct kind_cache *kinds, const struct pg_result *rows,
                         int64_t *ret_fence);

/* Every id of the claims from `first` on that isn't settled, sorted; returns how many. */
size_t batch_places(struct claim *first, struct claim_place *ret_places, size_t max);

#endif
