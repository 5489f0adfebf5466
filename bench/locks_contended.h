/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimd-bench locks`: contests for one lock, ours beside redsync's in the same rounds. */
#ifndef CLAIMD_BENCH_LOCKS_CONTENDED_H
#define CLAIMD_BENCH_LOCKS_CONTENDED_H

#include "bench/locks.h"

#include <jansson.h>

struct contended_options {
    int64_t seconds; /* of each contest */
    int64_t rounds;
    const char *only; /* those whose name has this; NULL = all */
    bool is_json;
};

/* Any of them; and any that redsync takes part in? */
bool contended_is_wanted(const char *only, bool *ret_with_rival);

/* Prints a table, or adds "contended" and goals to `result`. Blocks for about a minute per round
 * and three seconds. CONFLICT: sections overlapped. */
enum status contended_run(const struct locks_world *w, const struct contended_options *options,
                          json_t *result, struct err *err) MUST_USE;

#endif
