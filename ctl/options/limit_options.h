/* SPDX-License-Identifier: Apache-2.0
 *
 * The options --running and --rate of a queue, a kind and a key, and --max-open of a queue. */
#ifndef CLAIMD_CTL_LIMIT_OPTIONS_H
#define CLAIMD_CTL_LIMIT_OPTIONS_H

#include "ctl/core/ctl.h"

#define KEY_RUNNING_MAX 1000 /* as of the key of a kind */

struct limit_options {
    const char *running; /* as they were given; NULL: not */
    const char *rate;
    const char *max_open;
    char starts[16];
    char per[16]; /* an interval */
};

/* They take the name and the number; `rate` the interval besides. */
struct limit_statements {
    const struct pg_statement *running;
    const struct pg_statement *rate;
    const struct pg_statement *max_open; /* NULL: there is no such limit */
};

/* "50/m", as --rate and files say it. */
bool limit_rate_is_valid(const char *rate, int64_t *ret_starts, char *ret_unit);

/* One of them must be given. */
enum status limit_options_read(const struct ctl_args *args, int64_t running_max,
                               struct limit_options *ret, struct err *err) MUST_USE;
enum status limit_options_set(struct admin *a, const char *name, const struct limit_options *l,
                              const struct limit_statements *statements, struct err *err) MUST_USE;

#endif
