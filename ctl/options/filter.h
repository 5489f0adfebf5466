/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the jobs that a command acts on: the options that all commands for jobs share. */
#ifndef CLAIMD_CTL_FILTER_H
#define CLAIMD_CTL_FILTER_H

#include "ctl/core/human.h"
#include "ctl/options/given.h"

/* Values for the parameters of admin_jobs_list; NULL = any. */
struct filter {
    bool is_open;     /* the states include open ones */
    bool is_finished; /* the states include finished ones */
    bool is_running;  /* running is the only state */
    char since[HUMAN_TIME_MAX];
    char until[HUMAN_TIME_MAX]; /* "" = any */
    const char *states;         /* array literals, from here on */
    const char *kinds;
    const char *queues;
    const char *tags;
    const char *worker;
    const char *error;
    const char *metadata; /* a JSON object */
    const char *batch;    /* an id */
    const char *owner;
    const char *map;    /* its name */
    struct given given; /* owns the texts */
};

/* The names of the options. */
#define FILTER_OPTION_COUNT 13
extern const char *const filter_options[FILTER_OPTION_COUNT];

#define auto_filter CLEANUP(filter_release)
void filter_release(struct filter *f);

/* Reads and checks the options, as far as that needs no server. Ages are relative to `now_us`. */
enum status filter_read(struct filter *ret, const struct ctl_args *args, int64_t now_us,
                        struct err *err) MUST_USE;

/* True if at least one of its options was given. */
bool filter_is_given(const struct ctl_args *args);

/* Sets the states as if "--state LIST" had been given. A refusal is written to the err of
 * filter_read(). */
enum status filter_states(struct filter *f, const char *list) MUST_USE;

#endif
