/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/given.h"

#include "base/clock.h"
#include "base/parse.h"
#include "ctl/options/args_file.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_time.h"
#include "model/backoff.h"
#include "model/job.h"

#include <assert.h>

#define VALUE_MAX ((size_t)4 << 20) /* more than a command line can hold, escaped */

void given_release(struct given *g)
{
    for (size_t i = 0; i < g->count; i++) {
        text_release(&g->values[i]);
    }
}

/* Returns the value of the option; NULL after a refusal. */
static const char *value_of(const struct given *g, const char *name)
{
    return g->err->status == STATUS_OK ? ctl_value(g->args, name) : NULL;
}

static struct text *new_value(struct given *g)
{
    assert(g->count < GIVEN_VALUES_MAX);
    struct text *value = &g->values[g->count++];
    *value = (struct text)TEXT_INIT(VALUE_MAX);
    return value;
}

static const char *end_value(const struct given *g, const struct text *value)
{
    return text_end(value, g->err) == STATUS_OK && value->buf.len > 0 ? text_str(value) : NULL;
}

const char *given_interval(struct given *g, const char *name, int64_t min_us, int64_t max_us)
{
    const char *text = value_of(g, name);
    char option[24];
    int64_t us = 0;
    (void)snprintf(option, sizeof option, "--%s", name);
    if (text == NULL ||
        job_duration_check(option, text, min_us, max_us, &us, g->err) != STATUS_OK) {
        return NULL;
    }
    struct text *value = new_value(g);
    text_put(value, "%lld microseconds", (long long)us);
    return end_value(g, value);
}

const char *given_number(struct given *g, const char *name, int64_t min, int64_t max)
{
    const char *text = value_of(g, name);
    int64_t number = 0;
    if (text != NULL && parse_i64(text, strlen(text), min, max, &number, g->err) != STATUS_OK) {
        err_prefix(g->err, "--%s", name);
    }
    return text;
}

static bool is_absent_or_default(const char *text)
{
    return text == NULL || strcmp(text, "default") == 0;
}

const char *given_attempts(struct given *g, const char *name)
{
    const char *text = value_of(g, name);
    int64_t value = 0;
    if (!is_absent_or_default(text) &&
        parse_i64(text, strlen(text), 1, INT32_MAX, &value, NULL) != STATUS_OK) {
        err_set(g->err, STATUS_INVALID, 0,
                "--%s: '%.40s' is not allowed; allowed: 1 to %d, or default", name, text,
                INT32_MAX);
    }
    return text;
}

static const char *time_or_default(struct given *g, const char *name, int64_t max_us,
                                   const char *max_text)
{
    const char *text = value_of(g, name);
    int64_t us = 0;
    if (is_absent_or_default(text)) {
        return text;
    }
    if (job_duration_check(name, text, US_PER_MS, max_us, &us, NULL) == STATUS_OK) {
        return given_interval(g, name, US_PER_MS, max_us);
    }
    err_set(g->err, STATUS_INVALID, 0,
            "--%s: '%.40s' is not allowed; allowed: 1ms to %s, or default", name, text, max_text);
    return NULL;
}

const char *given_timeout(struct given *g)
{
    return time_or_default(g, "timeout", JOB_TIMEOUT_MAX_US, "366d");
}

const char *given_grace(struct given *g)
{
    return time_or_default(g, "grace", JOB_KIND_GRACE_MS_MAX * US_PER_MS, "1h");
}

const char *given_backoff(struct given *g)
{
    const char *text = value_of(g, "backoff");
    struct backoff backoff;
    if (!is_absent_or_default(text) && backoff_parse(text, &backoff, NULL) != STATUS_OK) {
        err_set(g->err, STATUS_INVALID, 0,
                "--backoff: '%.40s' is not allowed; allowed: default, or %s", text, BACKOFF_FORMS);
    }
    return text;
}

const char *given_time(struct given *g, const char *name)
{
    const char *text = value_of(g, name);
    if (text != NULL && job_time_check(text, g->err) != STATUS_OK && strcmp(name, "at") != 0) {
        err_prefix(g->err, "--%s", name);
    }
    return text;
}

const char *given_json(struct given *g, const char *name, given_check *check)
{
    const char *json = value_of(g, name);
    if (json == NULL) {
        return NULL;
    }
    if (args_file_read(name, json, &new_value(g)->buf, &json, g->err) != STATUS_OK ||
        (check != NULL && check(json, strlen(json), g->err) != STATUS_OK)) {
        return NULL;
    }
    return json;
}

/* Puts one value of the option, or each of its elements if `is_split`. */
static void put_values(struct given *g, const char *name, const char *list, bool is_split,
                       struct text *out)
{
    size_t len = 0;
    for (const char *at = list; at != NULL; at = at[len] == ',' ? at + len + 1 : NULL) {
        len = is_split ? strcspn(at, ",") : strlen(at);
        if (is_split && len == 0) {
            err_set(g->err, STATUS_INVALID, 0,
                    "--%s: '%.40s' is not allowed; allowed: one or several, with a comma between "
                    "them",
                    name, list);
        }
        text_put(out, "%s", out->buf.len > 0 ? ",\"" : "{\"");
        text_put_escaped(out, at, len, "\"\\");
        text_put(out, "\"");
    }
}

const char *given_array(struct given *g, const char *name, bool is_split)
{
    if (value_of(g, name) == NULL) {
        return NULL;
    }
    struct text *value = new_value(g);
    for (size_t i = 0; i < g->args->given_count; i++) {
        if (strcmp(g->args->given[i].name, name) == 0) {
            put_values(g, name, g->args->given[i].value, is_split, value);
        }
    }
    text_put(value, "}");
    return end_value(g, value);
}

const char *given_full(struct given *g, const char *name)
{
    for (size_t i = 0; i < g->args->given_count; i++) {
        if (strcmp(g->args->given[i].name, name) == 0 && g->args->given[i].value[0] == '\0') {
            err_set(g->err, STATUS_INVALID, 0,
                    "--%s: '' is not allowed; allowed: a text that is not empty", name);
        }
    }
    return value_of(g, name);
}

const char *given_tags(struct given *g, const char *name)
{
    return given_full(g, name) != NULL ? given_array(g, name, false) : NULL;
}

const char *given_ids(struct given *g, const char *name)
{
    size_t len = 0;
    for (const char *at = value_of(g, name); at != NULL;
         at = at[len] == ',' ? at + len + 1 : NULL) {
        int64_t id = 0;
        len = strcspn(at, ",");
        if (parse_i64(at, len, 1, INT64_MAX, &id, g->err) != STATUS_OK) {
            err_prefix(g->err, "--%s", name);
            return NULL;
        }
    }
    return given_array(g, name, true);
}

void given_either(struct given *g, const char *one, const char *other)
{
    if (ctl_value(g->args, one) != NULL && ctl_value(g->args, other) != NULL) {
        err_set(g->err, STATUS_INVALID, 0, "allowed: either --%s or --%s", one, other);
    }
}

void given_rest(struct given *g, struct verb_call *call)
{
    for (size_t i = 0; i < call->verb->param_count; i++) {
        char name[CTL_NAME_MAX];
        ctl_option_name(call->verb->params[i].name, name);
        call->params[i] = call->params[i] == NULL ? value_of(g, name + 2) : call->params[i];
    }
}
