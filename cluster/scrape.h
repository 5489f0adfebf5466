/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /metrics as Prometheus does: one GET over TCP, and the samples of its text. Blocks. */
#ifndef CLAIMD_CLUSTER_SCRAPE_H
#define CLAIMD_CLUSTER_SCRAPE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Sends GET to "host:port" (numbers) and appends the body of a 200 to `out`. Returns UNAVAILABLE,
 * TIMEOUT, or INVALID for any other answer. */
enum status scrape_get(const char *address, const char *path, int64_t timeout_us, struct buf *out,
                       struct err *err) MUST_USE;

/* One line `name{labels} value`. Points into the text. */
struct scrape_sample {
    const char *name;
    size_t name_len;
    const char *labels; /* the text between the braces; its length may be 0 */
    size_t labels_len;
    double value;
};

/* Reads the next sample at or after *at and moves *at behind it. Skips comments. Returns false at
 * the end. */
bool scrape_next(const char **at, struct scrape_sample *ret);

/* Returns the sum of all samples of exactly this name (for a histogram, with its suffix) whose
 * labels contain `label`, such as `outcome="retry"` (NULL: any); −1 if there are none. */
double scrape_sum(const char *text, const char *name, const char *label);

/* True if the text has the line "# TYPE name type". */
bool scrape_has(const char *text, const char *name, const char *type);

#endif
