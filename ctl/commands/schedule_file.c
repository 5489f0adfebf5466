/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the file of `schedules apply`, and the schedules of `apply`, before it is sent to
 * PostgreSQL. */
#include "base/nearest.h"
#include "ctl/commands/schedules.h"
#include "ctl/options/job_check.h"

#include <assert.h>
#include <jansson.h>

#define SCHEDULES_MAX 10000
#define PLACE_MAX 128
#define KEYS_MAX 384 /* length of the list of all keys */

static const struct {
    const char *key;
    json_type type;
    const char *allowed;
    bool is_required;
} fields[] = {
    [SCHEDULE_NAME] = {"name", JSON_STRING, "a text", true},
    [SCHEDULE_KIND] = {"kind", JSON_STRING, "a text", true},
    [SCHEDULE_CRON] = {"cron", JSON_STRING, "a text", true},
    [SCHEDULE_ARGS] = {"args", JSON_NULL, "any JSON", false}, /* of any type */
    [SCHEDULE_QUEUE] = {"queue", JSON_STRING, "a text", false},
    [SCHEDULE_PRIORITY] = {"priority", JSON_INTEGER, "a whole number", false},
    [SCHEDULE_ZONE] = {"zone", JSON_STRING, "a text", false},
    [SCHEDULE_MAX_ATTEMPTS] = {"max_attempts", JSON_INTEGER, "a whole number", false},
    [SCHEDULE_TIMEOUT] = {"timeout", JSON_STRING, "a text such as \"90s\"", false},
    [SCHEDULE_TAGS] = {"tags", JSON_ARRAY, JOB_TAGS_ALLOWED, false},
    [SCHEDULE_METADATA] = {"metadata", JSON_OBJECT, "an object", false},
    [SCHEDULE_MISSED] = {"missed", JSON_STRING, "a text", false},
    [SCHEDULE_MISSED_WINDOW] = {"missed_window", JSON_STRING, "a text such as \"1d\"", false},
    [SCHEDULE_OVERLAP] = {"overlap", JSON_STRING, "a text", false},
    [SCHEDULE_EXCLUSIVE_KEY] = {"exclusive_key", JSON_STRING, "a text", false},
    [SCHEDULE_SHARE_KEY] = {"share_key", JSON_STRING, "a text", false},
    [SCHEDULE_BACKOFF] = {"backoff", JSON_STRING, "a text", false},
    [SCHEDULE_UNIQUE_KEY] = {"unique_key", JSON_STRING, "a text", false},
    [SCHEDULE_UNIQUE_BY] = {"unique_by", JSON_ARRAY, JOB_TAGS_ALLOWED, false},
    [SCHEDULE_UNIQUE_FOR] = {"unique_for", JSON_STRING, "a text such as \"1h\"", false},
    [SCHEDULE_UNIQUE_STATES] = {"unique_states", JSON_STRING, "a text", false},
    [SCHEDULE_ON_CONFLICT] = {"on_conflict", JSON_STRING, "a text", false},
    [SCHEDULE_JITTER] = {"jitter", JSON_STRING, "a text such as \"5m\"", false},
    [SCHEDULE_SECOND_KEY] = {"second_key", JSON_STRING, "a text", false},
    [SCHEDULE_GRACE] = {"grace", JSON_STRING, "a text such as \"30s\"", false},
};
static_assert(ARRAY_COUNT(fields) == SCHEDULE_FIELDS, "a row for each field");

const char *schedule_field_key(enum schedule_field field)
{
    return fields[field].key;
}

bool schedule_is_interval(enum schedule_field field)
{
    return field == SCHEDULE_TIMEOUT || field == SCHEDULE_MISSED_WINDOW ||
           field == SCHEDULE_UNIQUE_FOR || field == SCHEDULE_JITTER || field == SCHEDULE_GRACE;
}

