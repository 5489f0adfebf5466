/* SPDX-License-Identifier: Apache-2.0
 *
 * One private PostgreSQL per test program, one database per test, and a loop. Failures are libcheck
 * failures. */
#ifndef CLAIMD_TESTS_PG_FIXTURE_H
#define CLAIMD_TESTS_PG_FIXTURE_H

#include "base/clock.h"
#include "cluster/servers.h"
#include "store/pg/pg.h"
#include "support/sql.h"

#include <check.h>

#define LIMIT_US (120 * US_PER_S)

struct world {
    struct pg_server server;
    char dir[SERVER_PATH_MAX];
    uv_loop_t loop;
    char conninfo[SERVER_PATH_MAX]; /* of this test's database */
};
extern struct world world;

/* Called in main(): starts the server and fills the database `claimd_template` with all
 * migrations. */
int world_run(Suite *suite);

/* Checked fixtures: a copy of the template (or an empty database), and the loop. */
void world_setup(void);
void world_setup_empty(void);
void world_teardown(void);

/* Runs the loop until `expr` is true, or fails after LIMIT_US. */
#define RUN_UNTIL(expr)                                                            \
    do {                                                                           \
        int64_t end_ = clock_boot_us() + LIMIT_US;                                 \
        while (!(expr)) {                                                          \
            ck_assert_msg(clock_boot_us() < end_, "never became true: %s", #expr); \
            world_turn();                                                          \
        }                                                                          \
    } while (0)
void world_turn(void);

/* Returns a session for the code under test, as superuser, that is up. */
struct pg *world_pg(void);

/* Runs a statement in a session under test (a test's own statements: sql_run()). Returns the first
 * value of the first row, valid until the next call; "" for NULL or no row. */
const char *world_ask(struct pg *pg, const char *sql);

/* Writes `PREPARE p(types of its header) AS …`. */
void write_prepare(struct sql *s, const struct pg_statement *statement, char *ret_sql, size_t size);

#endif
