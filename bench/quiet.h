/* SPDX-License-Identifier: Apache-2.0
 *
 * Is anything else at work on this machine? Then what is measured says little. */
#ifndef CLAIMD_BENCH_QUIET_H
#define CLAIMD_BENCH_QUIET_H

#include "base/err.h"

/* Looks for three seconds; the share of all CPUs' time that was used, by others too that share the
 * hardware. `ret_who` names who used most. UNAVAILABLE: it can't be read. */
enum status quiet_look(double *ret_share, char *ret_who, size_t size, struct err *err) MUST_USE;

#endif
