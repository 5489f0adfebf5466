/* SPDX-License-Identifier: Apache-2.0
 *
 * One request to claim, until it is answered: each id becomes either a claimed or a refused job,
 * once. Pure: no I/O. */
#ifndef CLAIMD_STORE_JOBS_CLAIM_H
#define CLAIMD_STORE_JOBS_CLAIM_H

#include "base/clock.h"
#include "base/fifo.h"
#include "store/jobs/job_store.h"
#include "store/jobs/kind_cache.h"

#define CLAIM_IDS_MAX 500
#define CLAIM_KINDS_MAX 256

struct claim_text;

struct claim {
    struct claim *next;
    claim_cb *done;
    void *ctx;
    int64_t *ids;
    bool *is_settled; /* per id */
    size_t count;
    size_t ahead_from;
    bool is_limited; /* the ids that aren't settled have a limit: they need a claim of their own */
    const char **kinds;
    size_t kind_count;
    struct claimed_job *jobs;
    size_t job_count;
    char worker_id[JOB_WORKER_ID_SIZE]; /* the worker id under which it was sent */
    struct refused_job *refused;
    size_t refused_count;
    struct claim_text *texts; /* the texts that jobs and refused point to */
};

/* Makes a claim. INVALID (a name that no kind can have, too many kinds), NOMEM. */
enum status claim_new(const struct claim_request *request, struct claim **ret_claim,
                      struct err *err) MUST_USE;
void claim_free(struct claim *c); /* accepts NULL */

bool claim_same_kinds(const struct claim *a, const struct claim *b);
bool claim_is_settled(const struct claim *c); /* true if all its ids are settled */

/* Estimates for future claims, learned from past ones. */
#define CLAIM_OUTLOOK_US US_PER_S
struct claim_outlook {
    /* until then, jobs that a claim leaves out are assumed to have a limit */
    int64_t limits_until_us;
    /* until then, all jobs are assumed to have one: claims use claim_limited() at once */
    int64_t only_limits_until_us;
};
void claim_learn(struct claim_outlook *o, const struct claim *c, int64_t now_us);

/* Settles ids[n] as claimed, from a row of job_claim or job_adopt. NOMEM changes nothing. */
enum status claim_put_job(struct claim *c, size_t n, const struct pg_result *rows, int row,
                          const struct kind_cache *kinds, struct err *err) MUST_USE;

/* Settles ids[n] as refused. `rows` (of job_recheck) may be NULL; if memory for the texts runs out,
 * the refusal becomes NOT_TRIED. */
void claim_refuse(struct claim *c, size_t n, enum claim_refusal why, const struct pg_result *rows,
                  int row);
void claim_refuse_rest(struct claim *c, enum claim_refusal why);

/* Calls back and frees the claim; all ids must be settled. */
void claim_answer(struct claim *c);

/* Requests in order of arrival. */
DEFINE_FIFO(claim_queue, claim);
size_t claim_queue_ids(const struct claim_queue *q); /* number of ids that its claims ask for */
void claim_queue_release(struct claim_queue *q);     /* frees all without calling back */

/* An id and its place in a request; an id may be in several requests. */
struct claim_place {
    int64_t id;
    struct claim *claim;
    size_t n;
};
void claim_places_sort(struct claim_place *places, size_t count);
/* Returns the first place of `id` that isn't settled; NULL = none. */
const struct claim_place *claim_places_find(const struct claim_place *places, size_t count,
                                            int64_t id);

#endif
