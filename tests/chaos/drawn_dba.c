/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/drawn_dba.h"

#include <assert.h>
#include <stdio.h>

#define WORLDS_PERCENT 30
#define EACH_PERCENT 35

/* Each call of one of these functions is counted by a sequence, which survives a rollback. They
 * behave like PostgreSQL's own functions, so that nothing else reveals them. */
static const char hostile_sql[] =
    "CREATE SEQUENCE public.trapped; GRANT ALL ON SEQUENCE public.trapped TO public;"
    "CREATE FUNCTION public.array_position(text[], text) RETURNS integer LANGUAGE sql AS $$"
    " SELECT nextval('public.trapped'); SELECT pg_catalog.array_position($1, $2) $$;"
    "CREATE FUNCTION public.array_to_string(text[], text) RETURNS text LANGUAGE sql AS $$"
    " SELECT nextval('public.trapped'); SELECT pg_catalog.array_to_string($1, $2) $$;"
    "CREATE FUNCTION public.width_bucket(bigint, bigint[]) RETURNS integer LANGUAGE sql AS $$"
    " SELECT nextval('public.trapped'); SELECT pg_catalog.width_bucket($1, $2) $$;"
    "GRANT USAGE ON SCHEMA public TO public";

static const struct {
    const char *name;
    const char *sql;
} settings[] = {
    {"search_path", "ALTER DATABASE claimd SET search_path = app, public"},
    {"synchronous_commit=off", "ALTER DATABASE claimd SET synchronous_commit = off"},
    {"synchronous_commit=local", "ALTER DATABASE claimd SET synchronous_commit = local"},
    {"timeouts", "ALTER DATABASE claimd SET statement_timeout = '20 s';"
                 "ALTER DATABASE claimd SET lock_timeout = '2 s';"
                 "ALTER DATABASE claimd SET idle_in_transaction_session_timeout = '10 s'"},
    {"isolation", "ALTER DATABASE claimd SET default_transaction_isolation = 'repeatable read'"},
    {"formats", "ALTER DATABASE claimd SET datestyle = 'German';"
                "ALTER DATABASE claimd SET intervalstyle = 'iso_8601';"
                "ALTER DATABASE claimd SET bytea_output = 'escape';"
                "ALTER DATABASE claimd SET extra_float_digits = 0;"
                "ALTER ROLE chaos_worker SET timezone = 'Asia/Kathmandu';"
                "ALTER ROLE chaos_scheduler SET timezone = 'America/St_Johns'"},
    {"planner", "ALTER DATABASE claimd SET plan_cache_mode = force_generic_plan;"
                "ALTER DATABASE claimd SET enable_indexscan = off;"
                "ALTER DATABASE claimd SET jit_above_cost = 0"},
    {"hostile_public", hostile_sql},
};

#define HOSTILE (1U << (ARRAY_COUNT(settings) - 1))

static_assert(ARRAY_COUNT(settings) == DRAWN_DBA_MAX, "a bit for each");

unsigned drawn_dba_draw(struct rand *r)
{
    unsigned which = 0;
    bool has_some = rand_below(r, 100) < WORLDS_PERCENT;
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        bool is_drawn = rand_below(r, 100) < EACH_PERCENT;
        which |= has_some && is_drawn ? 1U << i : 0;
    }
    return which;
}

void drawn_dba_print(unsigned which)
{
    if (which == 0) {
        return;
    }
    (void)printf("  database:");
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        (void)printf("%s%s", (which & 1U << i) != 0 ? " " : "",
                     (which & 1U << i) != 0 ? settings[i].name : "");
    }
    (void)printf("\n");
}

enum status drawn_dba_set(unsigned which, struct session *sql, struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        if ((which & 1U << i) == 0) {
            continue;
        }
        enum status st = session_run(sql, settings[i].sql, NULL, 0, NULL, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s", settings[i].name);
            return st;
        }
    }
    return STATUS_OK;
}

enum status drawn_dba_trapped(unsigned which, struct session *sql, int64_t *ret_count,
                              struct err *err)
{
    *ret_count = 0;
    return (which & HOSTILE) == 0
               ? STATUS_OK
               : session_i64(sql, ret_count, err,
                             "SELECT CASE WHEN is_called THEN last_value ELSE 0 END"
                             " FROM public.trapped");
}
