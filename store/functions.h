/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of sql/functions in a database: a file is loaded if its text
 * differs from what was loaded last. A function that was edited by hand stays until its file
 * changes, or until all are loaded. The schema is at version FUNCTIONS_SINCE or newer. What loads
 * does so within a transaction of the caller, as the owner of the schema. */
#ifndef CLAIMD_STORE_FUNCTIONS_H
#define CLAIMD_STORE_FUNCTIONS_H

#include "store/admin.h"

#include <stdbool.h>

#define FUNCTIONS_SINCE 23

/* Would a load change something? Reads only, outside of a transaction as well. */
enum status functions_differ(struct admin *a, bool *ret_differ, struct err *err) MUST_USE;

/* *ret_count: the files that were loaded. CONFLICT: those of a newer release are there, and differ
 * from ours. */
enum status functions_load(struct admin *a, bool even_unchanged, int *ret_count,
                           struct err *err) MUST_USE;

/* Those of the release before, over ours or newer ones; any release may load its own after that. */
enum status functions_load_before(struct admin *a, struct err *err) MUST_USE;

#endif
