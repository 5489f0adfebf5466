/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema's version: applied and undone step by step under a lock, so that two `claimctl db
 * migrate` at once do no harm; and the check that every daemon makes at its start. Migrations are
 * in sql/migrations, embedded; so are functions, in sql/functions, which are loaded together with
 * the last migration, or in a step of their own when only they have changed (store/functions.h).
 *
 * A step is one transaction, and may have parts after it that are one statement each and can't be
 * in one, such as an index that is made while everybody works. A step that was interrupted goes on
 * with the part that was. The fleet goes on meanwhile: a table's lock that does not come within
 * half a second is given up and asked for again. */
#ifndef CLAIMD_STORE_MIGRATE_H
#define CLAIMD_STORE_MIGRATE_H

#include "store/pg/pg.h"

struct sql_migration;

/* The last version that this program knows. */
int migrate_known_version(void);

/* NULL outside 1…migrate_known_version(). */
const struct sql_migration *migrate_get(int version);

/* These block, each step's transaction at most about `timeout_us` (waiting for locks included),
 * each further part at most 12 h. TIMEOUT and UNAVAILABLE: that step did not happen; UNKNOWN: look
 * at the version again. Run them as a superuser or as a role that may create roles and schemas. */

/* 0 = no schema yet. */
enum status migrate_version(const char *conninfo, int64_t timeout_us, int *ret_version,
                            struct err *err) MUST_USE;

/* A migration, or {.name = "functions"}: functions were loaded alone. */
typedef void migrate_step_cb(void *ctx, const struct sql_migration *done);

/* Applies what is missing, in order. CONFLICT: the schema is newer than this program, or functions
 * are. */
enum status migrate_up(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                       void *ctx, struct err *err) MUST_USE;

/* After migrate_up(): loads all functions again, even over what somebody has made of them. */
enum status migrate_functions(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                              void *ctx, struct err *err) MUST_USE;

/* Undoes the last one applied, with its data, and loads the functions of the release before.
 * NOT_FOUND: there is none. */
enum status migrate_down(const char *conninfo, int64_t timeout_us, migrate_step_cb *on_step,
                         void *ctx, struct err *err) MUST_USE;

/* What a schema says of itself. Programs that were built for `oldest_program` up to `version` work
 * with it (B40): what a migration adds stays unused until the first job needs it, and that job
 * raises `oldest_program`. */
struct schema_version {
    int version; /* 0 = no schema */
    int oldest_program;
    int part; /* parts that are done of the next step up */
};

/* May this program work with that schema? CONFLICT: no; the text says what to run. */
enum status migrate_compare(struct schema_version schema, struct err *err) MUST_USE;

/* Asynchronous, for daemons: the same question about the schema that is there. LIMIT, NOMEM,
 * UNAVAILABLE at once. */
typedef void migrate_check_cb(void *ctx, enum status st, const struct err *err);
enum status migrate_check(struct pg *pg, migrate_check_cb *done, void *ctx,
                          struct err *err) MUST_USE;

#endif
