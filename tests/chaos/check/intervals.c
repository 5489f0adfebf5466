/* SPDX-License-Identifier: Apache-2.0
 *
 * K2: which process held which lock, from when to when. S12: the intervals of two holders of one
 * key do not overlap. S13: each deadline is recomputed from the time of its request, the ttl and
 * the votes, so that a wrong formula is found even if nothing overlapped. S14: a copy disappears
 * only when its owner deletes it or it expires. Cases in which a lock promises nothing (guarantees
 * G6) are counted, but are not violations. */
#include "check.h"

#include <inttypes.h>

#define K2 "K2"
#define EPSILON_NS NS_PER_MS /* one host, one clock: only the scheduler adds delay */
#define ROUNDING_NS (NS_PER_MS / 10)

struct interval {
    const char *token;
    const char *process;
    int64_t job;
    int64_t asked; /* when its newest deadline was requested */
    int64_t from;  /* 0 = not won */
    int64_t until;
    int64_t end;    /* when it was released, lost, or taken from a dead process; NEVER = not */
    uint32_t nodes; /* nodes that have a copy until then: a bit for each */
};

struct intervals {
    struct interval *list;
    size_t count;
    size_t room;
    size_t counted; /* overlaps that no lock can exclude */
};

static int64_t end_of(const struct interval *i)
{
    return i->end < i->until ? i->end : i->until;
}

static struct interval *find(struct intervals *v, const struct event *e)
{
    for (size_t i = v->count; i > 0; i--) {
        if (v->list[i - 1].token == e->value && v->list[i - 1].process == e->process) {
            return &v->list[i - 1];
        }
    }
    return NULL;
}

static struct interval *find_or_add(struct intervals *v, const struct event *e)
{
    struct interval *found = find(v, e);
    if (found != NULL) {
        return found;
    }
    if (v->count == v->room) {
        v->room = v->room == 0 ? 64 : 2 * v->room;
        v->list = realloc(v->list, v->room * sizeof v->list[0]);
        if (v->list == NULL) {
            abort();
        }
    }
    v->list[v->count] =
        (struct interval){.token = e->value, .process = e->process, .job = e->job, .end = NEVER};
    return &v->list[v->count++];
}

/* ---- S13 ---- */

static int64_t longest(int64_t ttl)
{
    return ttl - ttl / 100 - 2 * NS_PER_MS;
}

static void check_deadline(struct run *r, const struct event *e, const struct interval *i,
                           int64_t ttl)
{
    if (i->asked == 0 || ttl == 0) {
        violation(r, K2, "S13", e->job, "%s was %s without having been asked for", e->name,
                  e->op == OP_LOCK ? "won" : "extended");
        return;
    }
    int64_t over = e->until - (i->asked + longest(ttl));
    if (over > ROUNDING_NS) {
        violation(r, K2, "S13", e->job,
                  "%s: valid for %" PRId64 " us longer than what was asked for allows", e->name,
                  over / 1000);
    }
    if (2 * e->votes_yes <= e->votes) {
        violation(r, K2, "S13", e->job, "%s: %d votes of %d are no majority", e->name, e->votes_yes,
                  e->votes);
    }
}

/* ---- S14 ---- */

/* True if a fault may have deleted copies, or stepped the clock by which they expire. */
static bool are_copies_in_doubt(const struct run *r, int64_t t)
{
    return fault_in(r, TRAIT_REDIS, t - 2 * r->c.ttl, t) != NULL || fault_is_beyond_locks(r, t);
}

static void check_copies(struct run *r, const struct event *e, const struct interval *i)
{
    bool was_ours = i != NULL && i->from != 0 && e->t < end_of(i);
    if (was_ours && !are_copies_in_doubt(r, e->t)) {
        violation(r, K2, "S14", e->job,
                  "%s: a copy was taken away before its deadline, and its owner %s did not do it",
                  e->name, e->process);
    }
}

/* ---- from events to intervals ---- */

/* Ends everything that a dead predecessor held of this job, identified by the prefix of its
 * tokens. */
static void free_all(struct intervals *v, const struct event *e)
{
    size_t len = strlen(e->value);
    for (size_t i = 0; i < v->count; i++) {
        if (len > 0 && strncmp(v->list[i].token, e->value, len) == 0 && e->t < v->list[i].end) {
            v->list[i].end = e->t;
        }
    }
}

static void take_end(struct run *r, struct intervals *v, const struct event *e)
{
    struct interval *i = find(v, e);
    if (e->op == OP_UNLOCK && e->phase == PH_INV && i != NULL && e->t < i->end) {
        i->end = e->t;
    } else if (e->op == OP_UNLOCK && e->phase == PH_FAIL && i != NULL && !e->is_again) {
        struct interval before = *i; /* as before its release */
        before.end = NEVER;
        bool had_copy = (i->nodes >> (e->number & 31) & 1) != 0; /* an extension may miss a node */
        if (had_copy) {
            check_copies(r, e, &before);
        }
    } else if (e->op == OP_EXTEND && e->phase == PH_FAIL) {
        check_copies(r, e, i);
        if (i != NULL && e->t < i->end) {
            i->end = e->t; /* its holder knows that it is lost */
        }
    }
}

