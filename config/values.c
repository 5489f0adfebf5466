/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the values of options, checks their range and stores them in struct config. */
#include "base/clock.h"
#include "base/parse.h"
#include "config/options.h"

#include <stdio.h>

static void choices_text(const struct option_def *o, char *ret_text, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; o->choices[i] != NULL && at < size; i++) {
        const char *glue = i == 0 ? "" : o->choices[i + 1] == NULL ? " or " : ", ";
        int n = snprintf(ret_text + at, size - at, "%s%s", glue, o->choices[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

void option_range_text(const struct option_def *o, char *ret_text, size_t size)
{
    const char *gap = o->unit[0] == '\0' ? "" : " ";
    switch (o->type) {
    case OPTION_INT:
    case OPTION_TIME:
        (void)snprintf(ret_text, size, "%lld to %lld%s%s", (long long)o->min, (long long)o->max,
                       gap, o->unit);
        break;
    case OPTION_REAL:
        (void)snprintf(ret_text, size, "%g to %g", (double)o->min / 1000, (double)o->max / 1000);
        break;
    case OPTION_CHOICE:
        choices_text(o, ret_text, size);
        break;
    case OPTION_LIST:
        (void)snprintf(ret_text, size, "%lld to %lld texts of at most %zu bytes", (long long)o->min,
                       (long long)o->max, o->size - 1);
        break;
    case OPTION_COMMANDS:
        (void)snprintf(ret_text, size, "an object of at most %lld commands, each a list of texts",
                       (long long)o->max);
        break;
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_SECRET_FILE:
        (void)snprintf(ret_text, size, "a %s of %lld to %zu bytes",
                       o->type == OPTION_TEXT ? "text" : "path", (long long)o->min, o->size - 1);
        break;
    }
}

bool option_mask(const char *value, char *ret_text, size_t size)
{
    const char *authority = strstr(value, "://");
    const char *at = authority == NULL ? NULL : strrchr(authority, '@');
    const char *colon = authority == NULL ? NULL : strchr(authority + 3, ':');
    if (strstr(value, "password") != NULL) {
        (void)snprintf(ret_text, size, "***");
        return true;
    }
    if (at != NULL && colon != NULL && colon < at) {
        (void)snprintf(ret_text, size, "%.*s:***%s", (int)(colon - value), value, at);
        return true;
    }
    (void)snprintf(ret_text, size, "%s", value);
    return false;
}

enum status option_refuse(const struct option_def *o, const char *value, struct err *err)
{
    char range[128];
    char shown[CONFIG_PATH_MAX];
    (void)option_mask(value, shown, sizeof shown);
    option_range_text(o, range, sizeof range);
    return err_fail(err, STATUS_INVALID, "%s: %.80s is not allowed; allowed: %s", o->name, shown,
                    range);
}

enum status option_set_number(const struct option_def *o, struct config *c, int64_t value,
                              struct err *err)
{
    if (value < o->min || value > o->max) {
        char text[24];
        (void)snprintf(text, sizeof text, "%lld", (long long)value);
        return option_refuse(o, text, err);
    }
    if (o->type == OPTION_TIME) {
        *(int64_t *)option_field(o, c) = value * US_PER_MS;
    } else {
        *(int *)option_field(o, c) = (int)value;
    }
    return STATUS_OK;
}

enum status option_set_real(const struct option_def *o, struct config *c, double value,
                            struct err *err)
{
    if (!(value * 1000 >= (double)o->min && value * 1000 <= (double)o->max)) {
        char text[32];
        (void)snprintf(text, sizeof text, "%g", value);
        return option_refuse(o, text, err);
    }
    *(double *)option_field(o, c) = value;
    return STATUS_OK;
}

static enum status set_choice(const struct option_def *o, struct config *c, const char *value,
                              struct err *err)
{
    for (int i = 0; o->choices[i] != NULL; i++) {
        if (strcmp(o->choices[i], value) != 0) {
            continue;
        }
        if (o->size == sizeof(bool)) {
            *(bool *)option_field(o, c) = i != 0;
        } else {
            *(int *)option_field(o, c) = i;
        }
        return STATUS_OK;
    }
    return option_refuse(o, value, err);
}

enum status option_set_text(const struct option_def *o, struct config *c, const char *value,
                            const char *folder, struct err *err)
{
    if (o->type == OPTION_CHOICE) {
        return set_choice(o, c, value, err);
    }
    bool is_relative = o->type != OPTION_TEXT && value[0] != '\0' && value[0] != '/';
    bool has_folder = is_relative && folder != NULL;
    size_t len = strlen(value) + (has_folder ? strlen(folder) + 1 : 0);
    if (len < (size_t)o->min || len >= o->size) {
        return option_refuse(o, len == 0 ? "an empty text" : value, err);
    }
    (void)snprintf(option_field(o, c), o->size, "%s%s%s", has_folder ? folder : "",
                   has_folder ? "/" : "", value);
    return STATUS_OK;
}

static size_t *list_count(const struct option_def *o, struct config *c)
{
    void *at = (char *)c + o->aux;
    return at;
}

size_t option_list_count(const struct option_def *o, const struct config *c)
{
    size_t count = 0;
    memcpy(&count, (const char *)c + o->aux, sizeof count);
    return count;
}

void option_list_clear(const struct option_def *o, struct config *c)
{
    *list_count(o, c) = 0;
}

enum status option_list_add(const struct option_def *o, struct config *c, const char *value,
                            struct err *err)
{
    size_t *count = list_count(o, c);
    size_t len = strlen(value);
    if (*count >= (size_t)o->max) {
        return option_refuse(o, "one more", err);
    }
    if (len == 0 || len >= o->size) {
        return option_refuse(o, len == 0 ? "an empty text" : value, err);
    }
    char *items = option_field(o, c);
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(items + i * o->size, value) == 0) {
            char shown[CONFIG_TEXT_MAX + 8];
            (void)option_mask(value, shown, sizeof shown);
            return err_fail(err, STATUS_INVALID, "%s: '%.80s' is listed twice", o->name, shown);
        }
    }
    memcpy(items + *count * o->size, value, len + 1);
    *count += 1;
    return STATUS_OK;
}

enum status option_list_check(const struct option_def *o, struct config *c, struct err *err)
{
    return *list_count(o, c) >= (size_t)o->min ? STATUS_OK : option_refuse(o, "an empty list", err);
}

static enum status parse_list(const struct option_def *o, struct config *c, const char *text,
                              struct err *err)
{
    option_list_clear(o, c);
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        autofree char *item = strndup(text, len);
        if (item == NULL) {
            return err_fail(err, STATUS_NOMEM, "%s", o->name);
        }
        enum status st = option_list_add(o, c, item, err);
        if (st != STATUS_OK) {
            return st;
        }
        text += len;
        text += *text == ',';
    }
    return option_list_check(o, c, err);
}

enum status option_parse(const struct option_def *o, struct config *c, const char *text,
                         struct err *err)
{
    if (o->type == OPTION_INT || o->type == OPTION_TIME) {
        int64_t value = 0;
        if (parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, &value, NULL) != STATUS_OK) {
            return option_refuse(o, text, err);
        }
        return option_set_number(o, c, value, err);
    }
    if (o->type == OPTION_REAL) {
        char *end = NULL;
        double value = strtod(text, &end);
        if (end == text || *end != '\0') {
            return option_refuse(o, text, err);
        }
        return option_set_real(o, c, value, err);
    }
    if (o->type == OPTION_LIST) {
        return parse_list(o, c, text, err);
    }
    if (o->type == OPTION_COMMANDS) {
        json_auto_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        return option_set_commands(o, c, value, err);
    }
    return option_set_text(o, c, text, NULL, err);
}
