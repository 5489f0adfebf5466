/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/doctor/doctor.h"

#include "base/clock.h"
#include "base/parse.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"
#include "store/migrate.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>

#define PG_VERSION_MIN 140000
#define DAYS_AHEAD_MIN 3
#define DETAIL_MAX 1024

const struct table_column report_columns[REPORT_COLUMNS] = {
    {"result", CELL_TEXT}, {"check", CELL_TEXT}, {"detail", CELL_TEXT}, {"action", CELL_TEXT}};

void report_say(struct report *r, enum health health, const char *what, const char *action,
                const char *format, ...)
{
    assert(health == HEALTH_OK || action != NULL);
    static const char *const texts[] = {"ok", "warn", "FAIL"};
    char detail[DETAIL_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    const char *const values[] = {texts[health], what, detail, health == HEALTH_OK ? NULL : action};
    r->failures += health == HEALTH_FAIL;
    r->is_full = table_add(&r->table, values, NULL) != STATUS_OK || r->is_full;
}

/* Returns the pid of the backend that serves the next statement. */
static enum status backend_pid(struct admin *a, int *ret_pid, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_BACKEND_PID, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_pid = (int)strtol(admin_value(rows, 0, 0), NULL, 10);
    return STATUS_OK;
}

/* Behind a pooler, the server's pid differs from the one that the connection reported at its start.
 * If the pooler pools by transaction, the open transaction of another client takes our backend
 * away. */
static enum status check_pooling(struct report *r, const struct config *config, struct admin *a,
                                 struct err *err)
{
    int first = 0;
    int second = 0;
    auto_admin struct admin *other = NULL;
    enum status st = backend_pid(a, &first, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (first == admin_backend_pid(a)) {
        report_say(r, HEALTH_OK, "pooling", NULL, "direct connection");
        return STATUS_OK;
    }
    st = ctl_connect(config, true, &other, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_exec(other, "BEGIN; SELECT 1", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = backend_pid(a, &second, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (first == second) {
        report_say(r, HEALTH_OK, "pooling", NULL, "a pooler in session mode");
        return STATUS_OK;
    }
    report_say(r, HEALTH_FAIL, "pooling",
               "let postgres.conninfo name PostgreSQL itself, or set the pooler to session mode",
               "a pooler in transaction mode: prepared statements and LISTEN need a direct "
               "connection or session mode");
    return STATUS_OK;
}

int64_t doctor_number(const struct admin_rows *rows, int row, int column)
{
    const char *text = admin_value(rows, row, column);
    int64_t value = 0;
    enum status st = text == NULL
                         ? STATUS_INVALID
                         : parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, &value, NULL);
    return st == STATUS_OK ? value : 0;
}

static void check_hold(struct report *r, int64_t hold_us)
{
    if (hold_us > 0) {
        report_say(
            r, HEALTH_FAIL, "history",
            "correct PostgreSQL's clock; if it is right now: claimctl db trust-clock",
            "PostgreSQL's clock has jumped ahead: the leader deletes nothing for %.1f h more",
            (double)hold_us / (3600.0 * US_PER_S));
    }
}

static enum status check_cluster(struct report *r, struct admin *a, struct err *err)
{
    enum { DAYS_AHEAD, LIVE, STALE, LOCK_NODES, T_MAX, SWEEP_HOLD, TIMELINE };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_DOCTOR, NULL, &rows, err);
    if (st != STATUS_OK || admin_row_count(rows) != 1) {
        return st;
    }
    int64_t days = doctor_number(rows, 0, DAYS_AHEAD);
    report_say(r,
               days >= DAYS_AHEAD_MIN ? HEALTH_OK
               : days >= 1            ? HEALTH_WARN
                                      : HEALTH_FAIL,
               "history", "start claimd-scheduler: the leader creates the partitions",
               "%lld days ahead%s", (long long)(days < 0 ? 0 : days),
               days >= DAYS_AHEAD_MIN ? "" : ": does a scheduler run?");
    check_hold(r, doctor_number(rows, 0, SWEEP_HOLD));
    int64_t live = doctor_number(rows, 0, LIVE);
    report_say(r, live > 0 ? HEALTH_OK : HEALTH_FAIL, "workers",
               "start claimd-worker; if it exits, its log says why", "%lld live", (long long)live);
    if (doctor_number(rows, 0, STALE) > 0) {
        report_say(r, HEALTH_WARN, "workers",
                   "the leading scheduler rescues their jobs within seconds; if this persists, see "
                   "claimctl workers and those hosts",
                   "%lld without a recent heartbeat, not rescued yet",
                   (long long)doctor_number(rows, 0, STALE));
    }
    const char *timeline = admin_value(rows, 0, TIMELINE);
    bool is_start = strncmp(timeline, "start ", strlen("start ")) == 0;
    report_say(r, HEALTH_OK, "failover", NULL, "noticed by the %s%s",
               is_start ? "server's start: it does not tell its WAL timeline" : "WAL timeline ",
               is_start ? "" : timeline);
    r->t_max_us = doctor_number(rows, 0, T_MAX);
    (void)snprintf(r->lock_nodes, sizeof r->lock_nodes, "%s", admin_value(rows, 0, LOCK_NODES));
    return STATUS_OK;
}

static enum status check_roles(struct report *r, struct admin *a, struct err *err)
{
    enum { USER, IS_SUPERUSER, MISSING, OURS };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_ROLES, NULL, &rows, err);
    if (st != STATUS_OK || admin_row_count(rows) != 1) {
        return st;
    }
    const char *user = admin_value(rows, 0, USER);
    const char *missing = admin_value(rows, 0, MISSING);
    const char *ours = admin_value(rows, 0, OURS);
    if (missing != NULL) {
        report_say(r, HEALTH_FAIL, "roles",
                   "run claimctl db migrate as a role that may create roles", "missing: %s",
                   missing);
    } else if (strcmp(admin_value(rows, 0, IS_SUPERUSER), "t") == 0) {
        report_say(r, HEALTH_OK, "roles", NULL, "%s is a superuser; daemons need only their role",
                   user);
    } else if (ours == NULL) {
        report_say(r, HEALTH_FAIL, "roles",
                   "as a superuser: GRANT claimd_admin TO it; daemons and producers need less",
                   "%s is in none of claimd's roles: GRANT claimd_… TO %s", user, user);
    } else {
        report_say(r, HEALTH_OK, "roles", NULL, "%s is in %s", user, ours);
    }
    return STATUS_OK;
}

/* Reports a queue that no worker names, or a kind that no worker of its queue has a plugin for. */
static void say_unserved(struct report *r, const struct admin_rows *rows, int row)
{
    enum { QUEUE, KIND, JOBS, HAS_WORKERS, HOSTS };
    const char *queue = admin_value(rows, row, QUEUE);
    const char *kind = admin_value(rows, row, KIND);
    const char *hosts = admin_value(rows, row, HOSTS);
    char action[DETAIL_MAX];
    if (strcmp(admin_value(rows, row, HAS_WORKERS), "t") == 0) {
        report_say(r, HEALTH_WARN, "kinds",
                   "install the plugin on a worker of that queue, or cancel the jobs",
                   "no live worker of queue %s serves %s; waiting jobs: %s", queue, kind,
                   admin_value(rows, row, JOBS));
        return;
    }
    (void)snprintf(action, sizeof action,
                   "add \"%s\" to worker.queues%s%s and restart it, or cancel the jobs", queue,
                   hosts != NULL ? " of a worker that has the plugin: " : " of a worker",
                   hosts != NULL ? hosts : "");
    report_say(r, HEALTH_WARN, "queues", action,
               "no live worker serves queue %s; waiting jobs of kind %s: %s", queue, kind,
               admin_value(rows, row, JOBS));
}

static enum status check_kinds(struct report *r, struct admin *a, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_UNSERVED, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        say_unserved(r, rows, i);
    }
    if (admin_row_count(rows) == 0) {
        report_say(r, HEALTH_OK, "kinds", NULL, "every kind with due jobs is served");
    }
    return STATUS_OK;
}

static enum status check_schema(struct report *r, const struct config *config, struct admin *a,
                                struct err *err)
{
    static enum status (*const checks[])(struct report *, struct admin *, struct err *) = {
        check_cluster, check_kinds, doctor_triggers, doctor_functions, doctor_schedules};
    struct schema_version schema = {0};
    enum status st = admin_check_schema(a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_schema_version(a, &schema, err);
    if (st != STATUS_OK) {
        return st;
    }
    report_say(r, HEALTH_OK, "schema", NULL, "version %d", schema.version);
    st = check_pooling(r, config, a, err);
    for (size_t i = 0; st == STATUS_OK && i < ARRAY_COUNT(checks); i++) {
        st = checks[i](r, a, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return doctor_daemons(r, config, a, err);
}

static void doctor_postgres(struct report *r, const struct config *config)
{
    struct err err = {0};
    auto_admin struct admin *a = NULL;
    if (ctl_connect(config, true, &a, &err) != STATUS_OK) {
        report_say(r, HEALTH_FAIL, "postgresql",
                   "check that the server runs, that postgres.conninfo is right, and that "
                   "pg_hba.conf allows this host",
                   "%s", err.msg);
        return;
    }
    int version = admin_server_version(a);
    report_say(r, version >= PG_VERSION_MIN ? HEALTH_OK : HEALTH_FAIL, "postgresql",
               "upgrade the server", "version %d.%d%s", version / 10000, version % 10000,
               version >= PG_VERSION_MIN ? "" : ": 14 or later is needed");
    enum status st = check_roles(r, a, &err);
    if (st == STATUS_OK) {
        st = doctor_commit(r, a, &err);
    }
    if (st == STATUS_OK) {
        st = check_schema(r, config, a, &err);
    }
    if (st != STATUS_OK) {
        report_say(r, HEALTH_FAIL, st == STATUS_CONFLICT ? "schema" : "postgresql",
                   st == STATUS_CONFLICT
                       ? "run claimctl db migrate, or use a claimctl of that version"
                       : "see the server's log, then run doctor again",
                   "%s", err.msg);
    }
}

/* Prints for people: below each problem, what to do about it. */
static enum status print_lines(const struct report *r, FILE *out, struct err *err)
{
    enum { RESULT, CHECK, DETAIL, ACTION };
    static const struct table_column columns[] = {
        {"result", CELL_TEXT}, {"check", CELL_TEXT}, {"detail", CELL_TEXT | CELL_PROSE}};
    auto_table struct table lines = TABLE("checks", columns);
    for (size_t i = 0; i < r->table.row_count; i++) {
        char text[2 * DETAIL_MAX];
        const char *action = table_cell(&r->table, i, ACTION);
        (void)snprintf(text, sizeof text, "%s%s%s", table_cell(&r->table, i, DETAIL),
                       action != NULL ? "\n→ " : "", action != NULL ? action : "");
        const char *const values[] = {table_cell(&r->table, i, RESULT),
                                      table_cell(&r->table, i, CHECK), text};
        enum status st = table_add(&lines, values, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return table_print(&lines, false, out, err);
}

static enum status print_report(const struct ctl *ctl, const struct report *r, struct err *err)
{
    enum status st =
        ctl->is_json ? table_print(&r->table, true, ctl->out, err) : print_lines(r, ctl->out, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (r->is_full) {
        return err_fail(err, STATUS_NOMEM, "out of memory: lines are missing");
    }
    if (r->failures > 0) {
        return err_fail(err, STATUS_INTERNAL, "%d check%s failed", r->failures,
                        r->failures == 1 ? "" : "s");
    }
    return STATUS_OK;
}

/* Prints only the one line of --worker; a failure has no further text. */
static enum status print_worker(const struct ctl *ctl, const struct report *r, struct err *err)
{
    if (r->is_full) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    if (ctl->is_json) {
        enum status st = table_print(&r->table, true, ctl->out, err);
        if (st != STATUS_OK) {
            return st;
        }
    } else {
        const char *action = table_cell(&r->table, 0, 3);
        (void)fprintf(ctl->out, "%s %s: %s%s%s\n", table_cell(&r->table, 0, 0),
                      table_cell(&r->table, 0, 1), table_cell(&r->table, 0, 2),
                      action != NULL ? "; " : "", action != NULL ? action : "");
    }
    return r->failures > 0 ? STATUS_INTERNAL : STATUS_OK;
}

void doctor_servers(struct report *r, const struct config *config)
{
    doctor_postgres(r, config);
    doctor_redis(r, config);
}

enum status doctor(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *worker = ctl_value(args, "worker");
    struct config config;
    struct report report = REPORT;
    (void)signal(SIGPIPE, SIG_IGN); /* a closed Redis connection is a finding, not our end */
    enum status st = ctl_load_config(ctl, &config, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (worker != NULL) {
        doctor_worker(&report, &config, worker);
        st = print_worker(ctl, &report, err);
    } else {
        report_say(&report, HEALTH_OK, "configuration", NULL, "%s",
                   ctl->config_path != NULL ? ctl->config_path : "defaults and environment");
        doctor_servers(&report, &config);
        doctor_plugins(&report, &config);
        st = print_report(ctl, &report, err);
    }
    table_release(&report.table);
    return st;
}
