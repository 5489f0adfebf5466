/* SPDX-License-Identifier: Apache-2.0
 *
 * One request to claim, on its way to an answer: each id asked for becomes a claimed or a refused
 * job, once. Pure: no I/O. */
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
    bool is_limited; /* what isn't settled yet has a limit: a claim of its own */
    const char **kinds;
    size_t kind_count;
    struct claimed_job *jobs;
    size_t job_count;
    char worker_id[JOB_WORKER_ID_SIZE]; /* under which it was sent */
    struct refused_job *refused;
    size_t refused_count;
    struct claim_text *texts; /* what jobs and refused point to */
};

/* INVALID (a kind that is no kind's name, too many of them), NOMEM. */
enum status claim_new(const struct claim_request *request, struct claim **ret_claim,
                      struct err *err) MUST_USE;
void claim_free(struct claim *c); /* accepts NULL */

bool claim_same_kinds(const struct claim *a, const struct claim *b);
bool claim_is_settled(const struct claim *c); /* all ids are */

/* What the claims to come are expected to be of, by those before. */
#define CLAIM_OUTLOOK_US US_PER_S
struct claim_outlook {
    int64_t limits_until_us;      /* so long what a claim leaves out is taken to have a limit, */
    int64_t only_limits_until_us; /* and all jobs are: claims go within limits at once */
};
void claim_learn(struct claim_outlook *o, const struct claim *c, int64_t now_us);

/* Row of job_claim or job_adopt; settles ids[n]. NOMEM leaves it as it was. */
enum status claim_put_job(struct claim *c, size_t n, const struct pg_result *rows, int row,
                          const struct kind_cache *kinds, struct err *err) MUST_USE;

/* Settles ids[n]. `rows` (of job_recheck) may be NULL; without memory for its texts it is
 * NOT_TRIED. */
void claim_refuse(struct claim *c, size_t n, enum claim_refusal why, const struct pg_result *rows,
                  int row);
void claim_refuse_rest(struct claim *c, enum claim_refusal why);

/* Calls back and frees; all ids must be settled. */
void claim_answer(struct claim *c);

/* Requests in the order of their arrival. */
DEFINE_FIFO(claim_queue, claim);
size_t claim_queue_ids(const struct claim_queue *q); /* how many its claims ask for */
void claim_queue_release(struct claim_queue *q);     /* frees all, calls nobody */

/* Where an id is in several requests. */
struct claim_place {
    int64_t id;
    struct claim *claim;
    size_t n;
};
void claim_places_sort(struct claim_place *places, size_t count);
/* The first place of `id` that isn't settled; NULL: none. */
const struct claim_place *claim_places_find(const struct claim_place *places, size_t count,
                                            int64_t id);

#endif
