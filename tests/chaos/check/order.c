/* SPDX-License-Identifier: Apache-2.0
 *
 * K1: the order of the claims and ends of one row, as seen by the processes that requested them.
 * The fence gives an order that can be read back, so no search is needed: after sorting by it, each
 * claim must have been possible after the one before it. Checks S1, S3, S7, S10, and completions
 * that were refused without a reason. */
#include "check.h"

#include <inttypes.h>

#define K1 "K1"
/* Commits that an asynchronous standby lacked when it took over were acknowledged, and are lost. */

/* One request, from its `inv` to its answer, if there is one. */
struct request {
    enum op op;
    enum phase result; /* PH_INFO until it is known */
    int64_t fence;
    int64_t from;
    int64_t to; /* NEVER: no answer */
    int attempt;
    int max;
    bool is_once;
    bool is_own_wish;
    bool is_again;
    const char *process;
};

struct requests {
    struct request *list;
    size_t count;
    size_t room;
};

static bool is_end(enum op op)
{
    return op == OP_COMPLETE || op == OP_FAIL || op == OP_HAND_BACK;
}

static bool is_asked(enum op op)
{
    return is_end(op) || op == OP_CLAIM || op == OP_REAP || op == OP_RUN;
}

static struct request *find_open(struct requests *q, const struct event *e)
{
    for (size_t i = q->count; i > 0; i--) {
        struct request *r = &q->list[i - 1];
        bool is_same_op = r->op == e->op || (is_end(r->op) && is_end(e->op));
        bool is_same_fence = r->fence == e->fence || r->fence == 0 || e->fence == 0;
        if (r->to == NEVER && r->process == e->process && is_same_op && is_same_fence) {
            return r;
        }
    }
    return NULL;
}

static void take(struct requests *q, const struct event *e)
{
    struct request *open = e->phase == PH_INV ? NULL : find_open(q, e);
    if (open == NULL) {
        if (q->count == q->room) {
            q->room = q->room == 0 ? 64 : 2 * q->room;
            q->list = realloc(q->list, q->room * sizeof q->list[0]);
            if (q->list == NULL) {
                abort();
            }
        }
        open = &q->list[q->count++];
        *open = (struct request){.from = e->t, .to = NEVER, .process = e->process};
    }
    open->op = e->op; /* a completion may turn into a failure, if its result was refused */
    open->fence = e->fence != 0 ? e->fence : open->fence;
    open->attempt = e->attempt != 0 ? e->attempt : open->attempt;
    open->max = e->max != 0 ? e->max : open->max;
    open->is_once = open->is_once || (e->op == OP_RUN && e->flag);
    open->is_own_wish = open->is_own_wish || (e->op == OP_RUN && e->is_own_wish);
    open->is_again = open->is_again || e->is_again;
    /* If the answer to a hand-back was lost and the job is claimed again, nothing distinguishes a
     * hand-back that was done from one that was not: all that the worker can report is that it is
     * stale. */
    bool is_unknown = e->phase == PH_INV || (e->op == OP_HAND_BACK && e->phase == PH_STALE);
    open->result = is_unknown ? PH_INFO : e->phase;
    open->to = e->phase == PH_INV ? NEVER : e->t;
}

static int compare(const void *left, const void *right)
{
    const struct request *a = left;
    const struct request *b = right;
    if (a->fence != b->fence) {
        return (a->fence > b->fence) - (a->fence < b->fence);
    }
    return (a->from > b->from) - (a->from < b->from);
}

static bool is_claim(const struct request *r)
{
    return r->op == OP_CLAIM && r->result == PH_OK;
}

/* The successor of a worker may hand back all of its jobs without naming them. */
static bool was_reaped_whole(const struct run *r, const struct request *claim, int64_t before)
{
    const struct process *p = run_process(r, claim->process);
    const struct job *none = &r->jobs[0];
    for (size_t i = 0; p != NULL && i < none->event_count; i++) {
        const struct event *e = &none->events[i];
        if (e->op == OP_REAP && e->phase == PH_INV && e->t <= before &&
            process_is_worker(p, e->name)) {
            return true;
        }
    }
    return false;
}

