/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches for jobs that a filter chooses: walks the ids from the newest down, range by range, and
 * skips gaps. Ranges grow while they are read quickly, so that tables of any size are searched in
 * steps of bounded time. If only running jobs are wanted, it walks from the oldest up, since they
 * are older than a backlog. A search in args reads a bounded number of the jobs that the filter
 * chooses. */
#ifndef CLAIMD_CTL_JOBS_WALK_H
#define CLAIMD_CTL_JOBS_WALK_H

#include "base/text.h"
#include "ctl/core/table_text.h"
#include "ctl/options/filter.h"

#define WALK_SEARCH_MAX 10000

struct walk {
    struct admin *admin; /* owned by the caller */
    struct filter filter;
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct text wanted; /* array literal of the columns that are read only on request */
    struct table table; /* the jobs found so far */
    int64_t limit;      /* set by the caller: the most rows in `table` */
    const char *search; /* set by the caller, who keeps it: a text within the args; NULL = any */
    int64_t searched;   /* how many jobs were read for it, at most WALK_SEARCH_MAX */
    int64_t step;       /* how many of them one call reads */
    int64_t first;      /* `next` when walk_on() began */
    bool is_rising;     /* goes from the oldest up */
    int64_t next;       /* the first id not searched yet; 0 = none is left */
    int64_t last_id;    /* of the last job found */
    bool is_cut;        /* the time ran out, or WALK_SEARCH_MAX was reached */
};

#define WALK(an_admin, a_limit)                                                                \
    {                                                                                          \
        .admin = (an_admin), .wanted = TEXT_INIT((size_t)64 << 10), .table = {.name = "jobs"}, \
        .limit = (a_limit)                                                                     \
    }
void walk_release(struct walk *w);

/* Sets the columns: "id,kind"; NULL = the standard ones. INVALID: a column is unknown or named
 * twice. */
enum status walk_columns(struct walk *w, const char *list, struct err *err) MUST_USE;

/* Starts behind this id, where walk_after() said; INT64_MAX = at the beginning. NOT_FOUND: the
 * filter names a batch that does not exist. */
enum status walk_start(struct walk *w, int64_t after, struct err *err) MUST_USE;

/* Adds jobs to the table until it is full, all ids are searched, or `limit_us` have passed (0 = no
 * bound). Blocks for that long, and for the last step, which takes about an eighth of it. */
enum status walk_on(struct walk *w, int64_t limit_us, struct err *err) MUST_USE;

/* The `after` with which another walk goes on. */
int64_t walk_after(const struct walk *w);

/* Hands the jobs found so far to the caller, who releases the table; its columns stay those of
 * `w`. */
struct table walk_take(struct walk *w);

#endif
