/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/let_go.h"

#include "worker/intake/intake.h"
#include "worker/jobs/lease.h"

#include <stdio.h>

static struct hint hint_of(const struct active_job *job)
{
    return (struct hint){.id = job->id,
                         .score = job->score,
                         .queue = job->queue,
                         .kind = job->hint_kind[0] == '\0' ? NULL : job->hint_kind};
}

void let_go_held(struct intake *in, const struct hint *hint)
{
    if (in->env.standing->stage != WORKER_RUNNING) {
        hint_return_add(in, hint); /* another worker may ask */
        return;
    }
    question_add(&in->questions[QUESTION_DUE], hint);
    question_ask(&in->questions[QUESTION_DUE]);
}

void let_go_hint(struct intake *in, const struct active_job *job)
{
    const struct hint h = hint_of(job);
    if (job->hint_goes == HINT_KEPT) {
        let_go_held(in, &h);
    } else {
        hint_return_add(in, &h);
    }
}

void let_go_job(struct intake *in, struct active_job *job)
{
    lease_release(job);
    active_remove(in->env.active, job);
}

/* The hint of a job that is passed on names its kind to the next worker that pops it. It is pushed
 * once the release of the job's lease is acknowledged. */
static void return_hint(struct intake *in, struct active_job *job)
{
    if (job->hint_goes == HINT_TO_KIND) {
        (void)snprintf(job->hint_kind, sizeof job->hint_kind, "%s", job->kind);
    }
    let_go_hint(in, job);
}

void let_go_ended(struct intake *in)
{
    struct active_job *job = NULL;
    bool is_any_passed_on = false;
    if (in->env.active->ended == NULL) {
        return;
    }
    while ((job = active_take_ended(in->env.active)) != NULL) {
        if (job->is_returned) {
            return_hint(in, job);
        }
        is_any_passed_on = is_any_passed_on || job->hint_goes == HINT_TO_KIND;
        limits_ended(in, job);
        active_free(job);
    }
    if (is_any_passed_on) {
        hint_return_now(in);
    }
    limits_update(in);
    in->env.due->room = true;
    in->env.due->end = true;
}
