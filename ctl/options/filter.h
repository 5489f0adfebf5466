/* SPDX-License-Identifier: Apache-2.0
 *
 * Which jobs a command means: the options that all commands for jobs share. */
#ifndef CLAIMD_CTL_FILTER_H
#define CLAIMD_CTL_FILTER_H

#include "base/buf.h"
#include "ctl/core/ctl.h"
#include "ctl/core/human.h"

#define FILTER_LIST_MAX ((size_t)4 << 20) /* all that a command line can hold, escaped */

/* Ready for the parameters of admin_jobs_list; NULL = any. */
struct filter {
    bool is_open;     /* the states allow open jobs */
    bool is_finished; /* and finished ones */
    char since[HUMAN_TIME_MAX];
    char until[HUMAN_TIME_MAX]; /* "" = any */
    struct buf states;          /* array literals; empty = any */
    struct buf kinds;
    struct buf queues;
    struct buf tags;
    const char *worker;
    const char *error;
    const char *metadata; /* a JSON object */
    const char *batch;    /* an id */
    const char *owner;
};

#define auto_filter CLEANUP(filter_release)
void filter_release(struct filter *f);

/* Reads and checks the options, as far as that needs no server. `now_us`: what ages count from. */
enum status filter_read(struct filter *ret, const struct ctl_args *args, int64_t now_us,
                        struct err *err) MUST_USE;

/* One of its options, at least. */
bool filter_is_given(const struct ctl_args *args);

/* The states as if "--state LIST" had been given. */
enum status filter_states(struct filter *f, const char *list, struct err *err) MUST_USE;

/* All values of an option as an array literal of PostgreSQL, empty when it wasn't given; split at
 * commas if so. */
enum status filter_array(const struct ctl_args *args, const char *name, bool is_split,
                         struct buf *out, struct err *err) MUST_USE;

/* The tags of a job or of a filter, not split. INVALID: one is empty. A filter refuses it because
 * it may be an unset variable; so a job that had it would never be found. */
enum status filter_tags(const struct ctl_args *args, struct buf *out, struct err *err) MUST_USE;

#endif
