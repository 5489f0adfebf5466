/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps how long runs take, by queue and kind, and derives what may be claimed ahead of a free
 * runner (docs/decisions/0024). A hint usually does not name its job's kind. So nothing is claimed
 * ahead from a queue if a kind that was claimed from it in the last minute is long or not known
 * yet. Pure. */
#ifndef CLAIMD_WORKER_JOBS_LENGTHS_H
#define CLAIMD_WORKER_JOBS_LENGTHS_H

#include "config/config.h"
#include "model/job.h"
#include "worker/jobs/run_stats.h"

#include <uthash.h>

struct run_length {
    char name[2 * (JOB_NAME_MAX + 1)]; /* queue and kind, each padded with NULs */
    size_t queue;                      /* its position in the worker's queues */
    size_t runs;
    int64_t long_ppm; /* share of the last runs, about 64, that took longer than lengths_max_us() */
    int64_t claimed_us;      /* when a job of it was last claimed */
    int64_t barred_until_us; /* after a hand-back, it does not count as short until then */
    struct run_stats stats;
    int64_t saved_us; /* used by run_stats_save.h only */
    UT_hash_handle hh;
};

struct lengths {
    struct run_length *by_name;
    int64_t fetch_us; /* from a pop until its jobs can run: a moving average */
    size_t fetches;
    int64_t mean_us; /* of recent runs of short kinds; decides how much to claim ahead */
    bool may_ahead[CONFIG_QUEUES_MAX];
    int64_t looked_us; /* when may_ahead was computed; 0 = something has changed since */
};

/* From how many of the worker's queues jobs may be claimed ahead. */
enum lengths_ahead { LENGTHS_NONE, LENGTHS_SOME, LENGTHS_ALL };

void lengths_release(struct lengths *l);

/* Returns the longest run that counts as short. Behind a longer run, a job would wait longer than
 * it takes to hand the job back (a release and a push) and to let another worker fetch it. */
int64_t lengths_max_us(const struct lengths *l);

/* Return its queue or its kind, borrowed. */
const char *lengths_queue(const struct run_length *length);
const char *lengths_kind(const struct run_length *length);

/* Returns NULL if no job of this queue and kind was claimed, so that its length is unknown. */
const struct run_length *lengths_find(const struct lengths *l, const char *queue, const char *kind);
/* Notes that a job of this queue and kind was claimed. Returns NULL if there is no memory or there
 * are too many. */
struct run_length *lengths_claimed(struct lengths *l, size_t queue_place, const char *queue,
                                   const char *kind, int64_t now_us);
/* Notes that a job has its lock, its claim and its args `took_us` after its hint was popped. */
void lengths_fetched(struct lengths *l, int64_t took_us);
void lengths_ran(struct lengths *l, struct run_length *length, int64_t ran_us, int64_t now_us);
/* Notes that a job was claimed ahead and handed back. A kind that is not known yet is not barred:
 * its runs will show how long they are. */
void lengths_handed_back(struct lengths *l, struct run_length *length, int64_t now_us);

/* True if most runs are known to be short; false for NULL. */
bool lengths_is_short(const struct run_length *length, int64_t now_us);
bool lengths_may_ahead(struct lengths *l, size_t queue_place, int64_t now_us);
enum lengths_ahead lengths_ahead(struct lengths *l, size_t queue_count, int64_t now_us);

#endif
