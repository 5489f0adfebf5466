/* SPDX-License-Identifier: Apache-2.0
 *
 * All that the folder of a run knows of one job. */
#ifndef CLAIMD_TESTS_CHAOS_TIMELINE_H
#define CLAIMD_TESTS_CHAOS_TIMELINE_H

#include "chaos/folder.h"

/* By its id, or by its number in the books where there is no id. */
void timeline_print(const struct folder *f, int64_t job, int64_t n);

#endif
