/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts that K11 uses: when each worker had an idle slot and for what, when jobs had to wait
 * for a place, and how busy the host was. */
#ifndef CHECK_IDLE_H
#define CHECK_IDLE_H

#include "check.h"
#include "spans.h"

/* A queue or a kind; the other one is NULL. */
struct served_name {
    const char *queue;
    const char *kind;
};

/* The queues and kinds that a worker serves since then. */
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

/* How long a daemon waited for a CPU between two samples. */
struct starved {
    int64_t from;
    int64_t to;
    int64_t waited;
};

/* refusals.c: the times in which no job of a queue, kind or key may start. */
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
    struct spans faults; /* including their aftermath */
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
