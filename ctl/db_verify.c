/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl db verify: runs the checks of sql/check.sql and reports what they find. */
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/commands/doctor/unfed.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "ctl/options/filter.h"
#include "sql/queries.h"

#define QUERY_TIMEOUT_US (INT64_C(600) * US_PER_S)
#define AFTER_MAX_US (INT64_C(86400) * US_PER_S)
#define DETAIL_MAX 1024

struct verify {
    struct config config;
    struct admin *admin;
    struct checks checks;
    struct table results;    /* one row per check */
    struct table violations; /* one row per violation of a rule */
    struct table warnings;   /* rows that should not exist, but violate no rule */
    struct err unsettled;    /* why suspects could not be looked at */
};

static const struct table_column result_columns[] = {{"result", CELL_TEXT},
                                                     {"check", CELL_TEXT},
                                                     {"rule", CELL_TEXT},
                                                     {"violations", CELL_NUMBER},
                                                     {"means", CELL_TEXT | CELL_PROSE}};
static const struct table_column violation_columns[] = {{"check", CELL_TEXT},
                                                        {"rule", CELL_TEXT},
                                                        {"job", CELL_NUMBER},
                                                        {"detail", CELL_TEXT | CELL_PROSE}};

/* ---- settings and session ---- */

static enum status read_after(const struct ctl_args *args, char *ret_text, size_t size,
                              struct err *err)
{
    int64_t us = 0;
    const char *text = ctl_value(args, "after");
    ret_text[0] = '\0';
    if (text == NULL) {
        return STATUS_OK;
    }
    enum status st = parse_duration_us(text, &us, err);
    if (st == STATUS_OK && us > AFTER_MAX_US) {
        st = err_fail(err, STATUS_INVALID, "'%.40s' is not allowed; allowed: 0s to 1d", text);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "--after");
        return st;
    }
    (void)snprintf(ret_text, size, "%lld microseconds", (long long)us);
    return STATUS_OK;
}

/* Connects with a short deadline, to find out whether PostgreSQL can be reached at all; the checks
 * may then take long. */
static enum status open_session(struct verify *v, const struct ctl_args *args, struct err *err)
{
    char after[48];
    int64_t now_us = 0;
    auto_filter struct filter filter = {.is_open = false};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = read_after(args, after, sizeof after, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_connect(&v->config, false, &v->admin, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_now(v->admin, &now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_read(&filter, args, now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t timeout_us = v->config.postgres.timeout_us;
    admin_close(TAKE(v->admin));
    v->config.postgres.timeout_us = QUERY_TIMEOUT_US;
    st = ctl_connect(&v->config, false, &v->admin, err);
    v->config.postgres.timeout_us = timeout_us;
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {after[0] != '\0' ? after : NULL,
                                  filter.since[0] != '\0' ? filter.since : NULL};
    return admin_query(v->admin, &SQL_ADMIN_CHECK_SETTINGS, params, &rows, err);
}

/* ---- checks ---- */

static enum status note_result(struct verify *v, const struct check *c, const char *result,
                               size_t count, struct err *err)
{
    char number[24];
    const char *const values[] = {result, c->name, c->rule, number, c->says};
    (void)snprintf(number, sizeof number, "%zu", count);
    return table_add(&v->results, values, err);
}

static enum status run_check(struct verify *v, const struct check *c, struct err *err)
{
    const struct pg_statement statement = {.name = c->name, .sql = c->sql};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(v->admin, &statement, NULL, &rows, err);
    if (st == STATUS_OK) {
        st = table_add_rows(c->is_warning ? &v->warnings : &v->violations, rows, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s", c->name);
        return st;
    }
    size_t count = (size_t)admin_row_count(rows);
    const char *bad = c->is_warning ? "warn" : "FAIL";
    return note_result(v, c, count == 0 ? "ok" : bad, count, err);
}

static enum status note_unfed(struct verify *v, const struct check *c,
                              const struct hint_lookup *job, struct err *err)
{
    char id[24];
    char detail[DETAIL_MAX];
    const char *const values[] = {c->name, c->rule, id, detail};
    (void)snprintf(id, sizeof id, "%lld", (long long)job->id);
    (void)snprintf(detail, sizeof detail, "kind %s in queue %s, priority %d: %s", job->kind,
                   job->queue, job->priority,
                   unfed_is_starved(&v->config, job) ? "starved: other lanes get every turn"
                                                     : "due, served, and without a hint");
    return table_add(&v->violations, values, err);
}

/* If Redis cannot be reached, the check stays open, which is a different failure from a violated
 * rule. */
static enum status run_unfed(struct verify *v, const struct check *c, struct err *err)
{
    autofree struct unfed *unfed = malloc(sizeof *unfed);
    if (unfed == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    struct err why = {0};
    enum status st = unfed_find(&v->config, v->admin, &v->checks, unfed, &why);
    if (st != STATUS_OK && unfed->count > 0) {
        v->unsettled = why;
        return note_result(v, c, "unknown", 0, err);
    }
    if (st != STATUS_OK) {
        return err_fail(err, st, "%s: %s", c->name, why.msg);
    }
    for (size_t i = 0; i < unfed->count; i++) {
        st = note_unfed(v, c, &unfed->list[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return note_result(v, c, unfed->count == 0 ? "ok" : "FAIL", unfed->count, err);
}

static enum status run_all(struct verify *v, struct err *err)
{
    enum status st = checks_read(sql_check_text, &v->checks, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < v->checks.count; i++) {
        const struct check *c = &v->checks.list[i];
        st = c->is_suspect ? run_unfed(v, c, err) : run_check(v, c, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* ---- output ---- */

static enum status print(const struct ctl *ctl, const struct verify *v, struct err *err)
{
    const struct table *tables[3] = {&v->results};
    size_t count = 1;
    if (ctl->is_json || v->violations.row_count > 0) {
        tables[count++] = &v->violations;
    }
    if (ctl->is_json || v->warnings.row_count > 0) {
        tables[count++] = &v->warnings;
    }
    enum status st = tables_print(tables, count, ctl->is_json, ctl->out, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (v->violations.row_count > 0) {
        return err_fail(err, STATUS_INTERNAL, "%zu violation%s", v->violations.row_count,
                        v->violations.row_count == 1 ? "" : "s");
    }
    if (v->unsettled.status != STATUS_OK) {
        return err_fail(err, STATUS_UNAVAILABLE, "unfed: some jobs may have no hint, and %s",
                        v->unsettled.msg);
    }
    return STATUS_OK;
}

static enum status verify(const struct ctl *ctl, const struct ctl_args *args, struct verify *v,
                          struct err *err)
{
    enum status st = ctl_load_config(ctl, &v->config, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = open_session(v, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = run_all(v, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print(ctl, v, err);
}

enum status db_verify(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    autofree struct verify *v = calloc(1, sizeof *v);
    if (v == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    v->results = (struct table)TABLE("checks", result_columns);
    v->violations = (struct table)TABLE("violations", violation_columns);
    v->warnings = (struct table)TABLE("warnings", violation_columns);
    enum status st = verify(ctl, args, v, err);
    admin_close(v->admin);
    checks_release(&v->checks);
    table_release(&v->results);
    table_release(&v->violations);
    table_release(&v->warnings);
    return st;
}
