/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that a filter chooses, for lists and for acts on many. */
#ifndef CLAIMD_WEB_JOBS_H
#define CLAIMD_WEB_JOBS_H

#include "ctl/commands/jobs/jobs_walk.h"
#include "web/api.h"

/* Adds an option of the filter. INVALID: there is none of that name, or there are too many. */
enum status jobs_option(struct ctl_args *args, const char *name, const char *value,
                        struct err *err) MUST_USE;
/* Refuses a filter by what the caller may not see. */
enum status jobs_check_private(const struct web *w, const struct web_request *q,
                               const struct ctl_args *args, struct err *err) MUST_USE;

/* Reads the filter with PostgreSQL's time. */
enum status jobs_filter(struct walk *walk, const struct ctl_args *args, struct err *err) MUST_USE;

/* What is done to jobs: the statements of claimctl's commands. */
struct jobs_act {
    const char *name;
    const struct pg_statement *one;  /* $1 = id; returns the state, NULL = no such job */
    const struct pg_statement *many; /* $1 = ids; refused as a whole if one of them is refused */
    const char *states;              /* what it is for, if the filter names no state */
    bool has_even_completed;         /* $2 */
};
const struct jobs_act *jobs_act_find(const char *name); /* NULL = there is none */

/* The record `page` of a list. searched: how many jobs were read for a search in args; is_cut: it
 * ended before all of them were. */
#define JOBS_PAGE_COLUMNS 3
extern const struct table_column jobs_page_columns[JOBS_PAGE_COLUMNS];

/* Does it to one job. NOT_FOUND: there is none. */
enum status jobs_act_one(struct admin *a, const struct jobs_act *act, const char *id,
                         const char *even_completed, char ret_state[32], struct err *err) MUST_USE;

#endif
