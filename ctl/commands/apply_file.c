/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/apply_file.h"

#include "base/nearest.h"
#include "ctl/commands/schedules.h"
#include "ctl/options/job_check.h"

#define SCHEDULES_KEY "schedules"
#define KNOWN_MAX 256
#define PLACE_MAX 256
#define FIELDS_MAX 10

enum form { FORM_FLAG, FORM_COUNT, FORM_RATE, FORM_TIME, FORM_TEXT, FORM_RULES };

static const char *const allowed[] = {
    [FORM_FLAG] = "true, false or null",
    [FORM_COUNT] = "a whole number up to 2147483647, or null",
    [FORM_RATE] = "1 to 100000, then /s, /m, /h or /d, such as \"50/m\", or null",
    [FORM_TIME] = "a text such as \"90s\", or null",
    [FORM_TEXT] = "a text or null",
    [FORM_RULES] =
        "a text such as \"90d\", an object such as {\"discarded\": \"90d\", \"\": \"7d\"}, or null",
};

/* In the order of sql/queries/admin_apply_values.sql. */
static const struct {
    const char *key;
    const char *noun;
    struct {
        const char *key;
        enum form form;
    } fields[FIELDS_MAX];
} sections[APPLY_SECTIONS] = {
    [APPLY_QUEUES] = {"queues",
                      "queue",
                      {{"paused", FORM_FLAG},
                       {"weight", FORM_COUNT},
                       {"max_running", FORM_COUNT},
                       {"rate", FORM_RATE},
                       {"max_open", FORM_COUNT},
                       {"retain", FORM_RULES}}},
    [APPLY_KINDS] = {"kinds",
                     "kind",
                     {{"paused", FORM_FLAG},
                      {"max_attempts", FORM_COUNT},
                      {"max_crashes", FORM_COUNT},
                      {"timeout", FORM_TIME},
                      {"grace", FORM_TIME},
                      {"backoff", FORM_TEXT},
                      {"keep_log", FORM_FLAG},
                      {"max_running", FORM_COUNT},
                      {"rate", FORM_RATE},
                      {"retain", FORM_RULES}}},
    [APPLY_KEYS] = {"keys", "key", {{"max_running", FORM_COUNT}, {"rate", FORM_RATE}}},
};

const char *apply_section_key(enum apply_section section)
{
    return sections[section].key;
}

const char *apply_section_noun(enum apply_section section)
{
    return sections[section].noun;
}

enum status apply_section_blank(enum apply_section section, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < FIELDS_MAX && sections[section].fields[i].key != NULL; i++) {
        const char *key = sections[section].fields[i].key;
        if (strcmp(key, "paused") == 0) {
            continue;
        }
        enum status st = buf_printf(out, err, "%s\"%s\": null", out->len == 0 ? "{" : ", ", key);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return buf_append_text(out, "}", err);
}

/* ---- values ---- */

static bool has_form(enum form form, const json_t *value)
{
    const char *text = json_string_value(value);
    switch (form) {
    case FORM_FLAG:
        return json_is_boolean(value);
    case FORM_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= INT32_MIN &&
               json_integer_value(value) <= INT32_MAX;
    case FORM_RATE:
        return text != NULL && verb_rate_is_valid(text);
    case FORM_RULES:
        return text != NULL || json_is_object(value);
    case FORM_TIME:
    case FORM_TEXT:
        break;
    }
    return text != NULL;
}

static enum status check_value(const char *place, enum form form, const json_t *value,
                               struct err *err)
{
    int64_t us = 0;
    if (json_is_null(value)) {
        return STATUS_OK;
    }
    if (!has_form(form, value)) {
        return err_fail(err, STATUS_INVALID, "%s: must be %s", place, allowed[form]);
    }
    if (form == FORM_TIME) {
        return job_duration_check(place, json_string_value(value), 1000, JOB_TIMEOUT_MAX_US, &us,
                                  err);
    }
    return STATUS_OK;
}

static enum status check_field(enum apply_section section, const char *place, const char *key,
                               const json_t *value, struct err *err)
{
    char known[KNOWN_MAX] = "";
    size_t len = 0;
    struct nearest nearest = {.wanted = key};
    char hint[NEAREST_HINT_MAX];
    for (size_t i = 0; i < FIELDS_MAX && sections[section].fields[i].key != NULL; i++) {
        if (strcmp(sections[section].fields[i].key, key) == 0) {
            return check_value(place, sections[section].fields[i].form, value, err);
        }
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", i == 0 ? "" : ", ",
                                sections[section].fields[i].key);
        nearest_try(&nearest, sections[section].fields[i].key);
    }
    return err_fail(err, STATUS_INVALID, "%s: unknown, must be one of %s%s", place, known,
                    nearest_hint(&nearest, hint));
}

/* ---- sections ---- */

static enum status check_section(enum apply_section section, json_t *things, struct err *err)
{
    const char *name = NULL;
    const char *key = NULL;
    json_t *thing = NULL;
    json_t *value = NULL;
    if (!json_is_object(things)) {
        return err_fail(err, STATUS_INVALID, "%s: must be an object {NAME: {…}, …}",
                        sections[section].key);
    }
    json_object_foreach(things, name, thing)
    {
        if (!json_is_object(thing)) {
            return err_fail(err, STATUS_INVALID, "%s.%.64s: must be an object",
                            sections[section].key, name);
        }
        json_object_foreach(thing, key, value)
        {
            char place[PLACE_MAX];
            (void)snprintf(place, sizeof place, "%s.%.64s.%.64s", sections[section].key, name, key);
            enum status st = check_field(section, place, key, value, err);
            if (st != STATUS_OK) {
                return st;
            }
        }
    }
    return STATUS_OK;
}

static enum status check_part(const char *key, json_t *value, struct err *err)
{
    struct nearest nearest = {.wanted = key};
    char hint[NEAREST_HINT_MAX];
    nearest_try(&nearest, SCHEDULES_KEY);
    for (size_t i = 0; i < APPLY_SECTIONS; i++) {
        nearest_try(&nearest, sections[i].key);
        if (strcmp(key, sections[i].key) == 0) {
            return check_section((enum apply_section)i, value, err);
        }
    }
    if (strcmp(key, SCHEDULES_KEY) != 0) {
        return err_fail(err, STATUS_INVALID,
                        "%.64s: unknown, must be one of queues, kinds, keys, schedules%s", key,
                        nearest_hint(&nearest, hint));
    }
    if (!json_is_array(value)) {
        return err_fail(err, STATUS_INVALID, "schedules: must be an array");
    }
    return schedule_list_check(value, err);
}

enum status apply_file_check(const char *text, size_t len, struct err *err)
{
    json_error_t where;
    const char *key = NULL;
    json_t *value = NULL;
    json_auto_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) {
        return err_fail(err, STATUS_INVALID, "line %d, column %d: %s", where.line, where.column,
                        where.text);
    }
    if (json_object_size(root) == 0) { /* or it is not an object */
        return err_fail(err, STATUS_INVALID,
                        "must be an object with some of queues, kinds, keys, schedules");
    }
    json_object_foreach(root, key, value)
    {
        enum status st = check_part(key, value, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}