/* True if the run under this fence may have ended by then: any request that was not certainly
 * refused may have taken effect. */
static bool may_have_ended(const struct run *r, const struct requests *q,
                           const struct request *claim, int64_t before)
{
    for (size_t i = 0; i < q->count; i++) {
        const struct request *e = &q->list[i];
        bool is_possible = e->result == PH_OK || e->result == PH_INFO;
        if ((is_end(e->op) || e->op == OP_REAP) && e->fence == claim->fence && is_possible &&
            e->from <= before) {
            return true;
        }
    }
    return was_reaped_whole(r, claim, before);
}

static void check_claims(struct run *r, const struct job *j, const struct requests *q)
{
    const struct request *before = NULL;
    for (size_t i = 0; i < q->count; i++) {
        const struct request *c = &q->list[i];
        if (!is_claim(c)) {
            continue;
        }
        if (before != NULL && before->fence == c->fence) {
            violation(r, K1, "S1", j->id, "fence %" PRId64 " was given to two claims", c->fence);
        } else if (before != NULL && before->from > c->to) {
            violation(r, K1, "S1", j->id,
                      "fence %" PRId64 " was given after the larger fence %" PRId64, before->fence,
                      c->fence);
        } else if (before != NULL && !j->is_edited &&
                   !commit_may_be_lost(r, before->from, before->to) &&
                   !may_have_ended(r, q, before, c->to)) {
            violation(r, K1, "S3", j->id,
                      "claimed under fence %" PRId64 " while it still ran under fence %" PRId64,
                      c->fence, before->fence);
        }
        if (c->max > 0 && c->attempt > c->max) {
            violation(r, K1, "S7", j->id, "attempt %d of at most %d", c->attempt, c->max);
        }
        before = c;
    }
}

static bool was_retried(const struct job *j, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->op == OP_RETRY && e->phase != PH_FAIL && e->t >= from && e->t <= to) {
            return true;
        }
    }
    return false;
}

static const struct request *claim_of(const struct requests *q, int64_t fence)
{
    for (size_t i = 0; i < q->count; i++) {
        if (is_claim(&q->list[i]) && q->list[i].fence == fence) {
            return &q->list[i];
        }
    }
    return NULL;
}

/* An accepted completion ends the job: no claim may have a newer fence, whatever the order in
 * time. */
static void check_completion(struct run *r, const struct job *j, const struct requests *q,
                             const struct request *done)
{
    if (claim_of(q, done->fence) == NULL) {
        violation(r, K1, "S3", j->id, "completed under fence %" PRId64 ", which nobody was given",
                  done->fence);
    }
    for (size_t i = 0; i < q->count; i++) {
        const struct request *c = &q->list[i];
        bool is_newer =
            is_claim(c) && c->fence > done->fence && !commit_may_be_lost(r, done->from, done->to) &&
            !commit_may_be_lost(r, c->from, c->to) && !was_retried(j, done->from, c->to);
        if (is_newer) {
            violation(r, K1, c->to < done->from ? "S3" : "S2", j->id,
                      "the completion under fence %" PRId64 " was accepted, and there is a claim "
                      "under fence %" PRId64,
                      done->fence, c->fence);
            return;
        }
    }
}

/* Another process must have moved the job; otherwise a rightful completion was refused. */
static void check_refusal(struct run *r, const struct job *j, const struct requests *q,
                          const struct request *refused)
{
    const struct request *claim = claim_of(q, refused->fence);
    for (size_t i = 0; i < q->count; i++) {
        const struct request *o = &q->list[i];
        bool is_cause = o != refused && o->result != PH_STALE && o->result != PH_FAIL &&
                        ((o->op == OP_CLAIM && o->fence > refused->fence) ||
                         ((is_end(o->op) || o->op == OP_REAP) && o->fence == refused->fence));
        if (is_cause) {
            return;
        }
    }
    bool is_excused = claim == NULL || j->is_edited ||
                      commit_may_be_lost(r, claim->from, claim->to) ||
                      was_reaped_whole(r, claim, refused->to);
    if (!is_excused) {
        violation(r, K1, "S3", j->id,
                  "the end of the newest run, fence %" PRId64
                  ", was refused, and nobody had moved it",
                  refused->fence);
    }
}

