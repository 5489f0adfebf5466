/* SPDX-License-Identifier: Apache-2.0
 *
 * A world that is drawn from its number: how many workers there are and which queues each of them
 * serves, what limits them, which kinds of jobs there are, and how they come. The same number is
 * the same world; what a storm does to it is drawn from the seed. */
#ifndef CLAIMD_TESTS_CHAOS_DRAWN_H
#define CLAIMD_TESTS_CHAOS_DRAWN_H

#include "base/err.h"
#include "chaos/session.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAWN_QUEUES_MAX 14
#define DRAWN_WORKERS_MAX 6
#define DRAWN_SLOTS_MAX 32
#define DRAWN_KINDS 50 /* the plugin `kinds` has them, k00 to k49 */
#define DRAWN_KINDS_OF_QUEUE 8
#define DRAWN_KEYS 4 /* of a queue that has some */
#define DRAWN_NAME_MAX 16

struct drawn_kind {
    char name[DRAWN_NAME_MAX];
    int ms;
};

struct drawn_queue {
    char name[DRAWN_NAME_MAX];
    int running; /* so many at once; 0 = no limit, as the next */
    int rate;    /* starts per second */
    int weight;
    int tenants;    /* 0 = its jobs have no share_key */
    int key_places; /* of each of its keys; 0 = it has none */
    bool has_priorities;
    size_t kinds[DRAWN_KINDS_OF_QUEUE];
    size_t kind_count;
    double trickle; /* jobs per second */
    int burst;      /* so many of one kind at once, at most … */
    int burst_ms;   /* … in the mean of so much time */
};

struct drawn_worker {
    int slots;
    size_t queues[DRAWN_QUEUES_MAX];
    size_t queue_count;
};

struct drawn {
    uint64_t number;
    int fault_percent; /* of all faults, so many strike in it */
    unsigned dba;      /* drawn_dba.h */
    int lanes;         /* of jobs that are due in a day, each in a lane of its own; 0 = none */
    struct drawn_kind kinds[DRAWN_KINDS];
    struct drawn_queue queues[DRAWN_QUEUES_MAX]; /* the first one is `default` */
    size_t queue_count;
    struct drawn_worker workers[DRAWN_WORKERS_MAX];
    size_t worker_count;
};

void drawn_draw(struct drawn *d, uint64_t number);
void drawn_print(const struct drawn *d);

/* How many jobs of that kind the queue can end in a second, at most. */
double drawn_pace(const struct drawn *d, const struct drawn_queue *q, size_t kind);

/* Its limits and weights, and the jobs that are due in a day. The latter are in no books: they go
 * before the jobs are counted. */
enum status drawn_prepare(const struct drawn *d, struct session *sql, struct err *err) MUST_USE;
enum status drawn_clear(const struct drawn *d, struct session *sql, struct err *err) MUST_USE;

/* The same for run.json: {"queues": {…}, "keys": {…}}. */
void drawn_limits(const struct drawn *d, json_t **ret_limits, json_t **ret_rates);

/* "CLAIMD_WORKER_SLOTS=…" and "CLAIMD_WORKER_QUEUES=…" of a worker. */
#define DRAWN_ENV_MAX 320
void drawn_env(const struct drawn *d, size_t worker, char ret_slots[DRAWN_ENV_MAX],
               char ret_queues[DRAWN_ENV_MAX]);

#endif
