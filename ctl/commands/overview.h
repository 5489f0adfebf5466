/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that queues, workers, stats and top show. */
#ifndef CLAIMD_CTL_OVERVIEW_H
#define CLAIMD_CTL_OVERVIEW_H

#include "ctl/core/ctl.h"
#include "ctl/core/table.h"

/* Each fills a zeroed table, with its columns; the caller releases it. */
enum status overview_queues(struct admin *a, struct table *ret, struct err *err) MUST_USE;
enum status overview_depths(struct admin *a, struct table *ret, struct err *err) MUST_USE;
enum status overview_finished(struct admin *a, struct table *ret, struct err *err) MUST_USE;
/* One row; its last column is NULL where all is well. */
enum status overview_health(struct admin *a, struct table *ret, struct err *err) MUST_USE;
/* `is_all`: those that ended, too. */
enum status overview_workers(struct admin *a, bool is_all, struct table *ret,
                             struct err *err) MUST_USE;

#endif
