/* SPDX-License-Identifier: Apache-2.0
 *
 * The gauges of the whole cluster, while this scheduler leads: a survey of all queues now and then,
 * on a connection of its own, because it reads every open job and a vacuum may take minutes on the
 * other one. What it costs bounds how often it is made; PostgreSQL cuts one off that takes too long
 * (then the values before stay, and it is counted). The gauges go when it is stopped. */
#ifndef CLAIMD_SCHEDULER_SURVEY_H
#define CLAIMD_SCHEDULER_SURVEY_H

#include "scheduler/services.h"

struct survey;

struct survey_options {
    uv_loop_t *loop;
    struct metrics *registry; /* borrowed; may be NULL */
    const char *conninfo;     /* copied */
    int64_t timeout_us;       /* of connecting */
    int64_t every_us;
    int64_t limit_us; /* PostgreSQL cuts it off after so long */
};

/* How long to wait after one that took so long: it may have 2 % of the time. Pure. */
int64_t survey_wait_us(int64_t took_us, int64_t every_us);

/* Connects and begins at once. */
enum status survey_start(const struct survey_options *options, struct survey **ret,
                         struct err *err) MUST_USE;
void survey_stop(struct survey *s); /* accepts NULL */
extern const struct service survey_service;

/* The families are listed from the start, though nothing is known before this scheduler leads. */
void survey_metrics_init(struct metrics *registry);

#endif
