/* SPDX-License-Identifier: Apache-2.0
 *
 * One segment, hence one commit: the finishes and claims that arrived while the previous segment
 * was in flight. It knows the statements and which row settles which request; job_store decides
 * what follows. Does no I/O itself. */
#ifndef CLAIMD_STORE_JOBS_BATCH_H
#define CLAIMD_STORE_JOBS_BATCH_H

#include "store/jobs/claim.h"
#include "store/jobs/finish.h"
#include "store/pg/params.h"

#define BATCH_FINISHES_MAX 500
#define BATCH_FINISH_BYTES_MAX ((size_t)8 << 20)
#define BATCH_CLAIMS_MAX CLAIM_IDS_MAX

#define BATCH_STEPS_MAX (FINISH_KIND_COUNT + 9) /* one per kind of finish, and the others */

struct batch_step; /* one statement of the table in batch.c */

struct finish_list { /* finishes of one kind, sorted by fence once the batch is built */
    struct finish *items[BATCH_FINISHES_MAX];
    size_t count;
};

struct batch {
    struct finish_list finishes[FINISH_KIND_COUNT];
    size_t finish_count;
    size_t finish_bytes;
    struct claim_queue claims; /* all with the same kinds, and either all limited or none */
    struct claim_place places[BATCH_CLAIMS_MAX];
    bool has_suspect; /* holds a single finish and no claims */
    bool is_careful;  /* skips locked rows */
    /* only checks that the fence sequence is ahead of all fences already issued */
    bool checks_fence;
    bool reads_kinds; /* reads the defaults of all wanted kinds */
    const struct batch_step *steps[BATCH_STEPS_MAX];
    int step_count;
    struct params params[BATCH_STEPS_MAX];
};

void batch_release(struct batch *b); /* frees what the batch still holds */

/* Take from the queue what one segment may carry: at most `max` finishes, all under one worker_id;
 * a suspect is sent alone. */
void batch_take_finishes(struct batch *b, struct finish_queue *q, size_t max);
void batch_take_claims(struct batch *b, struct claim_queue *q);
/* Put everything back at the front of a queue; the claims may go to another queue than they came
 * from. */
void batch_return_finishes(struct batch *b, struct finish_queue *q, bool is_unknown);
void batch_return_claims(struct batch *b, struct claim_queue *q);

/* Fills the steps of the request. NOMEM, LIMIT. */
enum status batch_build(struct batch *b, struct kind_cache *kinds, const char *worker,
                        struct pg_request *request, struct err *err) MUST_USE;

/* Settles the finishes and ids that have rows in the results, and reads the kinds' defaults; raises
 * *ret_fence to the highest fence drawn. If memory runs out, an id stays unsettled: the recheck
 * then reports it as gone, and the scheduler's full pass finds the row that no worker holds. */
void batch_settle(struct batch *b, struct kind_cache *kinds, const struct pg_result *const *results,
                  int64_t now_us, int64_t *ret_fence);

/* Calls back for each job that became claimable because the batch's finishes freed something. */
void batch_tell_freed(const struct batch *b, const struct pg_result *const *results,
                      freed_cb *on_freed, void *ctx);
void batch_tell_freed_rows(const struct pg_result *rows, freed_cb *on_freed, void *ctx);

/* Settles claims with the rows of a claim or of its read-back. */
void batch_settle_claims(const struct claim_place *places, size_t count,
                         const struct kind_cache *kinds, const struct pg_result *rows,
                         int64_t *ret_fence);

/* Lists every id of the claims from `first` on that isn't settled, sorted. Returns how many. */
size_t batch_places(struct claim *first, struct claim_place *ret_places, size_t max);

#endif
