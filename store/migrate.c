/* SPDX-License-Identifier: Apache-2.0 */
#include "store/migrate.h"

#include "sql/queries.h"
#include "store/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX 256

/* Any number that nobody else uses: "claimd" in ASCII. */
#define LOCK_SQL "SELECT pg_advisory_xact_lock(109317141917028)"

/* Whoever runs it: what a migration makes belongs to the role that has the rest. The first one has
 * yet to make that role. */
#define AS_OWNER_SQL                   \
    "SET LOCAL ROLE claimd_scheduler;" \
    "SET LOCAL search_path = claimd, pg_catalog"

int migrate_known_version(void)
{
    return sql_migration_count;
}

const struct sql_migration *migrate_get(int version)
{
    return version >= 1 && version <= sql_migration_count ? &sql_migrations[version - 1] : NULL;
}

static void close_admin(struct admin **a)
{
    admin_close(*a);
}

/* The number that a query without parameters gives. */
static enum status read_number(struct admin *a, const char *sql, int *ret_number, struct err *err)
{
    const struct pg_statement statement = {.name = "", .sql = sql};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &statement, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = admin_row_count(rows) == 1 ? admin_value(rows, 0, 0) : NULL;
    *ret_number = text != NULL ? (int)strtol(text, NULL, 10) : 0;
    return STATUS_OK;
}

/* Without a schema admin_schema_version() would fail, and a transaction with it. */
static enum status read_version(struct admin *a, struct schema_version *ret, struct err *err)
{
    int has_schema = 0;
    enum status st =
        read_number(a, "SELECT (to_regclass('claimd.cluster') IS NOT NULL)::int", &has_schema, err);
    if (st != STATUS_OK || has_schema == 0) {
        *ret = (struct schema_version){.version = 0};
        return st;
    }
    return admin_schema_version(a, ret, err);
}

enum status migrate_version(const char *conninfo, int64_t timeout_us, int *ret_version,
                            struct err *err)
{
    CLEANUP(close_admin) struct admin *a = NULL;
    struct schema_version schema = {0};
    enum status st = admin_open(conninfo, timeout_us, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_version(a, &schema, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_version = schema.version;
    return STATUS_OK;
}

static enum status commit(struct admin *a, int new_version, struct err *err)
{
    char sql[SQL_MAX];
    enum status st = STATUS_OK;
    if (new_version > 0) {
        (void)snprintf(sql, sizeof sql, "UPDATE claimd.cluster SET schema_version = %d",
                       new_version);
        st = admin_exec(a, sql, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_exec(a, "COMMIT", err);
    bool is_lost = st == STATUS_TIMEOUT || st == STATUS_UNAVAILABLE;
    if (is_lost && err != NULL) {
        err->status = STATUS_UNKNOWN;
    }
    return is_lost ? STATUS_UNKNOWN : st;
}

static enum status apply(struct admin *a, const struct sql_migration *m, bool is_up,
                         struct err *err)
{
    bool has_owner = !is_up || m->version > 1;
    enum status st = has_owner ? admin_exec(a, AS_OWNER_SQL, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_exec(a, is_up ? m->up : m->down, err);
    if (st != STATUS_OK) {
        return st;
    }
    return commit(a, is_up ? m->version : m->version - 1, err);
}

/* One step up (+1) or down (−1) from the version that is found once the lock is held. *ret_done is
 * NULL when there was nothing to do. */
static enum status step(const char *conninfo, int64_t timeout_us, int direction,
                        const struct sql_migration **ret_done, struct err *err)
{
    CLEANUP(close_admin) struct admin *a = NULL;
    struct schema_version schema = {0};
    *ret_done = NULL;
    enum status st = admin_open(conninfo, timeout_us, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_exec(a, "BEGIN;" LOCK_SQL, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_version(a, &schema, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (schema.version > sql_migration_count) {
        return err_fail(err, STATUS_CONFLICT,
                        "the schema is at version %d, this build knows %d: use a newer one",
                        schema.version, sql_migration_count);
    }
    const struct sql_migration *m =
        migrate_get(direction > 0 ? schema.version + 1 : schema.version);
    if (m == NULL) {
        return STATUS_OK;
    }
    st = apply(a, m, direction > 0, err);
    if (st != STATUS_OK) {
        err_prefix(err, "migration %s", m->name);
        return st;
    }
    *ret_done = m;
    return STATUS_OK;
}

enum status migrate_up(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                       void *ctx, struct err *err)
{
    for (;;) {
        const struct sql_migration *done = NULL;
        enum status st = step(conninfo, timeout_us, 1, &done, err);
        if (st != STATUS_OK || done == NULL) {
            return st;
        }
        if (on_step != NULL) {
            on_step(ctx, done);
        }
    }
}

enum status migrate_down(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                         void *ctx, struct err *err)
{
    const struct sql_migration *done = NULL;
    enum status st = step(conninfo, timeout_us, -1, &done, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (done == NULL) {
        return err_fail(err, STATUS_NOT_FOUND, "no migration is applied");
    }
    if (on_step != NULL) {
        on_step(ctx, done);
    }
    return STATUS_OK;
}

/* ---- the daemons' check ---- */

struct check {
    migrate_check_cb *done;
    void *ctx;
};

enum status migrate_compare(struct schema_version schema, struct err *err)
{
    if (schema.oldest_program > sql_migration_count) {
        return err_fail(err, STATUS_CONFLICT,
                        "the schema is at version %d and needs programs that know %d, this build "
                        "knows %d: use a newer build, or roll back with the newer one",
                        schema.version, schema.oldest_program, sql_migration_count);
    }
    if (schema.version < sql_migration_count) {
        return err_fail(err, STATUS_CONFLICT,
                        "the schema is at version %d, this build needs %d: run `claimctl db "
                        "migrate` (next is %s)",
                        schema.version, sql_migration_count, sql_migrations[schema.version].name);
    }
    return STATUS_OK;
}

static void on_version(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct check *check = ctx;
    struct err why = {0};
    bool has_no_schema = strcmp(err->code, "42P01") == 0 || strcmp(err->code, "3F000") == 0;
    if (has_no_schema) {
        st = migrate_compare((struct schema_version){.version = 0}, &why);
    } else if (st == STATUS_OK) {
        struct schema_version schema = {.version = (int)pg_i64(results[0], 0, 0),
                                        .oldest_program = (int)pg_i64(results[0], 0, 4)};
        st = migrate_compare(schema, &why);
    } else {
        why = *err;
    }
    check->done(check->ctx, st, &why);
    free(check);
}

enum status migrate_check(struct pg *pg, migrate_check_cb *done, void *ctx, struct err *err)
{
    struct check *check = malloc(sizeof *check);
    if (check == NULL) {
        return err_fail(err, STATUS_NOMEM, "schema check");
    }
    *check = (struct check){.done = done, .ctx = ctx};
    enum status st = pg_send_one(pg, &SQL_CLUSTER_READ, NULL, on_version, check, err);
    if (st != STATUS_OK) {
        free(check);
    }
    return st;
}
