/* SPDX-License-Identifier: Apache-2.0 */
#include "store/migrate.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "sql/queries.h"
#include "store/admin.h"
#include "store/functions.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX 256
#define AGAIN_MS 100 /* between two tries to get the migration lock, or a table's */
#define ALONE_US (INT64_C(12) * 3600 * US_PER_S)

/* The number is arbitrary: "claimd" in ASCII. The lock is polled, not waited for, since a session
 * that waits inside a statement would block the concurrent build of an index. */
#define LOCK_SQL "SELECT pg_try_advisory_lock(109317141917028)::int"

/* A table lock that is not granted soon is given up and requested again, because all who queue
 * behind us wait as long as we do. Shorter than deadlock_timeout, so that no other session is
 * cancelled. */
#define BEGIN_SQL "BEGIN; SET LOCAL lock_timeout = '500ms'"

/* Makes the objects of a migration belong to the role that owns the others, whichever role runs it.
 * The first migration has yet to create that role. */
#define AS_OWNER_SQL                   \
    "SET LOCAL ROLE claimd_scheduler;" \
    "SET LOCAL search_path = claimd, pg_catalog, pg_temp"

/* Begins a part that is a single statement, run outside of a transaction while the daemons work: it
 * must be repeatable. All before the first such line is done in one transaction. */
#define PART_LINE "-- ---- part: alone ----\n"

/* Marks where a down migration loads the functions of the previous release; without this line, they
 * are loaded first. */
#define FUNCTIONS_LINE "-- ---- functions ----\n"

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

/* Runs a query without parameters and returns its only number. */
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

/* Checks first whether there is a schema: otherwise admin_schema_version() would fail, and abort
 * the transaction. */
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

/* Records the version, as the last statement of a transaction. */
static enum status note(struct admin *a, struct schema_version now, bool is_fresh, struct err *err)
{
    char sql[SQL_MAX];
    if (now.version == 0) {
        return STATUS_OK; /* the schema is gone */
    }
    if (now.version == 1 && now.part == 0) { /* the second migration adds the other columns */
        return admin_exec(a, "UPDATE claimd.cluster SET schema_version = 1", err);
    }
    (void)snprintf(sql, sizeof sql,
                   "UPDATE claimd.cluster SET schema_version = %d, schema_part = %d, "
                   "oldest_program = GREATEST(oldest_program, %d)",
                   now.version, now.part, is_fresh ? now.version : 0);
    return admin_exec(a, sql, err);
}

static enum status commit(struct admin *a, struct err *err)
{
    enum status st = admin_exec(a, "COMMIT", err);
    bool is_lost = st == STATUS_TIMEOUT || st == STATUS_UNAVAILABLE;
    if (is_lost && err != NULL) {
        err->status = STATUS_UNKNOWN;
    }
    return is_lost ? STATUS_UNKNOWN : st;
}

/* The step in progress, and how far it has come. */
struct step {
    struct admin *a;
    const struct sql_migration *migration;
    bool is_up;
    bool loads_all; /* loads all functions, even those that have not changed */
    bool is_fresh;  /* it began with an empty database, so there are no older programs */
    struct schema_version after;
    int64_t timeout_us;
    int64_t deadline_us;
};

/* Stands for a step that only loads functions. */
static const struct sql_migration only_functions = {.name = "functions"};

/* Works in the reverse order of the way up, so that what a migration adds is there as long as
 * functions use it. */
