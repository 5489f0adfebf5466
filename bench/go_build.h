/* SPDX-License-Identifier: Apache-2.0
 *
 * Go programs for comparison. */
#ifndef CLAIMD_BENCH_GO_BUILD_H
#define CLAIMD_BENCH_GO_BUILD_H

#include "base/err.h"

#include <stddef.h>

/* Where to keep what Go fetches and builds for the next run: a folder that all may write to. */
#define GO_KEPT_ENV "BENCH_GO_KEPT"

/* Builds the module in `source` as dir/name. Everything that it fetches and builds lies in
 * `dir`/go, and goes with it; or in $BENCH_GO_KEPT/go, and stays. UNAVAILABLE without Go or its
 * module proxy, with the reason. Blocks for minutes. */
enum status go_build(const char *source, const char *dir, const char *name, char *ret_program,
                     size_t size, struct err *err) MUST_USE;

#endif
