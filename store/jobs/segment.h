/* SPDX-License-Identifier: Apache-2.0
 *
 * One segment, hence one commit: the finishes and claims that arrived while the previous segment
 * was in flight. It knows the statements and which row settles which request; job_store decides
 * what follows. Does no I/O itself. */
#ifndef CLAIMD_STORE_JOBS_SEGMENT_H
#define CLAIMD_STORE_JOBS_SEGMENT_H

#include "store/jobs/claim.h"
#include "store/jobs/finish.h"
#include "store/pg/params.h"

#define SEGMENT_FINISHES_MAX 500
#define SEGMENT_FINISH_BYTES_MAX ((size_t)8 << 20)
#define SEGMENT_CLAIMS_MAX CLAIM_IDS_MAX

#define SEGMENT_STEPS_MAX (FINISH_KIND_COUNT + 9) /* one per kind of finish, and the others */

struct segment_step; /* one statement of the table in segment.c */

struct finish_list { /* finishes of one kind, sorted by fence once the segment is built */
    struct finish *items[SEGMENT_FINISHES_MAX];
    size_t count;
};

struct segment {
    struct finish_list finishes[FINISH_KIND_COUNT];
    size_t finish_count;
    size_t finish_bytes;
    struct claim_queue claims; /* all with the same kinds, and either all limited or none */
    struct claim_place places[SEGMENT_CLAIMS_MAX];
    bool has_suspect; /* holds a single finish and no claims */
    bool is_careful;  /* skips locked rows */
    /* only checks that the fence sequence is ahead of all fences already issued */
    bool checks_fence;
    bool reads_kinds; /* reads the defaults of all wanted kinds */
    const struct segment_step *steps[SEGMENT_STEPS_MAX];
    int step_count;
    struct params params[SEGMENT_STEPS_MAX];
};

void segment_release(struct segment *segment); /* frees what the segment still holds */

/* Take from the queue what one segment may carry: at most `max` finishes, all under one worker_id;
 * a suspect is sent alone. */
void segment_take_finishes(struct segment *segment, struct finish_queue *q, size_t max);
void segment_take_claims(struct segment *segment, struct claim_queue *q);
/* Put everything back at the front of a queue; the claims may go to another queue than they came
 * from. */
void segment_return_finishes(struct segment *segment, struct finish_queue *q, bool is_unknown);
void segment_return_claims(struct segment *segment, struct claim_queue *q);

/* Fills the steps of the request. NOMEM, LIMIT. */
enum status segment_build(struct segment *segment, struct kind_cache *kinds, const char *worker,
                          struct pg_request *request, struct err *err) MUST_USE;

/* Settles the finishes and ids that have rows in the results, and reads the kinds' defaults; raises
 * *ret_fence to the highest fence drawn. If memory runs out, an id stays unsettled: the recheck
 * then reports it as gone, and the scheduler's full pass finds the row that no worker holds. */
void segment_settle(struct segment *segment, struct kind_cache *kinds,
                    const struct pg_result *const *results, int64_t now_us, int64_t *ret_fence);

/* Calls back for each job that became claimable because the segment's finishes freed something. */
void segment_tell_freed(const struct segment *segment, const struct pg_result *const *results,
                        freed_cb *on_freed, void *ctx);
void segment_tell_freed_rows(const struct pg_result *rows, freed_cb *on_freed, void *ctx);

/* Settles claims with the rows of a claim or of its read-back. */
void segment_settle_claims(const struct claim_place *places, size_t count,
                           const struct kind_cache *kinds, const struct pg_result *rows,
                           int64_t *ret_fence);

/* Lists every id of the claims from `first` on that isn't settled, sorted. Returns how many. */
size_t segment_places(struct claim *first, struct claim_place *ret_places, size_t max);

#endif
