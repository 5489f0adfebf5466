/* SPDX-License-Identifier: Apache-2.0
 *
 * One private PostgreSQL per test program, one database per test, and blocking helpers over struct
 * pg for statements of the test itself. Failures are libcheck failures. */
#ifndef CLAIMD_TESTS_PG_FIXTURE_H
#define CLAIMD_TESTS_PG_FIXTURE_H

#include "base/clock.h"
#include "cluster/servers.h"
#include "store/pg/pg.h"

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

/* Returns a connection that is up, with the role `role` unless NULL (SET ROLE). */
struct pg *side_open(const char *role);

/* Runs one statement to its end. The reply has the status, and the first column of the first row as
 * text, or the message of the refusal. */
struct side_reply {
    enum status st;
    char code[6];
    char text[ERR_TEXT_MAX];
    int rows;
};
struct side_reply side_try(struct pg *pg, const char *sql);

/* As above, but the statement must succeed. */
struct side_reply side_run(struct pg *pg, const char *sql);
int64_t side_number(struct pg *pg, const char *sql); /* the first column is a number in text form */

/* Writes `PREPARE p(types of its header) AS …`. */
void side_write_prepare(struct pg *pg, const struct pg_statement *s, char *ret_sql, size_t size);

#define ASSERT_REFUSED(pg, sql, sqlstate, part)                                            \
    do {                                                                                   \
        struct side_reply r_ = side_try((pg), (sql));                                      \
        ck_assert_msg(strcmp(r_.code, (sqlstate)) == 0 && strstr(r_.text, (part)) != NULL, \
                      "%s: [%s] %s", (sql), r_.code, r_.text);                             \
    } while (0)

#endif
