/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/handler_value.h"

#include "base/clock.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_MIN ((int64_t)16 << 20)
#define MEMORY_MAX ((int64_t)1 << 50)

bool handler_key_is_one(const char *const *list, const char *word)
{
    while (*list != NULL && strcmp(*list, word) != 0) {
        list++;
    }
    return *list != NULL;
}

enum status handler_key_refuse(const char *place, const char *key, const char *const *allowed,
                               struct err *err)
{
    char names[256] = "";
    size_t at = 0;
    for (size_t i = 0; allowed[i] != NULL && at < sizeof names; i++) {
        at +=
            (size_t)snprintf(names + at, sizeof names - at, "%s%s", i > 0 ? ", " : "", allowed[i]);
    }
    return err_fail(err, STATUS_INVALID, "%s has no key '%.64s': allowed are %s", place, key,
                    names);
}

enum status handler_get_integer(const json_t *value, const char *place, int64_t min, int64_t max,
                                int64_t *ret, struct err *err)
{
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < min || number > max) {
        return err_fail(err, STATUS_INVALID, "%s: must be a whole number, %" PRId64 "…%" PRId64,
                        place, min, max);
    }
    *ret = number;
    return STATUS_OK;
}

enum status handler_get_ms(const json_t *value, const char *place, int64_t max_ms, int64_t *ret_ms,
                           struct err *err)
{
    int64_t us = 0;
    enum status st = STATUS_OK;
    if (json_is_string(value)) {
        st = parse_duration_us(json_string_value(value), &us, NULL);
    } else if (json_is_integer(value) && json_integer_value(value) <= max_ms / 1000) {
        us = json_integer_value(value) * US_PER_S;
    }
    if (st != STATUS_OK || us < US_PER_MS || us / US_PER_MS > max_ms) {
        return err_fail(err, STATUS_INVALID,
                        "%s: must be a time up to %" PRId64 " s, as \"90s\", \"10m\", or seconds",
                        place, max_ms / 1000);
    }
    *ret_ms = us / US_PER_MS;
    return STATUS_OK;
}

enum status handler_get_octets(const json_t *value, const char *place, int64_t *ret,
                               struct err *err)
{
    int64_t bytes = json_integer_value(value);
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        size_t len = strlen(text);
        const char *units = "KMG";
        const char *unit = len > 0 ? strchr(units, text[len - 1]) : NULL;
        int64_t number = 0;
        if (unit != NULL && *unit != '\0' &&
            parse_i64(text, len - 1, 0, MEMORY_MAX >> 30, &number, NULL) == STATUS_OK) {
            bytes = number << (10 * (unit - units + 1));
        }
    }
    if (bytes < MEMORY_MIN || bytes > MEMORY_MAX) {
        return err_fail(err, STATUS_INVALID, "%s: must be bytes, or as \"512M\", at least 16M",
                        place);
    }
    *ret = bytes;
    return STATUS_OK;
}

enum status handler_get_flag(const json_t *value, const char *place, int32_t *ret, struct err *err)
{
    if (!json_is_boolean(value)) {
        return err_fail(err, STATUS_INVALID, "%s: must be true or false", place);
    }
    *ret = json_is_true(value) ? 1 : 0;
    return STATUS_OK;
}

enum status handler_get_text(const json_t *value, const char *place, const char **ret,
                             struct err *err)
{
    if (!json_is_string(value)) {
        return err_fail(err, STATUS_INVALID, "%s: must be a text", place);
    }
    *ret = json_string_value(value);
    return STATUS_OK;
}
