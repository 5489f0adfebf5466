/* SPDX-License-Identifier: Apache-2.0
 *
 * Which jobs a command means: the options that all commands for jobs share. */
#ifndef CLAIMD_CTL_FILTER_H
#define CLAIMD_CTL_FILTER_H

#include "ctl/core/human.h"
#include "ctl/options/given.h"

/* Ready for the parameters of admin_jobs_list; NULL = any. */
struct filter {
    bool is_open;     /* the states allow open jobs */
    bool is_finished; /* and finished ones */
    char since[HUMAN_TIME_MAX];
    char until[HUMAN_TIME_MAX]; /* "" = any */
    const char *states;         /* array literals */
    const char *kinds;
    const char *queues;
    const char *tags;
    const char *worker;
    const char *error;
    const char *metadata; /* a JSON object */
    const char *batch;    /* an id */
    const char *owner;
    struct given given; /* owns them */
};

#define auto_filter CLEANUP(filter_release)
void filter_release(struct filter *f);

/* Reads and checks the options, as far as that needs no server. `now_us`: what ages count from. */
enum status filter_read(struct filter *ret, const struct ctl_args *args, int64_t now_us,
                        struct err *err) MUST_USE;

/* One of its options, at least. */
bool filter_is_given(const struct ctl_args *args);

/* The states as if "--state LIST" had been given. A refusal goes to the err of filter_read(). */
enum status filter_states(struct filter *f, const char *list) MUST_USE;

#endif