enum status schedule_interval(enum schedule_field field, const char *name, const char *text,
                              char ret_text[SCHEDULE_INTERVAL_MAX], struct err *err)
{
    int64_t us = 0;
    bool is_jitter = field == SCHEDULE_JITTER;
    enum status st =
        job_duration_check(name, text, is_jitter ? 0 : 1000,
                           is_jitter ? SCHEDULE_JITTER_MAX_US : JOB_TIMEOUT_MAX_US, &us, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(ret_text, SCHEDULE_INTERVAL_MAX, "%lld microseconds", (long long)us);
    return STATUS_OK;
}

static enum status check_key(const char *key, struct err *err)
{
    char known[KEYS_MAX] = "";
    size_t len = 0;
    struct nearest nearest = {.wanted = key};
    char hint[NEAREST_HINT_MAX];
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (strcmp(key, fields[i].key) == 0) {
            return STATUS_OK;
        }
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", i == 0 ? "" : ", ",
                                fields[i].key);
        nearest_try(&nearest, fields[i].key);
    }
    return err_fail(err, STATUS_INVALID, "unknown key '%.64s'; known: %s%s", key, known,
                    nearest_hint(&nearest, hint));
}

static enum status check_value(enum schedule_field field, const json_t *value, struct err *err)
{
    char interval[SCHEDULE_INTERVAL_MAX];
    bool is_given = value != NULL && (!json_is_null(value) || field == SCHEDULE_ARGS);
    bool is_any = fields[field].type == JSON_NULL;
    if (!is_given && fields[field].is_required) {
        return err_fail(err, STATUS_INVALID, "%s: must be given", fields[field].key);
    }
    if (!is_given || is_any) {
        return STATUS_OK;
    }
    bool is_good = fields[field].type == JSON_ARRAY ? job_tags_are_allowed(value)
                                                    : json_typeof(value) == fields[field].type;
    if (!is_good) {
        return err_fail(err, STATUS_INVALID, "%s: must be %s", fields[field].key,
                        fields[field].allowed);
    }
    if (schedule_is_interval(field)) {
        return schedule_interval(field, fields[field].key, json_string_value(value), interval, err);
    }
    if (field == SCHEDULE_PRIORITY || field == SCHEDULE_MAX_ATTEMPTS) {
        json_int_t number = json_integer_value(value);
        return number >= INT32_MIN && number <= INT32_MAX
                   ? STATUS_OK
                   : err_fail(err, STATUS_INVALID, "%s: out of range", fields[field].key);
    }
    return STATUS_OK;
}

static enum status check_schedule(json_t *schedule, struct err *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(schedule)) {
        return err_fail(err, STATUS_INVALID, "must be an object {\"name\": …, \"kind\": …, …}");
    }
    json_object_foreach(schedule, key, value)
    {
        enum status st = check_key(key, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        enum status st =
            check_value((enum schedule_field)i, json_object_get(schedule, fields[i].key), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static const char *name_of(const json_t *list, size_t i)
{
    const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
    return name == NULL ? "" : name;
}

enum status schedule_list_check(const json_t *list, struct err *err)
{
    json_auto_t *names = json_object();
    if (json_array_size(list) > SCHEDULES_MAX) {
        return err_fail(err, STATUS_INVALID, "schedules: at most %d", SCHEDULES_MAX);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = name_of(list, i);
        enum status st = check_schedule(json_array_get(list, i), err);
        if (st == STATUS_OK && json_object_get(names, name) != NULL) {
            st = err_fail(err, STATUS_INVALID, "name: occurs twice");
        }
        if (st == STATUS_OK && json_object_set_new(names, name, json_true()) != 0) {
            st = err_fail(err, STATUS_NOMEM, "out of memory");
        }
        if (st != STATUS_OK) {
            char place[PLACE_MAX];
            (void)snprintf(place, sizeof place, "schedules[%zu] '%.64s'", i, name);
            err_prefix(err, "%s", place);
            return st;
        }
    }
    return STATUS_OK;
}

enum status schedule_file_check(const char *text, size_t len, struct err *err)
{
    json_error_t where;
    json_auto_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) {
        return err_fail(err, STATUS_INVALID, "line %d, column %d: %s", where.line, where.column,
                        where.text);
    }
    const json_t *list = json_object_get(root, "schedules");
    if (!json_is_array(list) || json_object_size(root) != 1) {
        return err_fail(err, STATUS_INVALID,
                        "must be an object with one key: {\"schedules\": [{\"name\": …}, …]}");
    }
    return schedule_list_check(list, err);
}
