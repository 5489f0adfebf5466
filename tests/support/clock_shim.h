/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLAIMD_TESTS_CLOCK_SHIM_H
#define CLAIMD_TESTS_CLOCK_SHIM_H

#include <stdint.h>

/* Steps the wall clock of this process, if clock_shim.c is linked into it. */
void clock_shim_step(int64_t us);

#endif
