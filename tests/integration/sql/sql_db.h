/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked fixtures of suites that query one database through one session of its owner. */
#ifndef CLAIMD_TESTS_SQL_DB_H
#define CLAIMD_TESTS_SQL_DB_H

#include "support/pg_fixture.h"

static struct pg *db;

static inline void setup(void)
{
    world_setup();
    db = side_open(NULL);
}

static inline void run(const char *sql)
{
    (void)side_run(db, sql);
}

/* Returns the first value of the result, valid until the next call. */
static inline const char *text(const char *sql)
{
    static struct side_reply reply;
    reply = side_run(db, sql);
    return reply.text;
}

static inline void teardown(void)
{
    pg_close(db);
    world_teardown();
}

#endif
