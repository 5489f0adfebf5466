/* SPDX-License-Identifier: Apache-2.0
 *
 * /metrics as Prometheus sees it: one GET over TCP, and the samples of a text. Blocks. */
#ifndef CLAIMD_CLUSTER_SCRAPE_H
#define CLAIMD_CLUSTER_SCRAPE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* GET from "host:port" (numbers); the body of a 200 is appended to `out`. UNAVAILABLE, TIMEOUT, or
 * INVALID: another answer. */
enum status scrape_get(const char *address, const char *path, int64_t timeout_us, struct buf *out,
                       struct err *err) MUST_USE;

/* One line `name{labels} value`; borrows from the text. */
struct scrape_sample {
    const char *name;
    size_t name_len;
    const char *labels; /* what is between the braces; its length may be 0 */
    size_t labels_len;
    double value;
};

/* The next sample from *at on; *at is moved behind it; false at the end. Comments are skipped. */
bool scrape_next(const char **at, struct scrape_sample *ret);

/* The sum over all samples of exactly this name (a histogram's with its suffix) whose labels
 * contain `label`, such as `outcome="retry"` (NULL: any); −1 when there is none. */
double scrape_sum(const char *text, const char *name, const char *label);

/* Does the text have the line "# TYPE name type"? */
bool scrape_has(const char *text, const char *name, const char *type);

#endif
