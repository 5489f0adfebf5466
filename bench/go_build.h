/* SPDX-License-Identifier: Apache-2.0
 *
 * Go programs for comparison. */
#ifndef CLAIMD_BENCH_GO_BUILD_H
#define CLAIMD_BENCH_GO_BUILD_H

#include "base/err.h"

#include <stddef.h>

/* Builds the module in `source` as dir/name. Everything that it fetches and builds lies in
 * `dir`/go, and goes with it. UNAVAILABLE without Go or its module proxy, with the reason. Blocks
 * for minutes. */
enum status go_build(const char *source, const char *dir, const char *name, char *ret_program,
                     size_t size, struct err *err) MUST_USE;

#endif
