/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "ctl/ctl.h"
#include "sql/queries.h"

#define CONNINFO_MAX (2 * CONFIG_PATH_MAX)

const char *ctl_value(const struct ctl_args *args, const char *name)
{
    for (size_t i = args->given_count; i > 0; i--) {
        if (strcmp(args->given[i - 1].name, name) == 0) {
            return args->given[i - 1].value;
        }
    }
    return NULL;
}

enum status ctl_load_config(const struct ctl *ctl, struct config *ret, struct err *err)
{
    enum status st = config_load(ctl->config_path, ret, err);
    return st == STATUS_NOT_FOUND ? STATUS_INVALID : st;
}

enum status ctl_conninfo(const struct config *config, char *ret, size_t size, struct err *err)
{
    enum status st = admin_check_conninfo(config->postgres.conninfo, err);
    if (st != STATUS_OK) {
        err_prefix(err, "postgres.conninfo");
        return st;
    }
    return config_conninfo(config, ret, size, err);
}

enum status ctl_connect(const struct config *config, bool any_schema, struct admin **ret,
                        struct err *err)
{
    char conninfo[CONNINFO_MAX];
    struct admin *a = NULL;
    enum status st = ctl_conninfo(config, conninfo, sizeof conninfo, err);
    if (st == STATUS_OK) {
        st = admin_open(conninfo, config->postgres.timeout_us, &a, err);
    }
    explicit_bzero(conninfo, sizeof conninfo);
    if (st == STATUS_OK && !any_schema) {
        st = admin_check_schema(a, err);
    }
    if (st != STATUS_OK) {
        admin_close(a);
        return st;
    }
    *ret = a;
    return STATUS_OK;
}

enum status ctl_session(const struct ctl *ctl, struct admin **ret, struct err *err)
{
    struct config config;
    enum status st = ctl_load_config(ctl, &config, err);
    return st == STATUS_OK ? ctl_connect(&config, false, ret, err) : st;
}

enum status ctl_now(struct admin *a, int64_t *ret_us, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_CLOCK, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = admin_value(rows, 0, 0);
    return parse_i64(text, strlen(text), 0, INT64_MAX, ret_us, err);
}

enum status ctl_written(enum status st, struct err *err)
{
    bool is_lost = (st == STATUS_UNAVAILABLE || st == STATUS_TIMEOUT) && err->code[0] == '\0';
    if (is_lost) {
        err->status = STATUS_UNKNOWN;
        err_prefix(err, "it is not known whether it was done; look before you repeat it");
    }
    return is_lost ? STATUS_UNKNOWN : st;
}

enum status ctl_program_path(const char *sibling, char *ret_path, size_t size, struct err *err)
{
    ssize_t len = readlink("/proc/self/exe", ret_path, size);
    if (len < 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "/proc/self/exe");
    }
    while (len > 0 && ret_path[len - 1] != '/') {
        len--;
    }
    int n = snprintf(ret_path + len, size - (size_t)len, "%s", sibling);
    if (n < 0 || (size_t)n >= size - (size_t)len) {
        return err_fail(err, STATUS_LIMIT, "the path of %s is too long", sibling);
    }
    return STATUS_OK;
}
