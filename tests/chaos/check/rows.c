/* SPDX-License-Identifier: Apache-2.0
 *
 * K1, by the rows' own history: the triggers record what was committed, whatever the daemons
 * believe. Checks S1, S2, S5, S6, S7, S8, and that replaying the history gives the final table. */
#include "check.h"

#include <inttypes.h>

#define K1 "K1"
#define TOLERANCE_US 1000

/* docs/guarantees.md, States; NULL = no row. A row that leaves `job` enters `job_history` in the
 * same statement, so the two changes are one edge here. */
static const struct {
    const char *from;
    const char *to;
} edges[] = {{NULL, "available"},        {"available", "running"},   {"running", "available"},
             {"running", "completed"},   {"running", "discarded"},   {"running", "cancelled"},
             {"available", "cancelled"}, {"available", "discarded"}, {"completed", "available"},
             {"discarded", "available"}, {"cancelled", "available"}};

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_legal(const char *from, const char *to)
{
    if (is_same(from, to)) {
        return true; /* another column changed */
    }
    for (size_t i = 0; i < ARRAY_COUNT(edges); i++) {
        if (is_same(edges[i].from, from) && is_same(edges[i].to, to)) {
            return true;
        }
    }
    return false;
}

static bool is_terminal(const char *state)
{
    return state != NULL && (strcmp(state, "completed") == 0 || strcmp(state, "discarded") == 0 ||
                             strcmp(state, "cancelled") == 0);
}

static const char *text(const char *state)
{
    return state == NULL ? "none" : state;
}

struct fold {
    const char *state;   /* NULL = no row */
    const char *leaving; /* state of the row deleted from `job`, on its way to the history */
    int64_t fence;
    int64_t generation;
    int64_t completions; /* in this generation */
};

static bool was_deleted(const struct job *j)
{
    for (size_t i = 0; i < j->event_count; i++) {
        if (j->events[i].op == OP_DELETE && j->events[i].phase != PH_FAIL) {
            return true;
        }
    }
    return false;
}

static void check_claim(struct run *r, const struct job *j, const struct fold *f,
                        const struct row *row)
{
    if (row->fence <= f->fence) {
        violation(r, K1, "S1", j->id, "claimed under fence %" PRId64 " after fence %" PRId64,
                  row->fence, f->fence);
    }
    /* If PostgreSQL's clock was stepped, created_at may be in the future. */
    bool is_steady = fault_in(r, TRAIT_PG_CLOCK, 0, NEVER) == NULL;
    if (is_steady && row->ready_at_us > 0 && row->at_us + TOLERANCE_US < row->ready_at_us) {
        violation(r, K1, "S8", j->id, "claimed %" PRId64 " us before it was due",
                  row->ready_at_us - row->at_us);
    }
}

static void take_edge(struct run *r, const struct job *j, struct fold *f, const struct row *row,
                      const char *from, const char *to)
{
    bool is_new_generation = row->generation > f->generation;
    if (!is_legal(from, to)) {
        violation(r, K1, is_terminal(from) ? "S6" : "S5", j->id, "from %s to %s", text(from),
                  text(to));
    } else if (is_terminal(from) && !is_same(from, to) && !is_new_generation) {
        violation(r, K1, "S6", j->id, "from %s to %s in the same generation", from, text(to));
    }
    if (is_new_generation) {
        f->completions = 0;
    }
    if (is_same(to, "completed") && !is_same(from, to) && ++f->completions > 1) {
        violation(r, K1, "S2", j->id, "completed for the second time in generation %" PRId64,
                  row->generation);
    }
    if (is_same(to, "running") && !is_same(from, to)) {
        check_claim(r, j, f, row);
    } else if (from != NULL && row->fence != f->fence && !is_same(from, to)) {
        violation(r, K1, "S3", j->id,
                  "went from %s to %s with fence %" PRId64 ", its newest was %" PRId64, from,
                  text(to), row->fence, f->fence);
    }
    f->fence = row->fence > f->fence ? row->fence : f->fence;
    f->generation = row->generation > f->generation ? row->generation : f->generation;
    f->state = to;
}

static void take(struct run *r, const struct job *j, struct fold *f, const struct row *row)
{
    if (row->old_state != NULL && row->new_state == NULL) {
        f->leaving = row->old_state;
        return;
    }
    const char *from = f->leaving != NULL ? f->leaving : f->state;
    if (row->old_state != NULL && !is_same(row->old_state, from)) {
        violation(r, K1, "S5", j->id, "was %s, and a change found it %s", text(from),
                  row->old_state);
        from = row->old_state;
    } else if (row->old_state == NULL && f->leaving == NULL && f->state != NULL &&
               !(is_terminal(f->state) && row->generation > f->generation)) { /* not a retry */
        violation(r, K1, is_terminal(row->new_state) ? "S2" : "S5", j->id,
                  "a second row, %s, beside one that is %s", row->new_state, f->state);
    }
    f->leaving = NULL;
    take_edge(r, j, f, row, from, row->new_state);
}

static void check_end(struct run *r, const struct job *j, const struct fold *f)
{
    if (r->final_count == 0) {
        return; /* final.jsonl does not exist */
    }
    const char *expected = f->leaving != NULL ? NULL : f->state;
    if (j->final_count > 1) {
        violation(r, K1, "S2", j->id, "%zu rows at the end", j->final_count);
    } else if (j->final_count == 0 && expected != NULL) {
        violation(r, K1, "S5", j->id, "its last change left it %s, and it is not there", expected);
    } else if (j->final_count == 1 && !is_same(expected, j->finals[0].state)) {
        violation(r, K1, "S5", j->id, "its changes make it %s, and it is %s", text(expected),
                  j->finals[0].state);
    } else if (j->final_count == 1 && j->finals[0].fence != f->fence) {
        violation(r, K1, "S5", j->id, "its changes give it fence %" PRId64 ", and it has %" PRId64,
                  f->fence, j->finals[0].fence);
    }
    if (f->leaving != NULL && !was_deleted(j)) {
        violation(r, K1, "S5", j->id, "deleted while %s, and nobody had asked for that",
                  f->leaving);
    }
}

void check_rows(struct run *r)
{
    bool has_failover = fault_in(r, TRAIT_FAILOVER, 0, NEVER) != NULL;
    for (size_t i = 1; i < r->job_count; i++) {
        const struct job *j = &r->jobs[i];
        struct fold f = {.state = NULL};
        for (size_t n = 0; n < j->row_count; n++) {
            take(r, j, &f, &j->rows[n]);
        }
        if (j->row_count > 0) {
            check_end(r, j, &f);
        }
        for (size_t n = 0; n < j->final_count; n++) {
            const struct final *end = &j->finals[n];
            if (end->max_attempts > 0 && end->attempt > end->max_attempts) {
                violation(r, K1, "S7", j->id, "attempt %" PRId64 " of at most %" PRId64,
                          end->attempt, end->max_attempts);
            }
        }
    }
    if (has_failover) {
        note(r, K1, "rows are judged as the last primary had them");
    }
}
