/* SPDX-License-Identifier: Apache-2.0
 *
 * K5, L3: no job waits for long while jobs that came later to its lane keep being claimed. Whatever
 * the load, such a job was not waiting for a worker: it was overlooked. */
#include "check.h"

#include <ctype.h>
#include <string.h>

#define K5 "K5"
#define OVERTAKEN_NS (8 * NS_PER_S) /* scaled; the next full pass may be 30 s away */
#define OVERTAKEN_BY_DEATH_NS (14 * NS_PER_S)
#define REQUEST_NS (5 * NS_PER_S) /* postgres.timeout_ms, which is not scaled */
#define OVERTAKEN_MIN 3

/* One wait of a job, from when it was available until it was claimed. */
struct wait {
    int64_t job;
    int64_t since;
    int64_t claimed;
    int64_t ready_us; /* determines its place in the queue */
    const char *group;
};

struct waits {
    struct wait *list;
    size_t count;
    size_t room;
};

static int compare_waits(const void *left, const void *right)
{
    const struct wait *a = left;
    const struct wait *b = right;
    if (a->group != b->group) {
        return a->group > b->group ? 1 : -1;
    }
    return (a->claimed > b->claimed) - (a->claimed < b->claimed);
}

/* Returns the lane: queue, priority, share; NULL: not recorded. Within a lane, the earlier row goes
 * first. But in a backlog, a lane that has just got its first job has its turn before the later
 * jobs of a long lane. */
static const char *group_of(const struct final *f)
{
    char text[160] = "";
    json_t *o = json_loadb(f->line, f->line_len, 0, NULL);
    const char *queue = json_string_value(json_object_get(o, "queue"));
    int n = snprintf(text, sizeof text, "%s/%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                     queue == NULL ? "" : queue, json_integer_value(json_object_get(o, "priority")),
                     json_integer_value(json_object_get(o, "share")));
    const char *group = queue == NULL ? NULL : intern(text, (size_t)n);
    json_decref(o);
    return group;
}

static void add_wait(struct waits *w, const struct wait *one)
{
    if (w->count == w->room) {
        w->room = w->room == 0 ? 1024 : 2 * w->room;
        w->list = realloc(w->list, w->room * sizeof w->list[0]);
        if (w->list == NULL) {
            abort();
        }
    }
    w->list[w->count++] = *one;
}

static bool is_delayed(const struct event *e)
{
    json_t *o = json_loadb(e->line, e->line_len, 0, NULL);
    bool is = json_integer_value(json_object_get(o, "delay_ms")) != 0;
    json_decref(o);
    return is;
}

static bool is_tied(const struct job *j)
{
    for (size_t i = 0; i < j->event_count; i++) {
        if (j->events[i].is_tied) {
            return true;
        }
    }
    return false;
}

/* A job is available when its insert was answered, or when it was handed back or rescued; retries
 * after a backoff are ignored. A job that depends on others waits for these, and is left out. */
static void add_waits(struct waits *w, const struct job *j)
{
    struct wait one = {.job = j->id, .ready_us = j->row_count > 0 ? j->rows[0].ready_at_us : 0};
    one.group = j->final_count == 0 || j->is_edited || is_tied(j) ? NULL : group_of(&j->finals[0]);
    bool was_claimed = false; /* perhaps before its producer recorded the answer to its insert */
    for (size_t i = 0; one.group != NULL && i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->phase != PH_OK) {
            continue;
        }
        bool is_new = e->op == OP_SUBMIT && !was_claimed && !is_delayed(e);
        was_claimed = was_claimed || e->op == OP_CLAIM;
        if (e->op == OP_HAND_BACK || e->op == OP_REAP || is_new) {
            one.since = e->t;
        } else if (e->op == OP_FAIL) {
            one.since = 0;
        } else if (e->op == OP_CLAIM && one.since != 0) {
            one.claimed = e->t;
            add_wait(w, &one);
            one.since = 0;
        }
    }
}

/* True for "w1", "w1/PID", "w1-r2"; not for "worker", which is a table. */
static bool is_about_worker(const struct fault *f)
{
    return f->target[0] == 'w' && isdigit((unsigned char)f->target[1]);
}

static bool cuts_off_from_postgres(const struct fault *f)
{
    return strstr(f->target, "-pg") != NULL || strstr(f->target, "-all") != NULL;
}

static int64_t scaled(const struct run *r, int64_t ns)
{
    return (int64_t)((double)ns * r->c.scale);
}

/* Returns how long the job may be overtaken. A worker that stops takes along the hints that it had
 * popped, which are fed again when its heartbeat is stale. A worker without an answer from
 * PostgreSQL keeps the locks of the jobs of its claim until the request times out, since the claim
 * may have been committed. Any other fault may hide a job from all workers: NEVER. */
static int64_t bound_of(const struct run *r, const struct wait *w)
{
    int64_t bound = scaled(r, OVERTAKEN_NS);
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        bool is_near = f->from <= w->claimed && f->to >= w->since - r->c.recovery;
        if (!is_near || fault_has(f, TRAIT_SPARES_WAITS)) {
            continue;
        }
        if (!is_about_worker(f)) {
            return NEVER;
        }
        int64_t own = cuts_off_from_postgres(f)
                          ? scaled(r, OVERTAKEN_BY_DEATH_NS - REQUEST_NS) + REQUEST_NS
                          : scaled(r, OVERTAKEN_BY_DEATH_NS);
        bound = own > bound ? own : bound;
    }
    return bound;
}

/* Counts the jobs that overtook it in the middle of its wait. Overtaking at the beginning proves
 * nothing: lanes take turns, and after that more urgent jobs may keep all workers busy for long. At
 * the end of such a time, all jobs that waited are claimed at once. */
static size_t count_overtaking(const struct waits *w, size_t at, int64_t bound)
{
    const struct wait *late = &w->list[at];
    size_t count = 0;
    for (size_t k = at; k > 0; k--) {
        const struct wait *o = &w->list[k - 1];
        if (o->group != late->group || o->claimed < late->since) {
            break;
        }
        bool is_later = o->since > late->since && o->ready_us >= late->ready_us;
        bool is_amid =
            o->claimed > late->since + bound / 2 && o->claimed < late->claimed - bound / 2;
        count += is_later && is_amid;
    }
    return count;
}

void check_waits(struct run *r)
{
    struct waits w = {.list = NULL};
    int64_t least = scaled(r, OVERTAKEN_NS);
    for (size_t i = 1; i < r->job_count; i++) {
        add_waits(&w, &r->jobs[i]);
    }
    if (w.count > 1) {
        qsort(w.list, w.count, sizeof w.list[0], compare_waits);
    }
    for (size_t i = 0; i < w.count; i++) {
        const struct wait *late = &w.list[i];
        int64_t bound = late->claimed - late->since > least ? bound_of(r, late) : NEVER;
        size_t overtaking = bound == NEVER ? 0 : count_overtaking(&w, i, bound);
        if (overtaking >= OVERTAKEN_MIN) {
            violation(r, K5, "L3", late->job,
                      "waited %.2f s from %.3f s on, and amid that %zu that came later to its lane "
                      "were claimed; bound %.2f s",
                      (double)(late->claimed - late->since) / (double)NS_PER_S,
                      (double)(late->since - r->first) / (double)NS_PER_S, overtaking,
                      (double)bound / (double)NS_PER_S);
        }
    }
    free(w.list);
}
