/* SPDX-License-Identifier: Apache-2.0
 *
 * K3: every job that went in must come out, and every job that came out must have gone in: S4, S9,
 * S10, S11, S15, S16, S19, by the clients' books and the handlers' own ledger. */
#include "check.h"

#include <inttypes.h>

#define K3 "K3"

static bool is_state(const struct final *f, const char *state)
{
    return strcmp(f->state, state) == 0;
}

static const struct event *find(const struct job *j, enum op op, int64_t fence)
{
    for (size_t i = 0; i < j->event_count; i++) {
        if (j->events[i].op == op && (fence == 0 || j->events[i].fence == fence)) {
            return &j->events[i];
        }
    }
    return NULL;
}

/* Returns the later job if an id was lost with its primary and given out again. */
static const struct event *find_submitted(const struct job *j)
{
    for (size_t i = j->event_count; i > 0; i--) {
        if (j->events[i - 1].op == OP_SUBMIT) {
            return &j->events[i - 1];
        }
    }
    return NULL;
}

static bool was_deleted(const struct job *j)
{
    for (size_t i = 0; i < j->event_count; i++) {
        if (j->events[i].op == OP_DELETE && j->events[i].phase != PH_FAIL) {
            return true;
        }
    }
    return false;
}

/* ---- S15, and the state that the producer expects ---- */

static void check_submitted(struct run *r, const struct job *j)
{
    const struct event *in = find_submitted(j);
    if (in == NULL || in->phase != PH_OK || r->final_count == 0) {
        return;
    }
    if (j->final_count == 0) {
        if (!was_deleted(j) && !commit_may_be_lost(r, in->t, in->t)) {
            violation(r, K3, "S15", j->id, "its insert was acknowledged, and it is not there");
        }
        return;
    }
    if (commit_may_be_lost(r, in->t, in->t)) {
        return; /* its id may now belong to another job */
    }
    const char *expected = in->name;
    const struct final *f = &j->finals[0];
    bool is_open = is_state(f, "available") || is_state(f, "running");
    if (expected[0] != '\0' && strcmp(expected, "any") != 0 && !is_open && !j->is_edited &&
        !is_state(f, "cancelled") && !is_state(f, expected)) {
        violation(r, K3, "G2", j->id, "must end %s, and is %s", expected, f->state);
    }
}

/* ---- the ledger ---- */

static bool keeps_ledger(const struct run *r, const char *kind)
{
    const json_t *kinds = json_object_get(r->about, "ledger_kinds");
    size_t i = 0;
    const json_t *k = NULL;
    if (!json_is_array(kinds)) {
        return strncmp(kind, "c_", 2) == 0; /* tests/plugins/chaos.c */
    }
    json_array_foreach(kinds, i, k)
    {
        if (json_is_string(k) && strcmp(json_string_value(k), kind) == 0) {
            return true;
        }
    }
    return false;
}

static void check_completed(struct run *r, const struct job *j)
{
    for (size_t i = 0; i < j->final_count; i++) {
        const struct final *f = &j->finals[i];
        if (is_state(f, "completed") && keeps_ledger(r, f->kind) &&
            find(j, OP_EFFECT, f->fence) == NULL) {
            violation(r, K3, "S16", j->id,
                      "completed under fence %" PRId64 ", and no run under it had an effect",
                      f->fence);
        }
    }
}

/* Compares each pair of runs: a job has few. */
static void check_pairs(struct run *r, const struct job *j)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *a = &j->events[i];
        bool is_single = a->op == OP_STARTED || a->op == OP_EFFECT;
        for (size_t k = 0; is_single && k < i; k++) {
            const struct event *b = &j->events[k];
            if (b->op == a->op && b->fence == a->fence) {
                violation(r, K3, a->op == OP_STARTED ? "S19" : "S4", j->id,
                          "two %s under fence %" PRId64, a->op == OP_STARTED ? "starts" : "effects",
                          a->fence);
                break;
            }
        }
    }
}

static bool is_at_most_once(const struct job *j)
{
    for (size_t i = 0; i < j->event_count; i++) {
        if (j->events[i].op == OP_RUN && j->events[i].flag) {
            return true;
        }
    }
    return false;
}

static void check_starts(struct run *r, const struct job *j)
{
    size_t starts = 0;
    int64_t cancelled = NEVER;
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->op == OP_CANCEL && e->phase == PH_OK && !commit_may_be_lost(r, e->t, e->t)) {
            cancelled = e->t < cancelled ? e->t : cancelled;
        } else if (e->op == OP_RETRY && e->phase != PH_FAIL) {
            cancelled = NEVER;
            starts = 0;
        } else if (e->op == OP_ENDED && e->is_own_wish) {
            starts = 0;
        } else if (e->op == OP_STARTED) {
            /* Does not count a start whose claim may have been lost. */
            starts += commit_may_be_lost(r, e->t, e->t) ? 0 : 1;
            if (e->t > cancelled) {
                violation(r, K3, "S11", j->id, "started after its cancel was acknowledged");
            }
        }
    }
    if (starts > 1 && is_at_most_once(j)) {
        violation(r, K3, "S10", j->id, "at most once, and its handler started %zu times", starts);
    }
}

/* Returns the args at the claim with that fence; the rows record each change of them. */
static const char *sha_at_claim(const struct job *j, int64_t fence)
{
    const char *sha = "";
    for (size_t i = 0; i < j->row_count; i++) {
        sha = j->rows[i].sha[0] != '\0' ? j->rows[i].sha : sha;
        if (j->rows[i].fence == fence && fence != 0) {
            return sha;
        }
    }
    return "";
}

static void check_args(struct run *r, const struct job *j)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->op != OP_STARTED || e->value[0] == '\0') {
            continue;
        }
        const char *sha = sha_at_claim(j, e->fence);
        if (sha[0] != '\0' && strcmp(sha, e->value) != 0) {
            violation(r, K3, "S9", j->id,
                      "the handler under fence %" PRId64 " had args %s, the row had %s", e->fence,
                      e->value, sha);
        }
    }
}

void check_sets(struct run *r)
{
    size_t unknown = 0;
    for (size_t i = 1; i < r->job_count; i++) {
        const struct job *j = &r->jobs[i];
        check_submitted(r, j);
        check_completed(r, j);
        check_pairs(r, j);
        check_starts(r, j);
        check_args(r, j);
        unknown += j->final_count > 0 && find(j, OP_SUBMIT, 0) == NULL;
    }
    if (unknown > 0) {
        note(r, K3, "%zu jobs are there whose insert was not answered", unknown);
    }
}
