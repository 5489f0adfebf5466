/* SPDX-License-Identifier: Apache-2.0
 *
 * K3 for jobs that depend on each other, by the rows' own history: of the jobs with one unique key,
 * one is open at a time (S21); the follow-up of a batch exists once, and was created when all of
 * the batch's jobs had ended (S22); a job after others is claimed only when these have ended
 * (S23). */
#include "check.h"

#include <inttypes.h>
#include <uthash.h>

#define K3 "K3"

static bool is_state(const char *state, const char *name)
{
    return state != NULL && strcmp(state, name) == 0;
}

static bool is_terminal(const char *state)
{
    return is_state(state, "completed") || is_state(state, "discarded") ||
           is_state(state, "cancelled");
}

static bool was_lost(const struct run *r, const json_t *acked)
{
    int64_t t = json_integer_value(json_object_get(acked, "t"));
    return commit_may_be_lost(r, t, t);
}

/* ---- unique keys ---- */

struct key {
    const char *name;
    int64_t holder; /* 0 = none */
    UT_hash_handle hh;
};

static struct key *key_of(struct key **all, const char *name)
{
    struct key *k = NULL;
    HASH_FIND_PTR(*all, &name, k);
    if (k == NULL && (k = calloc(1, sizeof *k)) != NULL) {
        k->name = name;
        HASH_ADD_PTR(*all, name, k);
    }
    if (k == NULL) {
        abort();
    }
    return k;
}

static void take_unique(struct run *r, struct key **all, const struct row *row)
{
    struct key *k = key_of(all, row->unique_key);
    bool is_made = row->old_state == NULL && is_state(row->new_state, "available");
    bool is_gone = row->new_state == NULL && !is_terminal(row->old_state);
    if (is_made && k->holder != 0 && k->holder != row->job) {
        violation(r, K3, "S21", row->job, "made with unique key %s, which open job %" PRId64 " has",
                  k->name, k->holder);
    }
    k->holder = is_made ? row->job : is_gone && k->holder == row->job ? 0 : k->holder;
}

static void check_unique(struct run *r)
{
    struct key *all = NULL;
    struct key *k = NULL;
    struct key *next = NULL;
    const struct row **rows = run_rows_in_order(r);
    for (size_t i = 0; i < r->row_count; i++) {
        if (rows[i]->unique_key[0] != '\0') {
            take_unique(r, &all, rows[i]);
        }
    }
    HASH_ITER(hh, all, k, next)
    {
        HASH_DEL(all, k);
        free(k);
    }
    free(rows);
}

/* ---- batches ---- */

/* Returns the state just before the change with this number; NULL = no row. */
static const char *state_at(const struct run *r, int64_t job, int64_t seq)
{
    const struct job *j = run_job(r, job);
    const char *state = NULL;
    for (size_t i = 0; j != NULL && i < j->row_count && j->rows[i].seq < seq; i++) {
        state = j->rows[i].new_state;
    }
    return state;
}

static void check_member(struct run *r, int64_t batch, int64_t job, const struct row *follow)
{
    const struct job *j = run_job(r, job);
    if (j != NULL && j->row_count > 0 && !is_terminal(state_at(r, job, follow->seq))) {
        violation(r, K3, "S22", follow->job,
                  "the follow-up of batch %" PRId64 " was made before its job %" PRId64
                  " had ended",
                  batch, job);
    }
}

static void take_batch(struct run *r, void *ctx, const json_t *o)
{
    size_t *count = ctx;
    size_t follow_ups = 0;
    size_t i = 0;
    const json_t *member = NULL;
    const json_t *members = json_object_get(o, "jobs");
    int64_t batch = json_integer_value(json_object_get(o, "batch"));
    int64_t n = json_integer_value(json_object_get(o, "follow_n"));
    const char *op = json_string_value(json_object_get(o, "op"));
    if (op == NULL || strcmp(op, "batch") != 0) {
        return;
    }
    ++*count;
    for (size_t k = 0; k < r->row_count; k++) {
        const struct row *row = &r->rows[k];
        bool is_made = row->n == n && row->old_state == NULL && row->generation == 0 &&
                       is_state(row->new_state, "available");
        if (is_made && ++follow_ups > 1) {
            violation(r, K3, "S22", row->job, "batch %" PRId64 " has %zu follow-ups", batch,
                      follow_ups);
        }
        json_array_foreach(members, i, member)
        {
            if (is_made) {
                check_member(r, batch, json_integer_value(member), row);
            }
        }
    }
    if (follow_ups == 0 && r->row_count > 0 && !was_lost(r, o)) {
        violation(r, K3, "S22", json_integer_value(json_array_get(members, 0)),
                  "its batch %" PRId64 " has no follow-up", batch);
    }
}

/* ---- jobs after jobs ---- */

static const struct row *first_with(const struct job *j, bool (*is_it)(const char *state))
{
    for (size_t i = 0; j != NULL && i < j->row_count; i++) {
        if (is_it(j->rows[i].new_state)) {
            return &j->rows[i];
        }
    }
    return NULL;
}

static bool is_running(const char *state)
{
    return is_state(state, "running");
}

static void take_after(struct run *r, void *ctx, const json_t *o)
{
    size_t *count = ctx;
    size_t i = 0;
    const json_t *before = NULL;
    const char *op = json_string_value(json_object_get(o, "op"));
    const struct job *j = run_job(r, json_integer_value(json_object_get(o, "job")));
    const struct row *claim = first_with(j, is_running);
    if (op == NULL || strcmp(op, "after") != 0) {
        return;
    }
    ++*count;
    json_array_foreach(json_object_get(o, "after"), i, before)
    {
        const struct job *other = run_job(r, json_integer_value(before));
        const struct row *end = first_with(other, is_terminal);
        bool is_known = claim != NULL && other != NULL && other->row_count > 0 && !was_lost(r, o);
        if (is_known && (end == NULL || end->seq > claim->seq)) {
            violation(r, K3, "S23", j->id, "claimed before job %" PRId64 " had ended", other->id);
        }
    }
}

void check_ties(struct run *r)
{
    size_t batches = 0;
    size_t afters = 0;
    check_unique(r);
    if (!run_lines(r, "acked.jsonl", take_batch, &batches) ||
        !run_lines(r, "acked.jsonl", take_after, &afters)) {
        violation(r, K3, "S22", 0, "acked.jsonl: %s", strerror(errno));
    }
    if (batches + afters > 0) {
        note(r, K3, "%zu batches with a follow-up, %zu jobs after others", batches, afters);
    }
}
