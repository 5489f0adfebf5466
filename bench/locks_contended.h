/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimd-bench locks`: contests for one lock, with our clients and redsync's in the same
 * rounds. */
#ifndef CLAIMD_BENCH_LOCKS_CONTENDED_H
#define CLAIMD_BENCH_LOCKS_CONTENDED_H

#include "bench/locks.h"

#include <jansson.h>

struct contended_options {
    int64_t seconds; /* of each contest */
    int64_t rounds;
    const char *only; /* contests whose names contain this; NULL = all */
    bool is_json;
};

/* True if any contest is wanted; *ret_with_rival = redsync takes part in one of them. */
bool contended_is_wanted(const char *only, bool *ret_with_rival);

/* Prints a table, or adds "contended" and goals to `result`. Blocks for about a minute per round at
 * three seconds. CONFLICT: critical sections overlapped. */
enum status contended_run(const struct locks_world *w, const struct contended_options *options,
                          json_t *result, struct err *err) MUST_USE;

#endif
