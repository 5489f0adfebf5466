/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds Go programs to compare with. */
#ifndef CLAIMD_BENCH_GO_BUILD_H
#define CLAIMD_BENCH_GO_BUILD_H

#include "base/err.h"

#include <stddef.h>

/* Names a folder, writable for all, in which downloads and builds of Go are kept for the next
 * run. */
#define GO_KEPT_ENV "BENCH_GO_KEPT"

/* Builds the module in `source` as dir/name. Downloads and builds are stored in `dir`/go and
 * removed with it; or in $BENCH_GO_KEPT/go, and kept. Returns UNAVAILABLE, with the reason, without
 * Go or its module proxy. Blocks for minutes. */
enum status go_build(const char *source, const char *dir, const char *name, char *ret_program,
                     size_t size, struct err *err) MUST_USE;

#endif
