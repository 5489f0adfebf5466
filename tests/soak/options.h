/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command line of claimd-soak says. */
#ifndef CLAIMD_TESTS_SOAK_OPTIONS_H
#define CLAIMD_TESTS_SOAK_OPTIONS_H

#include "base/err.h"
#include "cluster/servers.h"

#include <stdint.h>

/* A mistake that the run must report. `number`: of base/bug.h; 0 = it is one of the database, which
 * every build can have. `sql`: makes it, or the mix that brings it out. `stops_until_moved`:
 * stopped workers go on as soon as a job of theirs runs elsewhere, and not after a time that was
 * drawn. */
struct soak_bug {
    const char *name;
    int number;
    const char *sql;
    bool stops_until_moved;
};

struct soak_options {
    int64_t jobs;
    int64_t backlog; /* 0 = none: no soak then */
    uint64_t seed;
    const struct soak_bug *bug;   /* NULL = none */
    char folder[SERVER_PATH_MAX]; /* of the run; "" = a new one below $TMPDIR */
    bool has_programs;            /* half of the jobs have handlers that are programs */
    bool is_help;
};

/* INVALID: names the argument and what is allowed. */
enum status soak_options_read(int argc, char *const *argv, struct soak_options *ret,
                              struct err *err) MUST_USE;
const char *soak_options_usage(void);

#endif
