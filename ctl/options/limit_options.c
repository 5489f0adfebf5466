/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/limit_options.h"

#include "base/parse.h"

#include <stdio.h>

#define MAX_OPEN_MAX 10000000

/* `none` is no number: NULL in PostgreSQL. */
static const char *or_null(const char *value)
{
    return value == NULL || strcmp(value, "none") == 0 ? NULL : value;
}

bool limit_rate_is_valid(const char *rate, int64_t *ret_starts, char *ret_unit)
{
    size_t digits = strcspn(rate, "/");
    bool has_unit = rate[digits] == '/' && strlen(rate) == digits + 2 &&
                    strchr("smhd", rate[digits + 1]) != NULL;
    *ret_unit = has_unit ? rate[digits + 1] : '\0';
    return has_unit && parse_i64(rate, digits, 1, 100000, ret_starts, NULL) == STATUS_OK;
}

static enum status read_rate(const char *rate, struct limit_options *ret, struct err *err)
{
    int64_t n = 0;
    char unit = '\0';
    if (!limit_rate_is_valid(rate, &n, &unit)) {
        return err_fail(err, STATUS_INVALID,
                        "--rate '%.40s': must be 1 to 100000, then /s, /m, /h or /d; or none",
                        rate);
    }
    (void)snprintf(ret->starts, sizeof ret->starts, "%lld", (long long)n);
    (void)snprintf(ret->per, sizeof ret->per, "1%c", unit); /* as PostgreSQL reads it, too */
    return STATUS_OK;
}

/* A number, `none` or nothing. */
static enum status read_count(const char *option, const char *value, int64_t max, struct err *err)
{
    int64_t n = 0;
    const char *number = or_null(value);
    if (number == NULL || parse_i64(number, strlen(number), 1, max, &n, NULL) == STATUS_OK) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID, "--%s '%.40s': must be 1 to %lld, or none", option, number,
                    (long long)max);
}

enum status limit_options_read(const struct ctl_args *args, int64_t running_max,
                               struct limit_options *ret, struct err *err)
{
    *ret = (struct limit_options){.running = ctl_value(args, "running"),
                                  .rate = ctl_value(args, "rate"),
                                  .max_open = ctl_value(args, "max-open")};
    if (args->given_count == 0) {
        return err_fail(err, STATUS_INVALID, "no limit is named: an option such as --running");
    }
    enum status st = read_count("running", ret->running, running_max, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_count("max-open", ret->max_open, MAX_OPEN_MAX, err);
    if (st != STATUS_OK || or_null(ret->rate) == NULL) {
        return st;
    }
    return read_rate(ret->rate, ret, err);
}

/* A limit that is one number; NULL: it was not given. */
static enum status set_count(struct admin *a, const struct pg_statement *statement,
                             const char *name, const char *value, struct err *err)
{
    const char *const params[] = {name, or_null(value)};
    auto_admin_rows struct admin_rows *rows = NULL;
    if (value == NULL || statement == NULL) {
        return STATUS_OK;
    }
    return admin_query(a, statement, params, &rows, err);
}

static enum status set_rate(struct admin *a, const struct pg_statement *statement, const char *name,
                            const struct limit_options *l, struct err *err)
{
    bool is_none = l->starts[0] == '\0';
    const char *const params[] = {name, is_none ? NULL : l->starts, is_none ? "1 s" : l->per};
    auto_admin_rows struct admin_rows *rows = NULL;
    return l->rate == NULL ? STATUS_OK : admin_query(a, statement, params, &rows, err);
}

/* On a failure the session ends, and the transaction with it. */
enum status limit_options_set(struct admin *a, const char *name, const struct limit_options *l,
                              const struct limit_statements *statements, struct err *err)
{
    enum status st = admin_exec(a, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_count(a, statements->running, name, l->running, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_count(a, statements->max_open, name, l->max_open, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_rate(a, statements->rate, name, l, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_written(admin_exec(a, "COMMIT", err), err);
}