static void take(struct run *r, struct intervals *v, const struct event *e, int64_t *ttl)
{
    if (e->op == OP_FREE) {
        free_all(v, e);
    } else if (e->phase == PH_INV && e->op != OP_UNLOCK) {
        struct interval *i = find_or_add(v, e);
        i->asked = e->t;
        *ttl = e->ttl;
    } else if (e->phase == PH_OK && (e->op == OP_LOCK || e->flag)) {
        struct interval *i = find_or_add(v, e);
        check_deadline(r, e, i, *ttl);
        i->from = i->from == 0 ? e->t : i->from;
        i->nodes = e->until > i->until ? e->yes_nodes : i->nodes;
        i->until = e->until > i->until ? e->until : i->until;
    } else {
        take_end(r, v, e);
    }
}

/* ---- S12 ---- */

static int compare_intervals(const void *left, const void *right)
{
    const struct interval *a = left;
    const struct interval *b = right;
    return (a->from > b->from) - (a->from < b->from);
}

static void sweep(struct run *r, struct intervals *v, const char *key)
{
    const struct interval *last = NULL; /* the interval that ends last so far */
    if (v->list == NULL) {
        return;
    }
    qsort(v->list, v->count, sizeof v->list[0], compare_intervals);
    for (size_t n = 0; n < v->count; n++) {
        const struct interval *i = &v->list[n];
        if (i->from == 0) {
            continue;
        }
        int64_t overlap = last == NULL               ? 0
                          : end_of(last) < end_of(i) ? end_of(last) - i->from
                                                     : end_of(i) - i->from;
        if (overlap > EPSILON_NS && fault_is_beyond_locks(r, i->from)) {
            v->counted++;
        } else if (overlap > EPSILON_NS) {
            violation(r, K2, "S12", i->job, "%s: %s and %s both held it for %" PRId64 " us", key,
                      last->process, i->process, overlap / 1000);
        }
        last = last == NULL || end_of(i) > end_of(last) ? i : last;
    }
}

/* ---- two witnesses ---- */

static bool is_held_by(const struct intervals *v, const char *process, int64_t t)
{
    for (size_t n = 0; n < v->count; n++) {
        const struct interval *i = &v->list[n];
        if (i->process == process && i->from != 0 && i->from <= t && t <= end_of(i)) {
            return true;
        }
    }
    return false;
}

/* Only the process that has won a job's lock may move the job (architecture §6). */
static void check_reaps(struct run *r, const struct intervals *v, const struct job *j)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        int64_t asked = 0;
        for (size_t k = 0; e->op == OP_REAP && e->phase == PH_OK && k < i; k++) {
            const struct event *inv = &j->events[k];
            bool is_its = inv->op == OP_REAP && inv->phase == PH_INV && inv->process == e->process;
            asked = is_its ? inv->t : asked;
        }
        if (asked != 0 && !is_held_by(v, e->process, asked)) {
            violation(r, K2, "S12", j->id, "%s moved it without having won its lock", e->process);
        }
    }
}

/* ---- all keys ---- */

static int compare_keys(const void *left, const void *right)
{
    const struct event *a = *(const struct event *const *)left;
    const struct event *b = *(const struct event *const *)right;
    if (a->name != b->name && (a->op != OP_FREE || b->op != OP_FREE)) {
        return strcmp(a->name, b->name);
    }
    return a->t != b->t ? (a->t > b->t) - (a->t < b->t)
                        : (a->order > b->order) - (a->order < b->order);
}

static bool is_of_locks(const struct event *e)
{
    return e->op == OP_LOCK || e->op == OP_EXTEND || e->op == OP_UNLOCK;
}

/* Handles the events of one key. A `free` names a job, not the key. */
static void take_key(struct run *r, struct intervals *v, const struct event *const *list,
                     size_t count)
{
    const struct job *j = run_job(r, list[0]->job);
    size_t f = 0;
    int64_t ttl = r->c.ttl;
    v->count = 0;
    for (size_t i = 0; i < count; i++) {
        for (; list[0]->job != 0 && f < j->event_count && j->events[f].t <= list[i]->t; f++) {
            if (j->events[f].op == OP_FREE) {
                take(r, v, &j->events[f], &ttl);
            }
        }
        take(r, v, list[i], &ttl);
    }
    if (list[0]->job != 0) {
        check_reaps(r, v, j);
    }
    sweep(r, v, list[0]->name);
}

void check_intervals(struct run *r)
{
    const struct event **list = calloc(r->event_count + 1, sizeof(*list));
    struct intervals v = {.list = NULL};
    size_t count = 0;
    for (size_t i = 0; list != NULL && i < r->event_count; i++) {
        if (is_of_locks(&r->events[i])) {
            list[count++] = &r->events[i];
        }
    }
    if (count > 1) {
        qsort(list, count, sizeof(*list), compare_keys);
    }
    for (size_t from = 0, to = 0; from < count; from = to) {
        for (to = from; to < count && list[to]->name == list[from]->name; to++) {
        }
        take_key(r, &v, list + from, to - from);
    }
    if (v.counted > 0) {
        note(r, K2, "%zu overlaps within a ttl of faults that no lock survives", v.counted);
    }
    free(v.list);
    free(list);
}