/* A run under one fence ends once: by its worker, or by a rescue. */
static void check_single_end(struct run *r, const struct job *j, const struct requests *q)
{
    const struct request *before = NULL;
    for (size_t i = 0; i < q->count; i++) {
        const struct request *e = &q->list[i];
        bool is_move = (is_end(e->op) || e->op == OP_REAP) && e->result == PH_OK && !e->is_again;
        if (!is_move) {
            continue;
        }
        if (before != NULL && before->fence == e->fence &&
            !commit_may_be_lost(r, before->from, before->to)) {
            violation(r, K1, "S3", j->id,
                      "two ends of the run under fence %" PRId64 " were accepted, of %s and of %s",
                      e->fence, before->process, e->process);
        }
        before = e;
    }
}

/* S10 and S19 as the workers saw it; the ledger's side is in K3. */
static void check_runs(struct run *r, const struct job *j, const struct requests *q)
{
    const struct request *before = NULL;
    for (size_t i = 0; i < q->count; i++) {
        const struct request *s = &q->list[i];
        if (s->op != OP_RUN) {
            continue;
        }
        if (before != NULL && before->fence == s->fence) {
            violation(r, K1, "S19", j->id, "started twice under fence %" PRId64, s->fence);
        } else if (before != NULL && s->is_once && !before->is_own_wish &&
                   !was_retried(j, before->from, s->from) &&
                   !commit_may_be_lost(r, before->from, before->from)) {
            violation(r, K1, "S10", j->id,
                      "at most once, and started under fence %" PRId64 " after fence %" PRId64,
                      s->fence, before->fence);
        }
        before = s;
    }
}

static void check_job(struct run *r, const struct job *j, struct requests *q)
{
    q->count = 0;
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->source == FROM_HISTORY && is_asked(e->op)) {
            take(q, e);
        }
    }
    if (q->count == 0) {
        return;
    }
    qsort(q->list, q->count, sizeof q->list[0], compare);
    check_claims(r, j, q);
    check_runs(r, j, q);
    check_single_end(r, j, q);
    for (size_t i = 0; i < q->count; i++) {
        const struct request *e = &q->list[i];
        if (e->op == OP_COMPLETE && e->result == PH_OK) {
            check_completion(r, j, q, e);
        } else if (is_end(e->op) && e->result == PH_STALE) {
            check_refusal(r, j, q, e);
        }
    }
}

/* ---- fences over all jobs ---- */

static int compare_fences(const void *left, const void *right)
{
    const struct event *a = *(const struct event *const *)left;
    const struct event *b = *(const struct event *const *)right;
    return (a->fence > b->fence) - (a->fence < b->fence);
}

static void check_fences(struct run *r)
{
    const struct event **claims = calloc(r->event_count + 1, sizeof(*claims));
    size_t count = 0;
    for (size_t i = 0; claims != NULL && i < r->event_count; i++) {
        if (r->events[i].op == OP_CLAIM && r->events[i].phase == PH_OK) {
            claims[count++] = &r->events[i];
        }
    }
    if (count > 1) {
        qsort(claims, count, sizeof(*claims), compare_fences);
    }
    for (size_t i = 1; i < count; i++) {
        if (claims[i]->fence == claims[i - 1]->fence && claims[i]->job != claims[i - 1]->job) {
            violation(r, K1, "S1", claims[i]->job,
                      "fence %" PRId64 " was given to job %" PRId64 " as well", claims[i]->fence,
                      claims[i - 1]->job);
        }
    }
    free(claims);
}

void check_order(struct run *r)
{
    struct requests q = {.list = NULL};
    for (size_t i = 1; i < r->job_count; i++) {
        check_job(r, &r->jobs[i], &q);
    }
    free(q.list);
    check_fences(r);
}
