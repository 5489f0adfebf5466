/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads sql/functions into a database: a file is loaded if its text differs from the one that was
 * loaded last. A function that was edited by hand stays until its file changes or all files are
 * loaded. The schema must be at version FUNCTIONS_SINCE or newer. The functions that load must be
 * called within a transaction, as the owner of the schema. */
#ifndef CLAIMD_STORE_FUNCTIONS_H
#define CLAIMD_STORE_FUNCTIONS_H

#include "store/admin.h"

#include <stdbool.h>

#define FUNCTIONS_SINCE 23

/* Finds out whether a load would change anything. Only reads; needs no transaction. */
enum status functions_differ(struct admin *a, bool *ret_differ, struct err *err) MUST_USE;

/* Loads the files. *ret_count: how many were loaded. CONFLICT: the functions there are those of a
 * newer release and differ from ours. */
enum status functions_load(struct admin *a, bool even_unchanged, int *ret_count,
                           struct err *err) MUST_USE;

/* Loads the functions of the previous release, even over newer ones; any release may load its own
 * after that. */
enum status functions_load_before(struct admin *a, struct err *err) MUST_USE;

#endif
