/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of claimd-soak. */
#ifndef CLAIMD_TESTS_SOAK_OPTIONS_H
#define CLAIMD_TESTS_SOAK_OPTIONS_H

#include "chaos/options.h"

#include <stdint.h>

/* A deliberate bug that the run must report. `number`: in base/bug.h; 0 = it is in the database, so
 * every build can have it. `sql`: makes the bug, or the mix of jobs that brings it out.
 * `stops_until_moved`: stopped workers are resumed as soon as one of their jobs runs elsewhere, not
 * after the planned time. */
struct soak_bug {
    const char *name;
    int number;
    const char *sql;
    bool stops_until_moved;
};

struct soak_options {
    struct options kit;
    int64_t jobs;
    int64_t backlog;            /* jobs; 0 = a soak, not a backlog */
    const struct soak_bug *bug; /* NULL = none */
};

/* INVALID: names the argument and what is allowed. */
enum status soak_options_read(int argc, char *const *argv, struct soak_options *ret,
                              struct err *err) MUST_USE;
const char *soak_options_usage(void);

#endif
