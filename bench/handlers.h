/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload handlers: programs as handlers, beside a plugin and beside what they can't be better
 * than. */
#ifndef CLAIMD_BENCH_HANDLERS_H
#define CLAIMD_BENCH_HANDLERS_H

#include "bench/cluster.h"

#define HANDLERS_PYTHON "/usr/bin/python3" /* Debian's, as the other systems have it */
#define HANDLERS_ONCE "/bin/true"

/* ---- handlers_floor.c ---- */

/* CPU per job of the Python program alone, which reads the lines of so many jobs from a file. */
enum status handlers_floor_python(const struct cluster *c, int64_t jobs, double *ret_us,
                                  struct err *err) MUST_USE;

/* How often a second so many processes can start HANDLERS_ONCE and wait for its end, all together,
 * and their CPU for each start. */
enum status handlers_floor_once(struct cluster *c, size_t processes, int64_t starts,
                                double *ret_per_s, double *ret_us, struct err *err) MUST_USE;

#endif
