/* SPDX-License-Identifier: Apache-2.0
 *
 * The gauges of the whole cluster, while this scheduler leads: a regular survey of all queues, on a
 * connection of its own, because it reads every open job and a vacuum may take minutes on the other
 * one. The cost of a survey bounds how often it is made; PostgreSQL cancels one that takes too long
 * (the previous values then stay, and the failure is counted). The gauges are removed when the
 * survey stops. */
#ifndef CLAIMD_SCHEDULER_SURVEY_H
#define CLAIMD_SCHEDULER_SURVEY_H

#include "scheduler/services.h"

struct survey;

struct survey_options {
    uv_loop_t *loop;
    struct metrics *registry; /* borrowed; may be NULL */
    const char *conninfo;     /* copied */
    int64_t timeout_us;       /* for connecting */
    int64_t every_us;
    int64_t limit_us; /* PostgreSQL cancels a survey after this time */
};

/* Returns how long to wait after a survey that took took_us: surveys may take 2 % of the time.
 * Pure. */
int64_t survey_wait_us(int64_t took_us, int64_t every_us);

/* Connects and begins at once. */
enum status survey_start(const struct survey_options *options, struct survey **ret,
                         struct err *err) MUST_USE;
void survey_stop(struct survey *s); /* accepts NULL */
extern const struct service survey_service;

/* Creates the families that are listed from the start, although nothing is known before this
 * scheduler leads. */
void survey_metrics_init(struct metrics *registry);

#endif
