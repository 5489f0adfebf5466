/* SPDX-License-Identifier: Apache-2.0
 *
 * A job store on its own connection with the worker's role, and the answers that it gave. Builds on
 * pg_fixture.h: `side` is a superuser's session with which a test changes and reads rows. */
#ifndef CLAIMD_TESTS_JOB_STORE_FIXTURE_H
#define CLAIMD_TESTS_JOB_STORE_FIXTURE_H

#include "store/jobs/job_store.h"
#include "support/pg_fixture.h"

#define WORKER_A "aaaaaaaa-0000-4000-8000-000000000001"
#define WORKER_B "bbbbbbbb-0000-4000-8000-000000000002"
#define IDS_MAX 1000

struct store {
    struct pg *pg;
    struct job_store *jobs;
    int ups;
    int downs;
};

/* The answers to the claims and finishes of a test. */
struct answers {
    int claims;
    struct claimed_job jobs[IDS_MAX]; /* their texts are copied below, truncated */
    char args[IDS_MAX][64];
    char queues[IDS_MAX][32];
    char workers[IDS_MAX][JOB_WORKER_ID_SIZE];
    size_t job_count;
    struct refused_job refused[IDS_MAX];
    char refused_kinds[IDS_MAX][32];
    size_t refused_count;
    int finishes;
    int verdicts[FINISH_REFUSED + 1];
    int64_t last_refused_id;
    int64_t freed[IDS_MAX]; /* claimable since a limit was freed */
    size_t freed_count;
};

extern struct sql *side;
extern struct store store_a;
extern struct answers got;

/* Checked fixtures: `side`, store_a (worker A, up) and empty answers. */
void jobs_setup(void);
void jobs_teardown(void);

void store_open(struct store *s, const char *worker_id);
void store_start(struct store *s, const char *worker_id); /* and waits until it is up */
void store_stop(struct store *s);

/* Adds `count` jobs of kind "noop" and returns the first of their consecutive ids. */
int64_t add_jobs(int count);

/* Claims the ids first…first + count − 1, of the kinds noop and other. */
void ask(struct store *s, int64_t first, size_t count, size_t ahead_from);
/* Claims them and waits for the answer in got.jobs. */
void claim_now(struct store *s, int64_t first, size_t count);
const struct claimed_job *claimed(int64_t id); /* NULL: it was not claimed */
const struct refused_job *refused(int64_t id);

/* Returns a finish for the claimed job got.jobs[n]. */
struct job_finish finish_of(size_t n, enum finish_kind kind);
void submit(struct store *s, const struct job_finish *f);

#define ASSERT_NUMBER(sql, expected) ck_assert_int_eq(sql_number(side, "%s", (sql)), (expected))
#define ASSERT_TEXT(sql, expected) ck_assert_str_eq(sql_text(side, "%s", (sql)), (expected))

#endif