static enum status apply_down(struct step *s, const char *sql, struct err *err)
{
    const char *line = strstr(sql, FUNCTIONS_LINE);
    enum status st = STATUS_OK;
    if (s->migration->version < FUNCTIONS_SINCE) {
        return admin_exec(s->a, sql, err);
    }
    if (line != NULL) {
        autofree char *first = strndup(sql, (size_t)(line - sql));
        if (first == NULL) {
            return err_fail(err, STATUS_NOMEM, "a migration");
        }
        st = admin_exec(s->a, first, err);
    }
    if (st == STATUS_OK) {
        st = functions_load_before(s->a, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return admin_exec(s->a, line != NULL ? line + strlen(FUNCTIONS_LINE) : sql, err);
}

/* Applies `sql`, which may be NULL. The last version also loads the functions. */
static enum status apply_sql(struct step *s, const char *sql, struct err *err)
{
    int loaded = 0;
    enum status st = STATUS_OK;
    if (!s->is_up) {
        return apply_down(s, sql, err);
    }
    if (sql != NULL) {
        st = admin_exec(s->a, sql, err);
    }
    if (st != STATUS_OK || s->after.version != sql_migration_count) {
        return st;
    }
    return functions_load(s->a, s->loads_all, &loaded, err);
}

static enum status try_transaction(struct step *s, const char *sql, struct err *err)
{
    bool has_owner = !s->is_up || s->migration->version != 1;
    enum status st = admin_exec(s->a, BEGIN_SQL, err);
    if (st == STATUS_OK && has_owner) {
        st = admin_exec(s->a, AS_OWNER_SQL, err);
    }
    if (st == STATUS_OK) {
        st = apply_sql(s, sql, err);
    }
    if (st == STATUS_OK) {
        st = note(s->a, s->after, s->is_fresh, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return commit(s->a, err);
}

/* Repeats the transaction while other sessions hold locks, until the deadline. */
static enum status apply_transaction(struct step *s, const char *sql, struct err *err)
{
    for (;;) {
        struct err why = {0};
        enum status st = try_transaction(s, sql, &why);
        bool is_locked = strcmp(why.code, "55P03") == 0;
        if (is_locked && clock_boot_us() < s->deadline_us) {
            st = admin_exec(s->a, "ROLLBACK", err);
            if (st != STATUS_OK) {
                return st;
            }
            (void)poll(NULL, 0, AGAIN_MS);
            continue;
        }
        if (st != STATUS_OK && err != NULL) {
            *err = why;
        }
        return st;
    }
}

static enum status apply_alone(struct step *s, const char *sql, struct err *err)
{
    enum status st = admin_exec(s->a,
                                "SET ROLE claimd_scheduler; SET lock_timeout = 0;"
                                "SET search_path = claimd, pg_catalog, pg_temp",
                                err);
    if (st != STATUS_OK) {
        return st;
    }
    admin_set_timeout(s->a, ALONE_US);
    st = admin_exec(s->a, sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    admin_set_timeout(s->a, s->timeout_us);
    s->deadline_us = clock_boot_us() + s->timeout_us;
    return apply_transaction(s, NULL, err);
}

static enum status apply_part(struct step *s, int part, const char *sql, size_t len, bool is_last,
                              struct err *err)
{
    autofree char *text = strndup(sql, len);
    if (text == NULL) {
        return err_fail(err, STATUS_NOMEM, "a migration");
    }
    int version = s->migration->version;
    s->after = is_last ? (struct schema_version){.version = version}
                       : (struct schema_version){.version = version - 1, .part = part + 1};
    return part == 0 ? apply_transaction(s, text, err) : apply_alone(s, text, err);
}

/* Applies the parts, beginning with the one that an earlier try did not finish. */
static enum status apply_up(struct step *s, int parts_done, struct err *err)
{
    const char *sql = s->migration->up;
    enum status st = STATUS_OK;
    for (int part = 0; sql != NULL && st == STATUS_OK; part++) {
        const char *line = strstr(sql, PART_LINE);
        size_t len = line != NULL ? (size_t)(line - sql) : strlen(sql);
        if (part >= parts_done) {
            st = apply_part(s, part, sql, len, line == NULL, err);
        }
        sql = line != NULL ? line + strlen(PART_LINE) : NULL;
    }
    return st;
}

static enum status apply(struct step *s, int parts_done, struct err *err)
{
    if (s->migration == &only_functions) {
        s->after = (struct schema_version){.version = sql_migration_count};
        return apply_transaction(s, NULL, err);
    }
    if (s->is_up) {
        return apply_up(s, parts_done, err);
    }
    if (parts_done > 0) {
        return err_fail(err, STATUS_CONFLICT,
                        "migration %s is not finished: finish it first, by `claimctl db migrate`",
                        sql_migrations[s->migration->version].name);
    }
    s->after = (struct schema_version){.version = s->migration->version - 1};
    return apply_transaction(s, s->migration->down, err);
}

static enum status lock(struct admin *a, int64_t deadline_us, struct err *err)
{
    for (;;) {
        int has_lock = 0;
        enum status st = read_number(a, LOCK_SQL, &has_lock, err);
        if (st != STATUS_OK || has_lock != 0) {
            return st;
        }
        if (clock_boot_us() >= deadline_us) {
            return err_fail(err, STATUS_TIMEOUT, "another migration is running");
        }
        (void)poll(NULL, 0, AGAIN_MS);
    }
}

enum direction { DOWN, UP, UP_WITH_ALL_FUNCTIONS };

/* Finds the next migration; s->migration is NULL if there is nothing to do. */
static enum status find_migration(struct step *s, int version, enum direction direction,
                                  struct err *err)
{
    if (version > sql_migration_count) {
        return err_fail(err, STATUS_CONFLICT,
                        "the schema is at version %d, this build knows %d: use a newer one",
                        version, sql_migration_count);
    }
    s->migration = migrate_get(s->is_up ? version + 1 : version);
    if (version < sql_migration_count || !s->is_up) {
        return STATUS_OK;
    }
    bool differ = false;
    enum status st = functions_differ(s->a, &differ, err);
    s->loads_all = direction == UP_WITH_ALL_FUNCTIONS;
    s->migration = differ || s->loads_all ? &only_functions : NULL;
    return st;
}

/* Takes one step from the version that is found once the lock is held; the lock is held until the
 * session ends. *is_fresh becomes true on an empty database. *ret_done is NULL if there was nothing
 * to do. */
static enum status step(const char *conninfo, int64_t timeout_us, enum direction direction,
                        bool *is_fresh, const struct sql_migration **ret_done, struct err *err)
{
    CLEANUP(close_admin) struct admin *a = NULL;
    struct schema_version schema = {0};
    int64_t deadline_us = clock_boot_us() + timeout_us;
    *ret_done = NULL;
    enum status st = admin_open(conninfo, timeout_us, &a, err);
    if (st == STATUS_OK) {
        st = lock(a, deadline_us, err);
    }
    if (st == STATUS_OK) {
        st = read_version(a, &schema, err);
    }
    *is_fresh = *is_fresh || (st == STATUS_OK && schema.version == 0);
    struct step s = {.a = a,
                     .is_up = direction != DOWN,
                     .is_fresh = *is_fresh,
                     .timeout_us = timeout_us,
                     .deadline_us = deadline_us};
    if (st == STATUS_OK) {
        st = find_migration(&s, schema.version, direction, err);
    }
    if (st != STATUS_OK || s.migration == NULL) {
        return st;
    }
    st = apply(&s, schema.part, err);
    if (st != STATUS_OK) {
        err_prefix(err, "migration %s", s.migration->name);
        return st;
    }
    *ret_done = s.migration;
    return STATUS_OK;
}

enum status migrate_up(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                       void *ctx, struct err *err)
{
    bool is_fresh = false;
    for (;;) {
        const struct sql_migration *done = NULL;
        enum status st = step(conninfo, timeout_us, UP, &is_fresh, &done, err);
        if (st != STATUS_OK || done == NULL) {
            return st;
        }
        if (on_step != NULL) {
            on_step(ctx, done);
        }
    }
}

/* Takes the only step of migrate_functions() or migrate_down(). */
static enum status one_step(const char *conninfo, int64_t timeout_us, enum direction direction,
                            migrate_step_cb *on_step, void *ctx, struct err *err)
{
    const struct sql_migration *done = NULL;
    bool is_fresh = false;
    enum status st = step(conninfo, timeout_us, direction, &is_fresh, &done, err);
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

enum status migrate_functions(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                              void *ctx, struct err *err)
{
    return one_step(conninfo, timeout_us, UP_WITH_ALL_FUNCTIONS, on_step, ctx, err);
}

enum status migrate_down(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                         void *ctx, struct err *err)
{
    return one_step(conninfo, timeout_us, DOWN, on_step, ctx, err);
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
        return err_fail(err, STATUS_NOMEM, "no memory for the schema check");
    }
    *check = (struct check){.done = done, .ctx = ctx};
    enum status st = pg_send_one(pg, &SQL_CLUSTER_READ, NULL, on_version, check, err);
    if (st != STATUS_OK) {
        free(check);
    }
    return st;
}
