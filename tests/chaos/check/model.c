/* SPDX-License-Identifier: Apache-2.0
 *
 * K6: models the ledger as two stores, one that checks the fence and one that does not. The second
 * must show damage if hosts are suspended, else the run was too gentle. No runner outlives its
 * worker (fault.A1), or continues while another one has its job, unless it was suspended
 * (fault.A4). K7: no worker runs more jobs than it has slots (S18). */
#include "check.h"

#include <inttypes.h>

#define K6 "K6"
#define GRACE_NS (500 * NS_PER_MS) /* time for the kernel to end a runner on a busy host */

static const struct event *claim_of(const struct job *j, int64_t fence)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->op == OP_CLAIM && e->phase == PH_OK && e->fence == fence) {
            return e;
        }
    }
    return NULL;
}

/* Returns the first claim under a newer fence. */
static const struct event *next_claim(const struct job *j, int64_t fence)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->op == OP_CLAIM && e->phase == PH_OK && e->fence > fence) {
            return e;
        }
    }
    return NULL;
}

static bool was_suspended(const struct run *r, const struct process *p, int64_t from, int64_t to)
{
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        if (fault_has(f, TRAIT_RUNNER_STOPPED) && fault_is_about(f, p) && f->from <= to &&
            f->to >= from) {
            return true;
        }
    }
    return false;
}

static void check_line(struct run *r, const struct job *j, const struct event *e, size_t *damage)
{
    const struct event *claim = claim_of(j, e->fence);
    const struct process *p = claim == NULL ? NULL : run_process(r, claim->process);
    const struct event *next = next_claim(j, e->fence);
    if (next != NULL && next->t < e->t && e->op == OP_EFFECT) {
        (*damage)++;
    }
    if (p == NULL) {
        return;
    }
    if (p->ended != NEVER && e->t > p->ended + GRACE_NS) {
        violation(r, K6, "A1", j->id,
                  "its handler under fence %" PRId64 " still ran %" PRId64
                  " ms after its worker %s had ended",
                  e->fence, (e->t - p->ended) / NS_PER_MS, p->name);
    }
    bool is_late = next != NULL && e->t > next->t + GRACE_NS;
    if (is_late && !was_suspended(r, p, claim->t, e->t) && !fault_is_beyond_locks(r, next->t)) {
        violation(r, K6, "A4", j->id,
                  "its handler under fence %" PRId64 " still ran %" PRId64
                  " ms after it had been claimed under fence %" PRId64 ", and was not suspended",
                  e->fence, (e->t - next->t) / NS_PER_MS, next->fence);
    }
}

void check_model(struct run *r)
{
    size_t damage = 0;
    for (size_t i = 1; i < r->job_count; i++) {
        const struct job *j = &r->jobs[i];
        for (size_t n = 0; n < j->event_count; n++) {
            if (j->events[n].source == FROM_LEDGER) {
                check_line(r, j, &j->events[n], &damage);
            }
        }
    }
    if (damage > 0) {
        note(r, K6,
             "%zu writes came after a newer claim: a store that looks at the fence refuses "
             "them, one that does not is damaged",
             damage);
    } else if (fault_in(r, TRAIT_SUSPENDED, 0, NEVER) != NULL) {
        note(r, K6, "no store was damaged though hosts were suspended: too tame to tell");
    }
}

/* ---- K7 ---- */

struct moment {
    const char *process;
    int64_t t;
    int change;
};

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left;
    const struct moment *b = right;
    if (a->process != b->process) {
        return a->process > b->process ? 1 : -1;
    }
    return a->t != b->t ? (a->t > b->t) - (a->t < b->t) : a->change - b->change;
}

void check_limits(struct run *r)
{
    int64_t slots = json_integer_value(json_object_get(r->about, "slots"));
    struct moment *list = calloc(r->event_count + 1, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; slots > 0 && list != NULL && i < r->event_count; i++) {
        const struct event *e = &r->events[i];
        if (e->op == OP_RUN) {
            list[count++] = (struct moment){e->process, e->t, e->phase == PH_INV ? 1 : -1};
        }
    }
    if (count > 1) {
        qsort(list, count, sizeof *list, compare_moments);
    }
    int64_t running = 0;
    for (size_t i = 0; i < count; i++) {
        running = i > 0 && list[i].process != list[i - 1].process ? 0 : running;
        running += list[i].change;
        if (running > slots) {
            violation(
                r, "K7", "S18", 0, "%s ran %" PRId64 " jobs at %.3f s and has %" PRId64 " slots",
                list[i].process, running, (double)(list[i].t - r->first) / (double)NS_PER_S, slots);
        }
    }
    free(list);
}
