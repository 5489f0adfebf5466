/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints everything in the folder of a run about one job. */
#ifndef CLAIMD_TESTS_CHAOS_TIMELINE_H
#define CLAIMD_TESTS_CHAOS_TIMELINE_H

#include "chaos/folder.h"

/* Finds the job by its id, or by its number in the books if there is no id. */
void timeline_print(const struct folder *f, int64_t job, int64_t n);

#endif
