/* SPDX-License-Identifier: Apache-2.0 */
#include "store/functions.h"

#include "sql/queries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, DIGEST, VERSION };

static enum status run(struct admin *a, const struct pg_statement *statement,
                       const char *const *params, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    return admin_query(a, statement, params, &rows, err);
}

static bool is_loaded(const struct admin_rows *rows, const struct sql_functions *file)
{
    for (int i = 0; i < admin_row_count(rows); i++) {
        const char *name = admin_value(rows, i, NAME);
        if (name != NULL && strcmp(name, file->name) == 0) {
            return strcmp(admin_value(rows, i, DIGEST), file->digest) == 0;
        }
    }
    return false;
}

enum status functions_differ(struct admin *a, bool *ret_differ, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    *ret_differ = false;
    enum status st = admin_query(a, &SQL_FUNCTIONS_READ, NULL, &rows, err);
    for (const struct sql_functions *file = sql_functions; st == STATUS_OK && file->name != NULL;
         file++) {
        *ret_differ = *ret_differ || !is_loaded(rows, file);
    }
    return st;
}

static enum status load(struct admin *a, const struct sql_functions *file, struct err *err)
{
    const char *const params[] = {file->name, file->digest, file->names};
    enum status st = admin_exec(a, file->sql, err);
    if (st == STATUS_OK) {
        st = run(a, &SQL_FUNCTIONS_NOTE, params, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s.sql", file->name);
    }
    return st;
}

/* Records that the functions there are those of `version`. */
static enum status end(struct admin *a, int version, struct err *err)
{
    char number[16];
    const char *const params[] = {number, sql_functions_names};
    (void)snprintf(number, sizeof number, "%d", version);
    return run(a, &SQL_FUNCTIONS_END, params, err);
}

static enum status refuse_newer(const struct admin_rows *rows, struct err *err)
{
    if (admin_row_count(rows) == 0) {
        return err_fail(err, STATUS_INTERNAL, "table claimd.cluster has no row");
    }
    long there = strtol(admin_value(rows, 0, VERSION), NULL, 10);
    if (there <= sql_functions_version) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_CONFLICT,
                    "the functions are of release %ld.%ld.%ld, and this claimctl has older ones: "
                    "use a newer one",
                    there / 1000000, there / 1000 % 1000, there % 1000);
}

enum status functions_load(struct admin *a, bool even_unchanged, int *ret_count, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    *ret_count = 0;
    enum status st = admin_query(a, &SQL_FUNCTIONS_READ, NULL, &rows, err);
    for (const struct sql_functions *file = sql_functions; st == STATUS_OK && file->name != NULL;
         file++) {
        if (is_loaded(rows, file) && !even_unchanged) {
            continue;
        }
        st = refuse_newer(rows, err);
        if (st == STATUS_OK) {
            st = load(a, file, err);
        }
        (*ret_count)++;
    }
    if (st != STATUS_OK || *ret_count == 0) {
        return st;
    }
    return end(a, sql_functions_version, err);
}

/* The files of the previous release revoke their functions only from the roles that it had. */
static const char revoke_from_new_roles[] =
    "DO $$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'claimd_web') THEN "
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA claimd FROM claimd_web; END IF; END $$";

enum status functions_load_before(struct admin *a, struct err *err)
{
    enum status st = admin_exec(a, revoke_from_new_roles, err);
    for (const struct sql_functions *file = sql_functions_before;
         st == STATUS_OK && file->name != NULL; file++) {
        st = load(a, file, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return end(a, 0, err);
}
