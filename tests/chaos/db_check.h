/* SPDX-License-Identifier: Apache-2.0
 *
 * check.jsonl: the violations that `claimctl db verify` finds in the database of a run (K10). */
#ifndef CLAIMD_TESTS_CHAOS_DB_CHECK_H
#define CLAIMD_TESTS_CHAOS_DB_CHECK_H

#include "chaos/world.h"

/* Writes one line for each violation. Blocks until the check is done, 120 s at most. */
enum status db_check_export(struct world *w, struct err *err) MUST_USE;

#endif
