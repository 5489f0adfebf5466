/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings that a DBA may have made for the database of a drawn world before claimd was installed:
 * paths, timeouts, isolation levels, formats, planner options; and foreign functions in the schema
 * `public` with the names of PostgreSQL's own. */
#ifndef CLAIMD_TESTS_CHAOS_DRAWN_DBA_H
#define CLAIMD_TESTS_CHAOS_DRAWN_DBA_H

#include "base/rand.h"
#include "chaos/session.h"

#define DRAWN_DBA_MAX 8

/* Returns a bit for each setting; 0 = none, as in most worlds. */
unsigned drawn_dba_draw(struct rand *r);
void drawn_dba_print(unsigned which); /* prints nothing if there are none */
/* Applies the settings; call it before the daemons connect. */
enum status drawn_dba_set(unsigned which, struct session *sql, struct err *err) MUST_USE;
/* Counts how often one of the functions in `public` was run. */
enum status drawn_dba_trapped(unsigned which, struct session *sql, int64_t *ret_count,
                              struct err *err) MUST_USE;

#endif
