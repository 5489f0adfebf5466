/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces a correct statement by that of a seeded bug (base/bug.h). */
#ifndef CLAIMD_STORE_SEEDED_H
#define CLAIMD_STORE_SEEDED_H

#include "base/bug.h"
#include "sql/statement.h"

#ifdef CLAIMD_SEEDED_BUGS
const struct pg_statement *seeded_statement(const struct pg_statement *right);
#else
#define seeded_statement(right) (right)
#endif

#endif
