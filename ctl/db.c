/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl db: migrate, status, finish, trust-clock, rollback. */
#include "ctl/core/ctl.h"
#include "ctl/core/human.h"
#include "ctl/core/table_text.h"
#include "sql/queries.h"
#include "store/migrate.h"

#define STEP_TIMEOUT_US (INT64_C(300) * 1000000) /* for one migration of a large table */

struct target {
    struct config config;
    char conninfo[2 * CONFIG_PATH_MAX];
    int version;
};

/* Reads the configuration and the version with the short deadline, to find out whether PostgreSQL
 * can be reached at all. */
static enum status find_target(const struct ctl *ctl, struct target *ret, struct err *err)
{
    enum status st = ctl_load_config(ctl, &ret->config, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_conninfo(&ret->config, ret->conninfo, sizeof ret->conninfo, err);
    if (st != STATUS_OK) {
        return st;
    }
    return migrate_version(ret->conninfo, ret->config.postgres.timeout_us, &ret->version, err);
}

struct steps {
    struct table table;
    struct err err; /* the first step that could not be noted */
};

static const struct table_column step_columns[] = {{"migration", CELL_TEXT}};

static void note_step(void *ctx, const struct sql_migration *done)
{
    struct steps *steps = ctx;
    const char *const values[] = {done->name};
    if (table_add(&steps->table, values, &steps->err) != STATUS_OK) {
        steps->err.status = STATUS_NOMEM; /* the step itself has been done */
    }
}

static enum status print_steps(const struct ctl *ctl, struct steps *steps, const char *what,
                               struct err *err)
{
    const struct table *const tables[] = {&steps->table};
    if (ctl->is_json) {
        return tables_print(tables, 1, true, ctl->out, err);
    }
    for (size_t i = 0; i < steps->table.row_count; i++) {
        (void)fprintf(ctl->out, "%s %s\n", what, steps->table.cells[i]);
    }
    if (steps->table.row_count == 0) {
        (void)fprintf(ctl->out, "nothing to do: the schema is at version %d\n",
                      migrate_known_version());
    }
    return STATUS_OK;
}

static enum status migrate(struct ctl *ctl, bool all_functions, struct target *t,
                           struct steps *steps, struct err *err)
{
    enum status st = find_target(ctl, t, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = migrate_up(t->conninfo, STEP_TIMEOUT_US, note_step, steps, err);
    if (st == STATUS_OK && all_functions) {
        st = migrate_functions(t->conninfo, STEP_TIMEOUT_US, note_step, steps, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return print_steps(ctl, steps, "applied", err);
}

enum status db_migrate(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct target target;
    struct steps steps = {.table = TABLE("applied", step_columns)};
    bool all_functions = ctl_value(args, "functions") != NULL;
    enum status st = migrate(ctl, all_functions, &target, &steps, err);
    explicit_bzero(target.conninfo, sizeof target.conninfo);
    table_release(&steps.table);
    return st;
}

static enum status roll_back(struct ctl *ctl, bool is_sure, struct target *t, struct steps *steps,
                             struct err *err)
{
    enum status st = find_target(ctl, t, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct sql_migration *last = migrate_get(t->version);
    if (last != NULL && !is_sure) {
        return err_fail(err, STATUS_INVALID,
                        "this undoes %s and deletes its data; add --yes to confirm", last->name);
    }
    st = migrate_down(t->conninfo, STEP_TIMEOUT_US, note_step, steps, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_steps(ctl, steps, "undone", err);
}

static enum status print_finished(const struct ctl *ctl, const char *version, struct err *err)
{
    static const struct table_column columns[] = {{"oldest_program", CELL_NUMBER}};
    auto_table struct table table = TABLE("upgrade", columns);
    const struct table *const tables[] = {&table};
    if (!ctl->is_json) {
        (void)fprintf(ctl->out, "programs must be built for version %s of the schema from now on\n",
                      version);
        return STATUS_OK;
    }
    enum status st = table_add(&table, &version, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, true, ctl->out, err);
}

enum status db_finish(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(a, &SQL_ADMIN_FINISH_UPGRADE, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_finished(ctl, admin_value(rows, 0, 0), err);
}

static enum status print_clock(const struct ctl *ctl, const char *clock, struct err *err)
{
    static const struct table_column columns[] = {{"postgresql", CELL_TEXT}};
    auto_table struct table table = TABLE("clock", columns);
    const struct table *const tables[] = {&table};
    if (!ctl->is_json) {
        (void)fprintf(ctl->out, "history is deleted by PostgreSQL's clock, which says %s\n", clock);
        return STATUS_OK;
    }
    enum status st = table_add(&table, &clock, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, true, ctl->out, err);
}

enum status db_trust_clock(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    char clock[HUMAN_TIME_MAX];
    int64_t now_us = 0;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_now(a, &now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    human_iso(now_us, clock);
    if (ctl_value(args, "yes") == NULL) {
        return err_fail(
            err, STATUS_INVALID,
            "PostgreSQL's clock says %s, and jobs that are old by it will be deleted; add --yes "
            "to confirm",
            clock);
    }
    st = verb_written(admin_query(a, &SQL_ADMIN_TRUST_CLOCK, NULL, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_clock(ctl, clock, err);
}

enum status db_rollback(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct target target;
    struct steps steps = {.table = TABLE("undone", step_columns)};
    enum status st = roll_back(ctl, ctl_value(args, "yes") != NULL, &target, &steps, err);
    explicit_bzero(target.conninfo, sizeof target.conninfo);
    table_release(&steps.table);
    return st;
}

enum status db_status(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    static const struct table_column columns[] = {
        {"version", CELL_NUMBER}, {"migration", CELL_TEXT}, {"applied", CELL_BOOL}};
    struct target target;
    auto_table struct table table = TABLE("migrations", columns);
    enum status st = find_target(ctl, &target, err);
    explicit_bzero(target.conninfo, sizeof target.conninfo);
    if (st != STATUS_OK) {
        return st;
    }
    for (int v = 1; v <= migrate_known_version(); v++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", v);
        const char *const values[] = {number, migrate_get(v)->name,
                                      v <= target.version ? "t" : "f"};
        st = table_add(&table, values, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    const struct table *const tables[] = {&table};
    st = tables_print(tables, 1, ctl->is_json, ctl->out, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (target.version > migrate_known_version()) {
        return err_fail(err, STATUS_CONFLICT,
                        "the schema is at version %d, this claimctl knows %d: use a newer one",
                        target.version, migrate_known_version());
    }
    return STATUS_OK;
}
