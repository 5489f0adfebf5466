/* SPDX-License-Identifier: Apache-2.0
 *
 * K11: what workers recorded about their idle slots and about what they serve, and how long they
 * waited for a CPU. */
#include "idle.h"

#include <stdlib.h>

static void *grown(void *list, size_t count, size_t size)
{
    list = realloc(list, (count + 1) * size);
    if (list == NULL) {
        abort();
    }
    return list;
}

static struct spare_worker *worker_of(struct idle *all, const char *process)
{
    for (size_t i = all->worker_count; i > 0; i--) {
        if (all->workers[i - 1].process->name == process) {
            return &all->workers[i - 1];
        }
    }
    const struct process *p = run_process(all->run, process);
    if (p == NULL) {
        return NULL;
    }
    all->workers = grown(all->workers, all->worker_count, sizeof all->workers[0]);
    all->workers[all->worker_count] = (struct spare_worker){.process = p};
    return &all->workers[all->worker_count++];
}

/* A list begins with `inv`; until its end has been read, the list before it holds. */
static void take_served(struct spare_worker *v, const struct event *e)
{
    if (e->phase == PH_INV) {
        v->served = grown(v->served, v->served_count, sizeof v->served[0]);
        v->served[v->served_count++] = (struct served){.since = e->t};
    } else if (e->phase == PH_OK && v->served_count > 0) {
        struct served *s = &v->served[v->served_count - 1];
        s->names = grown(s->names, s->count, sizeof s->names[0]);
        s->names[s->count++] = (struct served_name){.queue = e->queue, .kind = e->kind};
    }
}

static int64_t end_of(const struct run *r, const struct process *p)
{
    int64_t end = p->stopped < p->ended ? p->stopped : p->ended;
    return end < r->last ? end : r->last;
}

void idle_find_workers(struct idle *all)
{
    const struct job *none = &all->run->jobs[0];
    for (size_t i = 0; i < none->event_count; i++) {
        const struct event *e = &none->events[i];
        bool is_said = e->op == OP_SPARE || e->op == OP_SERVES;
        struct spare_worker *v = is_said ? worker_of(all, e->process) : NULL;
        if (v == NULL) {
            continue;
        }
        if (e->op == OP_SERVES) {
            take_served(v, e);
            continue;
        }
        struct spans *s = &v->spare;
        bool is_open = s->count > 0 && s->list[s->count - 1].to == NEVER;
        if (e->number > 0 && !is_open) {
            spans_add(s, e->t, NEVER);
        } else if (e->number == 0 && is_open) {
            s->list[s->count - 1].to = e->t;
        }
    }
    for (size_t i = 0; i < all->worker_count; i++) {
        struct spans *s = &all->workers[i].spare;
        if (s->count > 0 && s->list[s->count - 1].to == NEVER) {
            s->list[s->count - 1].to = end_of(all->run, all->workers[i].process);
        }
        spans_sort(s);
    }
}

/* ---- the host ---- */

#define DAEMONS_MAX 256

struct last_samples {
    struct idle *all;
    struct {
        const char *process;
        int64_t t;
        int64_t waited;
    } list[DAEMONS_MAX];
    size_t count;
};

static void take_sample(struct run *r, void *ctx, const json_t *o)
{
    (void)r;
    struct last_samples *last = ctx;
    struct idle *all = last->all;
    const char *name = json_string_value(json_object_get(o, "p"));
    int64_t t = json_integer_value(json_object_get(o, "t"));
    int64_t waited = json_integer_value(json_object_get(o, "cpu_wait"));
    size_t i = 0;
    if (name == NULL) {
        return;
    }
    const char *process = intern(name, strlen(name));
    while (i < last->count && last->list[i].process != process) {
        i++;
    }
    if (i == DAEMONS_MAX) {
        return;
    }
    if (i < last->count && waited > last->list[i].waited) {
        all->starved = grown(all->starved, all->starved_count, sizeof all->starved[0]);
        all->starved[all->starved_count++] = (struct starved){
            .from = last->list[i].t, .to = t, .waited = waited - last->list[i].waited};
    }
    last->count = i < last->count ? last->count : i + 1;
    last->list[i].process = process;
    last->list[i].t = t;
    last->list[i].waited = waited;
}

void idle_find_starved(struct idle *all)
{
    struct last_samples last = {.all = all};
    (void)run_lines(all->run, "samples.jsonl", take_sample, &last);
}

void idle_free(struct idle *all)
{
    for (size_t i = 0; i < all->worker_count; i++) {
        struct spare_worker *v = &all->workers[i];
        for (size_t k = 0; k < v->served_count; k++) {
            free(v->served[k].names);
        }
        free(v->served);
        spans_free(&v->spare);
    }
    free(all->workers);
    free(all->starved);
    spans_free(&all->faults);
    refusals_free(&all->refusals);
}
