/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pg_fixture.h"

#include "base/hash.h"
#include "sql/queries.h"
#include "store/admin.h"
#include "store/migrate.h"
#include "support/pg_template.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEMPLATE "claimd_template"
#define S_PER_DAY 86400

/* Rows that a test writes itself belong to today's programs. */
#define OF_TODAY_SQL                                               \
    "ALTER TABLE claimd.worker ALTER built_for SET DEFAULT 9999; " \
    "ALTER TABLE claimd.scheduler ALTER built_for SET DEFAULT 9999"

struct world world;

static enum status of_today(const char *conninfo, struct err *err)
{
    struct admin *a = NULL;
    enum status st = admin_open(conninfo, LIMIT_US, &a, err);
    if (st == STATUS_OK) {
        st = admin_exec(a, OF_TODAY_SQL, err);
    }
    admin_close(a);
    return st;
}

static uint32_t mix(uint32_t hash, const char *text)
{
    return hash * 31 + hash_bytes(text, strlen(text));
}

/* Names the data after all that migrate_up() runs, and the day whose partitions it makes. */
static void name_data(char *ret_name, size_t size)
{
    uint32_t hash = (uint32_t)(time(NULL) / S_PER_DAY);
    for (int version = 1; version <= migrate_known_version(); version++) {
        hash = mix(hash, migrate_get(version)->up);
    }
    for (const struct sql_functions *file = sql_functions; file->name != NULL; file++) {
        hash = mix(hash, file->digest);
    }
    (void)snprintf(ret_name, size, "schema-%08x", hash);
}

static enum status make_template(void *ctx, struct err *err)
{
    char conninfo[SERVER_PATH_MAX];
    (void)ctx;
    enum status st =
        pg_server_create_db(&world.server, TEMPLATE, NULL, conninfo, sizeof conninfo, err);
    if (st == STATUS_OK) {
        st = migrate_up(conninfo, LIMIT_US, NULL, NULL, err);
    }
    return st == STATUS_OK ? of_today(conninfo, err) : st;
}

static enum status start(struct err *err)
{
    char name[32];
    name_data(name, sizeof name);
    enum status st = dir_make(world.dir, sizeof world.dir, err);
    return st != STATUS_OK
               ? st
               : pg_template_start(world.dir, name, NULL, make_template, NULL, &world.server, err);
}

int world_run(Suite *suite)
{
    struct err err = {0};
    int code = EXIT_FAILURE;
    if (start(&err) == STATUS_OK) {
        code = suite_run(suite);
    } else {
        (void)fprintf(stderr, "no PostgreSQL: %s\n", err.msg);
    }
    pg_server_stop(&world.server);
    dir_remove(world.dir);
    return code;
}

static void setup(const char *template_name)
{
    struct err err = {0};
    char name[64];
    (void)snprintf(name, sizeof name, "test_%d", (int)getpid());
    enum status st = pg_server_create_db(&world.server, name, template_name, world.conninfo,
                                         sizeof world.conninfo, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(uv_loop_init(&world.loop), 0);
}

void world_setup(void)
{
    setup(TEMPLATE);
}

void world_setup_empty(void)
{
    setup(NULL);
}

void world_teardown(void)
{
    (void)uv_run(&world.loop, UV_RUN_DEFAULT); /* returns when every handle is closed */
    ck_assert_int_eq(uv_loop_close(&world.loop), 0);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop once, for at most 50 ms. */
void world_turn(void)
{
    uv_timer_t tick;
    uv_update_time(&world.loop); /* otherwise the timer may be due at once, and not end the poll */
    (void)uv_timer_init(&world.loop, &tick);
    (void)uv_timer_start(&tick, on_tick, 50, 0);
    (void)uv_run(&world.loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
}

struct pg *world_pg(void)
{
    const struct pg_options options = {.loop = &world.loop,
                                       .conninfo = world.conninfo,
                                       .application_name = "world",
                                       .timeout_us = LIMIT_US};
    struct pg *pg = NULL;
    ck_assert_int_eq(pg_open(&options, &pg, NULL), STATUS_OK);
    RUN_UNTIL(pg_is_up(pg));
    return pg;
}

struct answer {
    bool has_come;
    char text[ERR_TEXT_MAX];
};

static void on_answer(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct answer *answer = ctx;
    ck_assert_msg(st == STATUS_OK, "%s", err->msg);
    answer->has_come = true;
    if (pg_row_count(results[0]) > 0 && !pg_is_null(results[0], 0, 0)) {
        (void)snprintf(answer->text, sizeof answer->text, "%s", pg_text(results[0], 0, 0, NULL));
    }
}

const char *world_ask(struct pg *pg, const char *sql)
{
    static struct answer answer;
    const struct pg_statement statement = {.name = "", .sql = sql};
    answer = (struct answer){0};
    ck_assert_int_eq(pg_send_one(pg, &statement, NULL, on_answer, &answer, NULL), STATUS_OK);
    RUN_UNTIL(answer.has_come);
    return answer.text;
}

void write_prepare(struct sql *s, const struct pg_statement *statement, char *ret_sql, size_t size)
{
    size_t len = (size_t)snprintf(ret_sql, size, "PREPARE p");
    for (int i = 0; i < statement->type_count; i++) {
        len += (size_t)snprintf(ret_sql + len, size - len, "%s%s", i == 0 ? "(" : ", ",
                                sql_text(s, "SELECT format_type(%u, NULL)", statement->types[i]));
    }
    (void)snprintf(ret_sql + len, size - len, "%s AS %s", statement->type_count > 0 ? ")" : "",
                   statement->sql);
}
