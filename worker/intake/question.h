/* SPDX-License-Identifier: Apache-2.0
 *
 * A question that PostgreSQL is asked about the jobs of hints, before it is clear where the hints
 * go. One statement is in flight at a time; meanwhile, hints gather for the next one. The three
 * questions are in the table of intake.c. */
#ifndef CLAIMD_WORKER_INTAKE_QUESTION_H
#define CLAIMD_WORKER_INTAKE_QUESTION_H

#include "store/jobs/job_store.h"
#include "worker/intake/kept_hint.h"

#include <uv.h>

#define QUESTION_HINTS_MAX 500

struct intake;
struct question;

enum question_when {
    QUESTION_AT_ONCE,
    /* Long enough for a new holder to claim the job, or for the previous one to release its lock,
     * so that hints do not circulate in a tight loop. */
    QUESTION_LATER,
    QUESTION_RELEASED /* once all leases released so far are acknowledged */
};

/* What differs between the questions. */
struct question_rule {
    enum question_when when;
    /* Takes the answer if there is one. NULL: the hints of the jobs that it names go back, and the
     * others are dropped. */
    void (*take_named)(struct intake *in, const struct question *q);
    /* For an answer that names jobs other than those of the hints: takes each of them. */
    void (*take_other)(struct intake *in, const struct freed_job *job);
    /* Without an answer, the hints go back. Otherwise, a full pass finds the jobs. */
    bool goes_back;
};

struct question {
    struct intake *intake;
    enum job_question asks;
    const struct question_rule *rule;
    struct kept_hint gathering[QUESTION_HINTS_MAX];
    size_t gathered;
    bool is_asking; /* it was asked, or will be when its time comes */
    struct kept_hint asked[QUESTION_HINTS_MAX];
    bool is_named[QUESTION_HINTS_MAX]; /* by the answer */
    size_t asked_count;
    uv_timer_t timer;
};

enum status question_open(struct question *q, struct intake *in, enum job_question asks,
                          const struct question_rule *rule, struct err *err) MUST_USE;
void question_close(struct question *q);

/* Drops the hint if QUESTION_HINTS_MAX have gathered already. */
void question_add(struct question *q, const struct hint *hint);
/* Call after any number of question_add(). */
void question_ask(struct question *q);
bool question_is_idle(const struct question *q);

#endif
