/* SPDX-License-Identifier: Apache-2.0
 *
 * From popped hints to claimed jobs: how many ids to pop and of which sets, the locks and claims of
 * their jobs, and the hints that go back. A job leaves this part as READY, or on one of the lists
 * of active_jobs.h. */
#ifndef CLAIMD_WORKER_INTAKE_INTAKE_H
#define CLAIMD_WORKER_INTAKE_INTAKE_H

#include "worker/env.h"
#include "worker/intake/capacity.h"
#include "worker/intake/claim.h"
#include "worker/intake/fetch.h"
#include "worker/intake/hint_return.h"
#include "worker/intake/let_go.h"
#include "worker/intake/limits.h"
#include "worker/intake/listen.h"
#include "worker/intake/question.h"
#include "worker/intake/room.h"
#include "worker/intake/sift.h"
#include "worker/jobs/active_jobs.h"
#include "worker/jobs/lengths.h"
#include "worker/membership/kinds.h"
#include "worker/worker_metrics.h"

/* What it needs from outside. */
struct intake_env {
    struct servers *servers;
    struct standing *standing;
    struct due *due;
    struct active_jobs *active;
    struct lengths *lengths;
    const struct kinds *kinds;
    struct worker_metrics *metrics;
    struct rand *rand;

    void *ctx; /* of what follows */
    /* Adds the runners, and the jobs that wait in them. */
    void (*count_runners)(void *ctx, int64_t now_us, struct capacity_facts *f);
};

struct intake {
    struct intake_env env;
    struct room room;
    struct fetch fetch;
    struct listen listen;
    struct limits limits;
    struct sift sift;
    struct question questions[QUESTION_COUNT];
    struct hint_return *hint_return;
};

enum status intake_open(struct intake *in, const struct intake_env *env, struct err *err) MUST_USE;
void intake_close(struct intake *in);

/* The callbacks of hints_popper; their context is the intake. */
size_t intake_want(void *intake);
void intake_popped(void *intake, const struct hint *list, size_t count);
void intake_lost_pop(void *intake);
void intake_news(void *intake);

/* True if it waits for no answer about a hint and has none to put back. */
bool intake_is_idle(const struct intake *in);

#endif
