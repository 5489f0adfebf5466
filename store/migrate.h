/* SPDX-License-Identifier: Apache-2.0
 *
 * Migrations of the schema: they are applied and undone step by step under a lock, so that two
 * `claimctl db migrate` at once are harmless. The check that every daemon makes when it starts is
 * here, too. The migrations are in sql/migrations, embedded; so are the functions, in
 * sql/functions, which are loaded together with the last migration, or in a step of their own if
 * only they have changed (store/functions.h).
 *
 * A step is one transaction, which may be followed by parts that are a single statement each and
 * can't run in a transaction, such as an index built concurrently. A step that was interrupted
 * continues with the part that was interrupted. The daemons keep working meanwhile: a table lock
 * that is not granted within half a second is given up and requested again. */
#ifndef CLAIMD_STORE_MIGRATE_H
#define CLAIMD_STORE_MIGRATE_H

#include "store/pg/pg.h"

struct sql_migration;

/* Returns the latest version that this program knows. */
int migrate_known_version(void);

/* Returns NULL outside 1…migrate_known_version(). */
const struct sql_migration *migrate_get(int version);

/* These functions block. The transaction of each step takes at most about `timeout_us`, including
 * waits for locks; each further part takes at most 12 h. TIMEOUT and UNAVAILABLE: that step did not
 * happen; UNKNOWN: check the version again. Run them as a superuser or as a role that may create
 * roles and schemas. */

/* Reads the version of the schema; 0 = no schema yet. */
enum status migrate_version(const char *conninfo, int64_t timeout_us, int *ret_version,
                            struct err *err) MUST_USE;

/* Called after a step: `done` is a migration, or {.name = "functions"} if only functions were
 * loaded. */
typedef void migrate_step_cb(void *ctx, const struct sql_migration *done);

/* Applies the missing migrations, in order. CONFLICT: the schema or the functions are newer than
 * this program. */
enum status migrate_up(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                       void *ctx, struct err *err) MUST_USE;

/* Loads all functions again, even those that were edited by hand. Call it after migrate_up(). */
enum status migrate_functions(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                              void *ctx, struct err *err) MUST_USE;

/* Undoes the migration that was applied last, with its data, and loads the functions of the
 * previous release. NOT_FOUND: no migration is applied. */
enum status migrate_down(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                         void *ctx, struct err *err) MUST_USE;

/* The versions that a schema records about itself. Programs that were built for `oldest_program` up
 * to `version` work with it (B40): additions by a migration stay unused until the first job needs
 * them, and that job raises `oldest_program`. */
struct schema_version {
    int version; /* 0 = no schema */
    int oldest_program;
    int part; /* finished parts of the next step up */
};

/* Checks whether this program may work with that schema. CONFLICT: it may not; the text says which
 * command to run. */
enum status migrate_compare(struct schema_version schema, struct err *err) MUST_USE;

/* The same check of the schema in the database, asynchronous, for daemons. LIMIT, NOMEM,
 * UNAVAILABLE are returned at once. */
typedef void migrate_check_cb(void *ctx, enum status st, const struct err *err);
enum status migrate_check(struct pg *pg, migrate_check_cb *done, void *ctx,
                          struct err *err) MUST_USE;

#endif
