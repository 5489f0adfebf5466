/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked fixtures of suites that query one database through one session of its owner. */
#ifndef CLAIMD_TESTS_SQL_DB_H
#define CLAIMD_TESTS_SQL_DB_H

#include "support/pg_fixture.h"

static struct sql *db;

static inline void setup(void)
{
    world_setup();
    db = sql_open(world.conninfo);
}

static inline void run(const char *sql)
{
    sql_run(db, "%s", sql);
}

static inline const char *text(const char *sql)
{
    return sql_text(db, "%s", sql);
}

static inline void teardown(void)
{
    sql_close(db);
    world_teardown();
}

#endif
