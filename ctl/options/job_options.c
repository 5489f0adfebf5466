/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/job_options.h"

#include "base/clock.h"
#include "base/parse.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_time.h"
#include "model/backoff.h"
#include "model/job.h"

enum status ctl_option_number(const struct ctl_args *args, const char *name, int64_t min,
                              int64_t max, struct err *err)
{
    const char *text = ctl_value(args, name);
    int64_t value = 0;
    if (text == NULL) {
        return STATUS_OK;
    }
    enum status st = parse_i64(text, strlen(text), min, max, &value, err);
    if (st != STATUS_OK) {
        err_prefix(err, "--%s", name);
    }
    return st;
}

enum status ctl_option_interval(const struct ctl_args *args, const char *name, int64_t min_us,
                                int64_t max_us, char *ret_text, size_t size, struct err *err)
{
    const char *text = ctl_value(args, name);
    char option[24];
    int64_t us = 0;
    ret_text[0] = '\0';
    (void)snprintf(option, sizeof option, "--%s", name);
    if (text == NULL) {
        return STATUS_OK;
    }
    enum status st = job_duration_check(option, text, min_us, max_us, &us, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(ret_text, size, "%lld microseconds", (long long)us);
    return STATUS_OK;
}

static bool is_absent_or_default(const char *text)
{
    return text == NULL || strcmp(text, "default") == 0;
}

enum status ctl_option_attempts(const struct ctl_args *args, const char *name, struct err *err)
{
    const char *text = ctl_value(args, name);
    int64_t value = 0;
    if (is_absent_or_default(text) ||
        parse_i64(text, strlen(text), 1, INT32_MAX, &value, NULL) == STATUS_OK) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID,
                    "--%s: '%.40s' is not allowed; allowed: 1 to %d, or default", name, text,
                    INT32_MAX);
}

static enum status option_time(const struct ctl_args *args, const char *name, int64_t max_us,
                               const char *max_text, char *ret_text, size_t size, struct err *err)
{
    const char *text = ctl_value(args, name);
    if (is_absent_or_default(text)) {
        (void)snprintf(ret_text, size, "%s", text == NULL ? "" : text);
        return STATUS_OK;
    }
    if (ctl_option_interval(args, name, US_PER_MS, max_us, ret_text, size, NULL) == STATUS_OK) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID,
                    "--%s: '%.40s' is not allowed; allowed: 1ms to %s, or default", name, text,
                    max_text);
}

enum status ctl_option_timeout(const struct ctl_args *args, char *ret_text, size_t size,
                               struct err *err)
{
    return option_time(args, "timeout", JOB_TIMEOUT_MAX_US, "366d", ret_text, size, err);
}

enum status ctl_option_grace(const struct ctl_args *args, char *ret_text, size_t size,
                             struct err *err)
{
    return option_time(args, "grace", JOB_KIND_GRACE_MS_MAX * US_PER_MS, "1h", ret_text, size, err);
}

enum status ctl_option_expiry(const struct ctl_args *args, bool may_be_never, char *ret_in,
                              size_t size, struct err *err)
{
    const char *at = ctl_value(args, "expires-at");
    enum status st =
        ctl_option_interval(args, "expires-in", 1000, JOB_DELAY_MAX_US, ret_in, size, err);
    if (st != STATUS_OK || at == NULL) {
        return st;
    }
    if (ret_in[0] != '\0') {
        return err_fail(err, STATUS_INVALID, "allowed: either --expires-at or --expires-in");
    }
    st = may_be_never && at[0] == '\0' ? STATUS_OK : job_time_check(at, err);
    if (st != STATUS_OK) {
        err_prefix(err, "--expires-at");
    }
    return st;
}

enum status ctl_option_backoff(const struct ctl_args *args, struct err *err)
{
    const char *text = ctl_value(args, "backoff");
    struct backoff backoff;
    if (is_absent_or_default(text) || backoff_parse(text, &backoff, NULL) == STATUS_OK) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID,
                    "--backoff: '%.40s' is not allowed; allowed: default, or %s", text,
                    BACKOFF_FORMS);
}

enum status ctl_option_ids(const struct ctl_args *args, const char *name, struct err *err)
{
    const char *at = ctl_value(args, name);
    while (at != NULL) {
        int64_t id = 0;
        size_t len = strcspn(at, ",");
        enum status st = parse_i64(at, len, 1, INT64_MAX, &id, err);
        if (st != STATUS_OK) {
            err_prefix(err, "--%s", name);
            return st;
        }
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    return STATUS_OK;
}

enum status ctl_options_of_file(const struct ctl_args *args, struct err *err)
{
    static const char *const taken[] = {"file", "batch", "dry-run", "quiet", "strict"};
    for (size_t i = 0; i < args->given_count; i++) {
        size_t k = 0;
        while (k < ARRAY_COUNT(taken) && strcmp(args->given[i].name, taken[k]) != 0) {
            k++;
        }
        if (k == ARRAY_COUNT(taken)) {
            return err_fail(err, STATUS_INVALID,
                            "a file takes no --%s, only --batch, --dry-run, --quiet and --strict: "
                            "each line has its own",
                            args->given[i].name);
        }
    }
    return STATUS_OK;
}
