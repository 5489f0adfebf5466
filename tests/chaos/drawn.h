/* SPDX-License-Identifier: Apache-2.0
 *
 * A world drawn from its number: how many workers there are, which queues each of them serves,
 * their limits, the kinds of jobs, and how jobs arrive. The same number gives the same world; the
 * faults of its storm are drawn from the seed. */
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
#define DRAWN_KINDS 50 /* the kinds of the plugin `kinds`, k00 to k49 */
#define DRAWN_KINDS_OF_QUEUE 8
#define DRAWN_KEYS 4 /* per queue with keys */
#define DRAWN_NAME_MAX 16

struct drawn_kind {
    char name[DRAWN_NAME_MAX];
    int ms;
};

struct drawn_queue {
    char name[DRAWN_NAME_MAX];
    int running; /* limit of running jobs; 0 = no limit, as for the next one */
    int rate;    /* starts per second */
    int weight;
    int tenants;    /* 0 = its jobs have no share_key */
    int key_places; /* places of each of its keys; 0 = it has no keys */
    bool has_priorities;
    size_t kinds[DRAWN_KINDS_OF_QUEUE];
    size_t kind_count;
    double trickle; /* jobs per second */
    int burst;      /* largest burst, of one kind … */
    int burst_ms;   /* … once per this time, on average */
};

struct drawn_worker {
    int slots;
    size_t queues[DRAWN_QUEUES_MAX];
    size_t queue_count;
};

struct drawn {
    uint64_t number;
    int fault_percent; /* percentage of all faults that occur in this world */
    unsigned dba;      /* bits of drawn_dba.h */
    int lanes;         /* jobs that are due in a day, each in a lane of its own; 0 = none */
    struct drawn_kind kinds[DRAWN_KINDS];
    struct drawn_queue queues[DRAWN_QUEUES_MAX]; /* the first one is `default` */
    size_t queue_count;
    struct drawn_worker workers[DRAWN_WORKERS_MAX];
    size_t worker_count;
};

void drawn_draw(struct drawn *d, uint64_t number);
void drawn_print(const struct drawn *d);

/* Returns how many jobs of that kind the queue can complete per second at most. */
double drawn_pace(const struct drawn *d, const struct drawn_queue *q, size_t kind);

/* The first sets limits and weights, and inserts the jobs that are due in a day. These are in no
 * books; the second deletes them before jobs are counted. */
enum status drawn_prepare(const struct drawn *d, struct session *sql, struct err *err) MUST_USE;
enum status drawn_clear(const struct drawn *d, struct session *sql, struct err *err) MUST_USE;

/* Returns the limits for run.json: {"queues": {…}, "keys": {…}}. */
void drawn_limits(const struct drawn *d, json_t **ret_limits, json_t **ret_rates);

/* Writes "CLAIMD_WORKER_SLOTS=…" and "CLAIMD_WORKER_QUEUES=…" of a worker. */
#define DRAWN_ENV_MAX 320
void drawn_env(const struct drawn *d, size_t worker, char ret_slots[DRAWN_ENV_MAX],
               char ret_queues[DRAWN_ENV_MAX]);

#endif
