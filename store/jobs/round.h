/* SPDX-License-Identifier: Apache-2.0
 *
 * One segment, hence one commit: the finishes and claims that gathered while the one before it was
 * in flight. It knows the statements and which row settles what; job_store decides what follows. No
 * I/O of its own. */
#ifndef CLAIMD_STORE_JOBS_ROUND_H
#define CLAIMD_STORE_JOBS_ROUND_H

#include "store/jobs/claim.h"
#include "store/jobs/finish_queue.h"
#include "store/pg/params.h"

#define ROUND_FINISHES_MAX 500
#define ROUND_FINISH_BYTES_MAX ((size_t)8 << 20)
#define ROUND_CLAIMS_MAX CLAIM_IDS_MAX
#define FINISH_KIND_COUNT (FINISH_HAND_BACK + 1)

/* Steps in the order in which they are sent; empty ones are left out. */
enum round_step {
    STEP_GUARD,
    STEP_COMPLETE,
    STEP_RETRY,
    STEP_DISCARD,
    STEP_HAND_BACK,
    STEP_KINDS,
    STEP_CLAIM,
    STEP_CLAIM_AHEAD,
    STEP_COUNT
};

struct round_lane { /* finishes of one kind, by rising fence once the round is built */
    struct finish *list[ROUND_FINISHES_MAX];
    size_t count;
};

struct round {
    struct round_lane lanes[FINISH_KIND_COUNT];
    size_t finish_count;
    size_t finish_bytes;
    struct claim_queue claims; /* all with the same kinds */
    struct claim_place places[ROUND_CLAIMS_MAX];
    bool has_suspect;  /* one finish alone, and no claims */
    bool is_careful;   /* leaves out locked rows */
    bool guards_fence; /* sees to it that the fences to come are new: in a round of its own */
    bool reads_kinds;  /* reads the defaults of all kinds wanted */
    enum round_step steps[STEP_COUNT];
    int step_count;
    struct params params[STEP_COUNT];
};

void round_release(struct round *r); /* frees what it still holds */

/* Take from the queue what one segment may carry: at most `max` finishes, all under one
 * worker_id; a suspect goes alone. */
void round_take_finishes(struct round *r, struct finish_queue *q, size_t max);
void round_take_claims(struct round *r, struct claim_queue *q);
/* Give everything back to where it was; the claims may have another destination. */
void round_return_finishes(struct round *r, struct finish_queue *q, bool is_unknown);
void round_return_claims(struct round *r, struct claim_queue *q);

/* Fills the request's steps. NOMEM, LIMIT. */
enum status round_build(struct round *r, struct kind_cache *kinds, const char *worker,
                        struct pg_request *request, struct err *err) MUST_USE;

/* Marks finishes and settles ids that the rows speak of, and reads the kinds' defaults;
 * *ret_fence rises to the highest fence drawn. What there is no memory for stays unsettled: the
 * look calls such an id gone, and the scheduler's full pass finds the row that nobody holds. */
void round_settle(struct round *r, struct kind_cache *kinds, const struct pg_result *const *results,
                  int64_t now_us, int64_t *ret_fence);

/* Rows of a claim or of its read-back. */
void round_settle_claims(const struct claim_place *places, size_t count,
                         const struct kind_cache *kinds, const struct pg_result *rows,
                         int64_t *ret_fence);

/* Every id of the claims from `first` on that isn't settled, sorted; returns how many. */
size_t round_places(struct claim *first, struct claim_place *ret_places, size_t max);

#endif
