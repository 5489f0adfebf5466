/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload handlers: compares programs as handlers with a plugin, and with floors: the least that
 * such a program must cost. */
#ifndef CLAIMD_BENCH_HANDLERS_H
#define CLAIMD_BENCH_HANDLERS_H

#include "bench/cluster.h"

#define HANDLERS_PYTHON "/usr/bin/python3" /* Debian's, as the other systems have it */
#define HANDLERS_ONCE "/bin/true"

/* ---- handlers_floor.c ---- */

/* Measures the CPU per job of the Python program alone, which reads the lines of `jobs` jobs from a
 * file. */
enum status handlers_floor_python(const struct cluster *c, int64_t jobs, double *ret_us,
                                  struct err *err) MUST_USE;

/* Measures how many times a second `processes` processes together can start HANDLERS_ONCE and wait
 * for its end, and the CPU per start. */
enum status handlers_floor_once(struct cluster *c, size_t processes, int64_t starts,
                                double *ret_per_s, double *ret_us, struct err *err) MUST_USE;

#endif
