/* SPDX-License-Identifier: Apache-2.0
 *
 * What a DBA may have set for the database of a drawn world before claimd came: paths, timeouts,
 * levels, formats, planner options; and functions of others in the schema `public` whose names are
 * those of PostgreSQL's own. */
#ifndef CLAIMD_TESTS_CHAOS_DRAWN_DBA_H
#define CLAIMD_TESTS_CHAOS_DRAWN_DBA_H

#include "base/rand.h"
#include "chaos/session.h"

#define DRAWN_DBA_MAX 8

/* A bit for each; 0 = nothing, as in most worlds. */
unsigned drawn_dba_draw(struct rand *r);
void drawn_dba_print(unsigned which); /* nothing if there is nothing */
/* Before the daemons connect. */
enum status drawn_dba_set(unsigned which, struct session *sql, struct err *err) MUST_USE;
/* How often one of the functions in `public` was run. */
enum status drawn_dba_trapped(unsigned which, struct session *sql, int64_t *ret_count,
                              struct err *err) MUST_USE;

#endif
