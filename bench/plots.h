/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of what `all` has measured. */
#ifndef CLAIMD_BENCH_PLOTS_H
#define CLAIMD_BENCH_PLOTS_H

#include <jansson.h>

/* Writes throughput, scale and start (.dat) into the folder, as far as the results have them, and
 * draws each as .svg, if there is gnuplot. */
void plots_draw(const char *folder, const json_t *results);

#endif
