/* SPDX-License-Identifier: Apache-2.0
 *
 * The first steps of most commands: the configuration, and a session of PostgreSQL. */
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/core/ctl.h"

#include <time.h>
#include <unistd.h>

#define INTERVAL_MIN_US (100 * US_PER_MS)
#define INTERVAL_MAX_US (3600 * US_PER_S)
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

void ctl_find_config(struct ctl *ctl, const char *variable, const char *standard)
{
    bool is_standard = variable == NULL && access(standard, F_OK) == 0;
    bool is_variable = variable != NULL && variable[0] != '\0';
    ctl->config_path = is_variable ? variable : is_standard ? standard : NULL;
    ctl->config_from = is_variable   ? CTL_CONFIG_VARIABLE
                       : is_standard ? CTL_CONFIG_STANDARD
                                     : CTL_CONFIG_NONE;
}

enum status ctl_load_config(const struct ctl *ctl, struct config *ret, struct err *err)
{
    enum status st = config_load(ctl->config_path, ret, err);
    if (st != STATUS_OK && ctl->config_from == CTL_CONFIG_STANDARD) {
        err_prefix(err, "the file that is read unless CLAIMD_CONFIG is set, even if to nothing");
    }
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
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_connect(&config, false, ret, err);
}

enum status ctl_interval(const struct ctl_args *args, const char *name, int64_t standard_us,
                         int64_t *ret_us, struct err *err)
{
    const char *text = ctl_value(args, name);
    *ret_us = standard_us;
    if (text == NULL || text[0] == '\0') {
        return STATUS_OK;
    }
    enum status st = parse_duration_us(text, ret_us, err);
    if (st == STATUS_OK && (*ret_us < INTERVAL_MIN_US || *ret_us > INTERVAL_MAX_US)) {
        st = err_fail(err, STATUS_INVALID, "'%.40s' is not allowed; allowed: 100ms to 1h", text);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "--%s", name);
    }
    return st;
}

void ctl_rest(int64_t us)
{
    const struct timespec time = {.tv_sec = us / US_PER_S, .tv_nsec = us % US_PER_S * 1000};
    (void)nanosleep(&time, NULL);
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
