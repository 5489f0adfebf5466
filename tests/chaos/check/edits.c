/* SPDX-License-Identifier: Apache-2.0
 *
 * K3: an acknowledged change holds for every claim that is requested after it: no run has args
 * older than such an edit (S9), and no run follows a cancel that asked a running job to end
 * (S11). */
#include "check.h"

#include <inttypes.h>

#define K3 "K3"

/* Returns when the claim under this fence was requested; 0 = unknown. */
static int64_t asked_at(const struct job *j, int64_t fence)
{
    const struct event *ok = NULL;
    for (size_t i = j->event_count; i > 0; i--) {
        const struct event *e = &j->events[i - 1];
        if (e->op != OP_CLAIM) {
            continue;
        }
        if (e->phase == PH_OK && e->fence == fence) {
            ok = e;
        } else if (ok != NULL && e->phase == PH_INV && e->process == ok->process) {
            return e->t;
        }
    }
    return 0;
}

/* An edit for the next attempt of a running job is dropped if there is no next attempt
 * (docs/guide/operating-jobs.md), and a retry by hand restores what was in the history. */
static bool was_retried_since(const struct job *j, int64_t fence, int64_t t)
{
    int64_t retried = 0;
    for (size_t i = 0; i < j->row_count; i++) {
        const struct row *row = &j->rows[i];
        if (row->old_state == NULL && row->generation > 0 && row->new_state != NULL) {
            retried = row->t;
        } else if (row->fence == fence) {
            return retried > t;
        }
    }
    return false;
}

static void check_args(struct run *r, const struct job *j, const struct event *edit)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->op == OP_STARTED && e->version < edit->version && asked_at(j, e->fence) > edit->t &&
            !was_retried_since(j, e->fence, edit->t)) {
            violation(r, K3, "S9", j->id,
                      "ran under fence %" PRId64 " with version %" PRId64
                      " of its args, claimed after it had been edited to version %" PRId64,
                      e->fence, e->version, edit->version);
        }
    }
}

static void check_cancel(struct run *r, const struct job *j, const struct event *cancel)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->t > cancel->t && e->op == OP_RETRY && e->phase != PH_FAIL) {
            return;
        }
        if (e->op == OP_CLAIM && e->phase == PH_OK && asked_at(j, e->fence) > cancel->t) {
            violation(r, K3, "S11", j->id,
                      "claimed under fence %" PRId64 " after it had been asked to end", e->fence);
        }
    }
}

void check_edits(struct run *r)
{
    for (size_t i = 1; i < r->job_count; i++) {
        const struct job *j = &r->jobs[i];
        for (size_t k = 0; k < j->event_count; k++) {
            const struct event *e = &j->events[k];
            if (commit_may_be_lost(r, e->t, e->t)) {
                continue;
            }
            if (e->op == OP_EDIT && e->phase == PH_OK && e->version > 0) {
                check_args(r, j, e);
            } else if (e->op == OP_CANCEL && e->phase == PH_ASKED) {
                check_cancel(r, j, e);
            }
        }
    }
}
