/* SPDX-License-Identifier: Apache-2.0
 *
 * K5: the jobs of a dead worker are moved within X, and after the last fault all jobs end (L1,
 * L2). */
#include "check.h"

#include <inttypes.h>

#define K5 "K5"
#define BUSY_HOST_NS NS_PER_S /* not scaled: many processes share one host */
#define MAJORITY 3            /* of the kit's five Redis */

/* ---- L1 ---- */

static bool is_terminal(const char *state)
{
    return strcmp(state, "completed") == 0 || strcmp(state, "discarded") == 0 ||
           strcmp(state, "cancelled") == 0;
}

static void check_ends(struct run *r)
{
    int64_t limit = fault_last_end(r) + r->c.terminal;
    int64_t last = 0;
    const struct job *latest = NULL;
    for (size_t i = 1; i < r->job_count; i++) {
        const struct job *j = &r->jobs[i];
        if (j->final_count > 0 && !is_terminal(j->finals[0].state)) {
            violation(r, K5, "L1", j->id, "still %s at the end", j->finals[0].state);
        }
        const struct row *end = j->row_count == 0 ? NULL : &j->rows[j->row_count - 1];
        if (end != NULL && end->t > last) {
            last = end->t;
            latest = j;
        }
    }
    if (latest != NULL && r->c.terminal > 0 && r->fault_count > 0 && last > limit) {
        violation(r, K5, "L1", latest->id,
                  "the last job ended %.1f s after the last fault, %.1f s are allowed",
                  (double)(last - fault_last_end(r)) / (double)NS_PER_S,
                  (double)r->c.terminal / (double)NS_PER_S);
    }
}

/* ---- L2 ---- */

/* Faults of other workers do not hinder a rescue. */
static bool is_hindering(const struct fault *f)
{
    bool is_minority = fault_has(f, TRAIT_REDIS) && f->nodes > 0 && f->nodes < MAJORITY;
    return !fault_has(f, TRAIT_REPORT | TRAIT_SPARES_RESCUES) && f->target[0] != 'w' &&
           !(is_minority && !fault_has(f, TRAIT_BY_MINORITY));
}

/* Returns the deadline of a rescue: X after the end of the last fault that hindered it. */
static int64_t deadline(const struct run *r, int64_t killed, bool *ret_is_combined)
{
    int64_t until = killed + r->c.recovery;
    *ret_is_combined = false;
    for (bool is_longer = true; is_longer;) {
        is_longer = false;
        for (size_t i = 0; i < r->fault_count; i++) {
            const struct fault *f = &r->faults[i];
            int64_t end = f->to == NEVER ? r->last : f->back;
            bool is_near = is_hindering(f) && f->from <= until && end >= killed - r->c.recovery;
            *ret_is_combined = *ret_is_combined || is_near;
            if (is_near && end + r->c.recovery > until) {
                until = end + r->c.recovery;
                is_longer = true;
            }
        }
    }
    return until;
}

struct held {
    int64_t fence;  /* 0 = none */
    bool is_ending; /* its end was requested, and the answer is unknown */
};

/* Returns what this process held of the job at that time, by the answers that it received. */
static struct held held_at(const struct job *j, const struct process *p, int64_t t)
{
    struct held h = {.fence = 0};
    for (size_t i = 0; i < j->event_count && j->events[i].t <= t; i++) {
        const struct event *e = &j->events[i];
        bool is_end = e->op == OP_COMPLETE || e->op == OP_FAIL || e->op == OP_HAND_BACK;
        if (e->process != p->name) {
            continue;
        }
        if (e->op == OP_CLAIM && e->phase == PH_OK) {
            h = (struct held){.fence = e->fence};
        } else if (is_end && e->phase == PH_INV) {
            h.is_ending = true;
        } else if (is_end) {
            h.fence = 0;
        }
    }
    return h;
}

/* Returns the earliest time at which the job was moved or claimed again; NEVER = it was not. Its
 * row also shows ends whose answer was not recorded. */
static int64_t moved_after(const struct run *r, const struct job *j, const struct process *p,
                           int64_t t, int64_t fence)
{
    int64_t moved = NEVER;
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        bool is_move = (e->op == OP_REAP && e->phase == PH_OK) ||
                       (e->op == OP_CLAIM && e->phase == PH_OK && e->fence > fence);
        moved = is_move && e->t >= t && e->t < moved ? e->t : moved;
    }
    for (size_t i = 0; i < j->row_count; i++) {
        const struct row *row = &j->rows[i];
        bool is_left = row->old_fence == fence && row->old_state == intern("running", 7) &&
                       row->new_state != row->old_state;
        moved = is_left && row->t < moved ? row->t : moved;
    }
    const struct job *none = &r->jobs[0];
    for (size_t i = 0; i < none->event_count; i++) {
        const struct event *e = &none->events[i];
        bool is_whole = e->op == OP_REAP && e->phase == PH_OK && process_is_worker(p, e->name);
        moved = is_whole && e->t >= t && e->t < moved ? e->t : moved;
    }
    return moved;
}

struct rescues {
    size_t count;
    int64_t longest;
    size_t combined_count;
    int64_t combined_longest;
};

static void check_held(struct run *r, const struct job *j, const struct process *p, int64_t killed,
                       struct rescues *sum)
{
    struct held h = held_at(j, p, killed);
    if (h.fence == 0) {
        return;
    }
    bool is_combined = false;
    int64_t until = deadline(r, killed, &is_combined);
    int64_t moved = moved_after(r, j, p, killed, h.fence);
    bool is_finished =
        j->final_count > 0 && j->finals[0].fence == h.fence && is_terminal(j->finals[0].state);
    if (moved == NEVER && (is_finished || h.is_ending || until >= r->last)) {
        return; /* its end had been committed, or the run ended before the deadline */
    }
    if (moved < killed) {
        return; /* it had ended just before */
    }
    if (moved > until + BUSY_HOST_NS) {
        violation(r, K5, "L2", j->id,
                  "%s was killed at %.3f s with it, fence %" PRId64 "; it moved %.3f s later, "
                  "%.3f s are allowed",
                  p->name, (double)(killed - r->first) / (double)NS_PER_S, h.fence,
                  moved == NEVER ? -1.0 : (double)(moved - killed) / (double)NS_PER_S,
                  (double)(until - killed) / (double)NS_PER_S);
    }
    int64_t took = moved == NEVER ? 0 : moved - killed;
    *(is_combined ? &sum->combined_count : &sum->count) += 1;
    int64_t *longest = is_combined ? &sum->combined_longest : &sum->longest;
    *longest = took > *longest ? took : *longest;
}

static void check_kills(struct run *r)
{
    struct rescues sum = {.count = 0};
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        for (size_t n = 0; strcmp(f->what, "kill9") == 0 && n < r->process_count; n++) {
            const struct process *p = &r->processes[n];
            if (p->worker_count == 0 || !fault_hits(f, p)) {
                continue;
            }
            for (size_t k = 1; k < r->job_count; k++) {
                check_held(r, &r->jobs[k], p, f->from, &sum);
            }
        }
    }
    if (sum.count + sum.combined_count > 0) {
        note(r, K5,
             "%zu jobs of killed workers moved within %.2f s; %zu amid other faults, within %.2f s",
             sum.count, (double)sum.longest / (double)NS_PER_S, sum.combined_count,
             (double)sum.combined_longest / (double)NS_PER_S);
    }
}

void check_recovery(struct run *r)
{
    check_ends(r);
    check_kills(r);
}
