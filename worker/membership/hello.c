/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/hello.h"

#include "base/clock.h"

#include <stdio.h>

static bool is_in_range(json_int_t value, int64_t max)
{
    return value >= 1 && value <= max;
}

static bool read_kind(const json_t *item, struct worker_kind *ret)
{
    json_int_t timeout_ms = 0;
    json_int_t grace_ms = 0;
    json_int_t max_attempts = 0;
    json_int_t max_crashes = 0;
    int at_most_once = 0;
    int keep_log = 0;
    const char *backoff = "";
    struct worker_kind k = {0};
    int failed = json_unpack(
        (json_t *)(uintptr_t)item, "{s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:s, s:b, s:I}", "name",
        &k.name, "plugin", &k.plugin, "version", &k.version, "max_attempts", &max_attempts,
        "max_crashes", &max_crashes, "timeout_ms", &timeout_ms, "at_most_once", &at_most_once,
        "backoff", &backoff, "keep_log", &keep_log, "grace_ms", &grace_ms);
    struct backoff form;
    if (failed != 0 || job_kind_check(k.name, NULL) != STATUS_OK ||
        job_kind_check(k.plugin, NULL) != STATUS_OK || strlen(k.version) > JOB_KIND_VERSION_MAX ||
        !is_in_range(max_attempts, JOB_KIND_ATTEMPTS_MAX) ||
        !is_in_range(max_crashes, JOB_KIND_ATTEMPTS_MAX) ||
        !is_in_range(timeout_ms, JOB_KIND_TIMEOUT_MS_MAX) || grace_ms < 0 ||
        grace_ms > JOB_KIND_GRACE_MS_MAX ||
        (backoff[0] != '\0' && backoff_parse(backoff, &form, NULL) != STATUS_OK)) {
        return false;
    }
    k.settings.max_attempts = (int)max_attempts;
    k.settings.max_crashes = (int)max_crashes;
    k.settings.timeout_us = timeout_ms * US_PER_MS;
    k.settings.grace_us = grace_ms * US_PER_MS;
    k.settings.at_most_once = at_most_once != 0;
    k.settings.keeps_log = keep_log != 0;
    (void)snprintf(k.settings.backoff, sizeof k.settings.backoff, "%s", backoff);
    *ret = k;
    return true;
}

static bool is_known(const struct worker_kind *kinds, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

size_t hello_kinds(const json_t *hello, struct worker_kind ret_kinds[KIND_SET_MAX])
{
    const json_t *list = json_object_get(hello, "kinds");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < KIND_SET_MAX; i++) {
        struct worker_kind k;
        if (read_kind(json_array_get(list, i), &k) && !is_known(ret_kinds, n, k.name)) {
            ret_kinds[n++] = k;
        }
    }
    return n;
}

size_t hello_refused_count(const json_t *refused)
{
    size_t count = json_array_size(refused);
    return count < HELLO_REFUSED_MAX ? count : HELLO_REFUSED_MAX;
}
