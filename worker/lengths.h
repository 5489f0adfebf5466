/* SPDX-License-Identifier: Apache-2.0
 *
 * How long runs take, by queue and kind, and what may be claimed ahead of a free runner because of
 * that (docs/decisions/0024). A hint does not say which kind its job is of, as a rule: so of a
 * queue nothing is claimed ahead if a kind that was claimed from it in the last minute is long or
 * not known yet. Pure. */
#ifndef CLAIMD_WORKER_LENGTHS_H
#define CLAIMD_WORKER_LENGTHS_H

#include "config/config.h"
#include "model/job.h"
#include "worker/run_stats.h"

#include <uthash.h>

struct run_length {
    char name[2 * (JOB_NAME_MAX + 1)]; /* queue and kind, each ended by NULs */
    size_t queue;                      /* its place among the worker's queues */
    size_t runs;
    int64_t long_ppm; /* of the last runs, about 64: those that took longer than lengths_max_us() */
    int64_t claimed_us;      /* the last time */
    int64_t barred_until_us; /* it was handed back */
    struct run_stats stats;
    int64_t saved_us; /* run_stats_save.h's own */
    UT_hash_handle hh;
};

struct lengths {
    struct run_length *by_name;
    int64_t fetch_us; /* from a pop until its jobs can run: a moving average */
    size_t fetches;
    bool may_ahead[CONFIG_QUEUES_MAX];
    int64_t looked_us; /* when that was found out; 0 = something has changed since */
};

/* Of so many queues: which may be claimed ahead. */
enum lengths_ahead { LENGTHS_NONE, LENGTHS_SOME, LENGTHS_ALL };

void lengths_release(struct lengths *l);

/* A run is long from this on: what would wait behind it starts sooner if it is handed back, which
 * takes a release and a push, and fetched by another worker. */
int64_t lengths_max_us(const struct lengths *l);

/* Borrowed. */
const char *lengths_queue(const struct run_length *length);
const char *lengths_kind(const struct run_length *length);

/* NULL: nothing was claimed of it, so it is not known. */
const struct run_length *lengths_find(const struct lengths *l, const char *queue, const char *kind);
/* A job of it was claimed. NULL: no memory, or too many. */
struct run_length *lengths_claimed(struct lengths *l, size_t queue_place, const char *queue,
                                   const char *kind, int64_t now_us);
/* A job has its claim, its lock and its args, so long after its hint was popped. */
void lengths_fetched(struct lengths *l, int64_t took_us);
void lengths_ran(struct lengths *l, struct run_length *length, int64_t ran_us, int64_t now_us);
/* Jobs of it were claimed ahead and handed back. What is not known yet is not barred: its runs will
 * tell. */
void lengths_handed_back(struct lengths *l, struct run_length *length, int64_t now_us);

/* Most runs of it are short, by all that is known; NULL is not. */
bool lengths_is_short(const struct run_length *length, int64_t now_us);
bool lengths_may_ahead(struct lengths *l, size_t queue_place, int64_t now_us);
enum lengths_ahead lengths_ahead(struct lengths *l, size_t queue_count, int64_t now_us);

#endif
