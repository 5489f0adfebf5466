/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for jobs that a filter chooses: walks the ids from the newest down, range by range. A range
 * grows while it is quickly read, so that tables of any size are looked at in bounded steps. */
#ifndef CLAIMD_CTL_JOBS_WALK_H
#define CLAIMD_CTL_JOBS_WALK_H

#include "base/text.h"
#include "ctl/core/table_text.h"
#include "ctl/options/filter.h"

struct walk {
    struct admin *admin; /* the caller's */
    struct filter filter;
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct text wanted; /* array literal of what is only read when asked for */
    struct table table; /* what was found */
    int64_t limit;      /* the caller's: of the table's rows */
    int64_t next;       /* the highest id not looked at yet; 0 = all were */
    int64_t last_id;    /* of the last job found */
    bool is_cut;        /* the time was over */
};

#define WALK(an_admin, a_limit)                                                                \
    {                                                                                          \
        .admin = (an_admin), .wanted = TEXT_INIT((size_t)64 << 10), .table = {.name = "jobs"}, \
        .limit = (a_limit)                                                                     \
    }
void walk_release(struct walk *w);

/* "id,kind"; NULL = the standard ones. INVALID: unknown, or twice. */
enum status walk_columns(struct walk *w, const char *list, struct err *err) MUST_USE;

/* From below this id on; INT64_MAX = from the newest on. NOT_FOUND: the filter names a batch that
 * is not there. */
enum status walk_start(struct walk *w, int64_t after, struct err *err) MUST_USE;

/* Adds to the table until it is full, all was looked at or `limit_us` are over (0 = no bound).
 * Blocks for that long. */
enum status walk_on(struct walk *w, int64_t limit_us, struct err *err) MUST_USE;

/* What was found becomes the caller's, who releases it; its columns are those of `w`. */
struct table walk_take(struct walk *w);

#endif
