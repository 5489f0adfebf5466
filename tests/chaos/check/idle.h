/* SPDX-License-Identifier: Apache-2.0
 *
 * What K11 knows of a run: when each worker had an idle slot and for what, when jobs had to wait
 * for a place, and how busy the host was. */
#ifndef CHECK_IDLE_H
#define CHECK_IDLE_H

#include "check.h"
#include "spans.h"

/* A queue, or a kind; the other one is NULL. */
struct served_name {
    const char *queue;
    const char *kind;
};

/* What a worker serves, from then on. */
struct served {
    int64_t since;
    struct served_name *names;
    size_t count;
};

struct spare_worker {
    const struct process *process;
    struct spans spare;
    struct served *served;
    size_t served_count;
};

/* Between two samples, a daemon waited so long for a CPU. */
struct starved {
    int64_t from;
    int64_t to;
    int64_t waited;
};

/* refusals.c: when no job of a queue, kind or key may start. */
struct refusal;
struct refusals {
    struct refusal *by_what;
};
void refusals_find(struct refusals *all, const struct run *r);
void refusals_free(struct refusals *all);
void refusals_add(const struct refusals *all, const char *queue, const char *kind, const char *key,
                  struct span within, struct spans *to);

struct idle {
    struct run *run;
    struct spans faults; /* and what follows them */
    struct refusals refusals;
    struct spare_worker *workers;
    size_t worker_count;
    struct starved *starved;
    size_t starved_count;
};

/* idle_workers.c */
void idle_find_workers(struct idle *all);
void idle_find_starved(struct idle *all);
void idle_free(struct idle *all);

#endif
