/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of parameter values, and the text of the refusal for each. */
#include "base/clock.h"
#include "base/parse.h"
#include "model/backoff.h"
#include "model/job.h"
#include "verbs/verb.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define DAY_US (86400 * US_PER_S)
#define DAYS_MAX 3650
#define ALLOWED_MAX 200

bool verb_rate_is_valid(const char *rate)
{
    int64_t starts = 0;
    size_t digits = strcspn(rate, "/");
    return rate[digits] == '/' && strlen(rate) == digits + 2 &&
           strchr("smhd", rate[digits + 1]) != NULL &&
           parse_i64(rate, digits, 1, 100000, &starts, NULL) == STATUS_OK;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = 0;
    for (const char *at = choices; *at != '\0'; at += len + (at[len] == '|')) {
        len = strcspn(at, "|");
        if (strlen(text) == len && strncmp(at, text, len) == 0) {
            return true;
        }
    }
    return false;
}

/* "on|off" → "on or off". */
static void say_choices(const char *choices, char ret[ALLOWED_MAX])
{
    const char *last = strrchr(choices, '|');
    size_t at = 0;
    for (const char *p = choices; *p != '\0' && at + 5 < ALLOWED_MAX; p++) {
        const char letter[] = {*p, '\0'};
        const char *gap = p == last ? " or " : ", ";
        at += (size_t)snprintf(ret + at, ALLOWED_MAX - at, "%s", *p == '|' ? gap : letter);
    }
}

static bool read_days(const char *text, char room[VERB_ROOM])
{
    int64_t us = 0;
    bool is_none = strcmp(text, "none") == 0;
    bool is_ok = is_none || (parse_duration_us(text, &us, NULL) == STATUS_OK && us % DAY_US == 0 &&
                             us >= DAY_US && us <= DAYS_MAX * DAY_US);
    (void)snprintf(room, VERB_ROOM, "%lld days", (long long)(us / DAY_US));
    return is_ok;
}

static bool read_duration(const char *most, const char *text, char room[VERB_ROOM])
{
    int64_t us = 0;
    int64_t most_us = 0;
    bool is_ok = parse_duration_us(most, &most_us, NULL) == STATUS_OK &&
                 parse_duration_us(text, &us, NULL) == STATUS_OK && us >= US_PER_MS &&
                 us <= most_us;
    (void)snprintf(room, VERB_ROOM, "%lld microseconds", (long long)us);
    return is_ok;
}

/* True if the text has the parameter's form; if not, `allowed` describes the form. For forms whose
 * values are converted, `room` receives the converted value. */
static bool has_form(const struct verb_param *p, const char *text, char room[VERB_ROOM],
                     char allowed[ALLOWED_MAX])
{
    struct backoff backoff;
    int64_t number = 0;
    switch (p->form) {
    case PARAM_NUMBER:
        (void)snprintf(allowed, ALLOWED_MAX, "%lld to %lld", (long long)p->min, (long long)p->max);
        return parse_i64(text, strlen(text), p->min, p->max, &number, NULL) == STATUS_OK;
    case PARAM_CHOICE:
        say_choices(p->choices, allowed);
        return is_choice(p->choices, text);
    case PARAM_RATE:
        (void)snprintf(allowed, ALLOWED_MAX, "1 to 100000, then /s, /m, /h or /d");
        return verb_rate_is_valid(text);
    case PARAM_DAYS:
        (void)snprintf(allowed, ALLOWED_MAX, "whole days, 1d to %dd", DAYS_MAX);
        return read_days(text, room);
    case PARAM_DURATION:
        (void)snprintf(allowed, ALLOWED_MAX, "1ms to %s", p->most);
        return read_duration(p->most, text, room);
    case PARAM_BACKOFF:
        (void)snprintf(allowed, ALLOWED_MAX, "%s", BACKOFF_FORMS);
        return strcmp(text, "default") == 0 || backoff_parse(text, &backoff, NULL) == STATUS_OK;
    case PARAM_TEXT:
    case PARAM_FLAG:
    case PARAM_QUEUE:
    case PARAM_KIND:
        break;
    }
    return true;
}

/* Lists the default of a job or kind among the allowed values, since it is an option of jobs as
 * well. */
static enum status refuse(const struct verb_param *p, const char *label, const char *text,
                          const char *allowed, struct err *err)
{
    bool has_other = p->other != NULL;
    const char *other = has_other ? p->other : "";
    if (p->form == PARAM_BACKOFF) {
        return err_fail(err, STATUS_INVALID, "%s: '%.40s' is not allowed; allowed: default, or %s",
                        label, text, allowed);
    }
    if (p->form != PARAM_DAYS && strcmp(other, "default") == 0) {
        return err_fail(err, STATUS_INVALID, "%s: '%.40s' is not allowed; allowed: %s, or default",
                        label, text, allowed);
    }
    return err_fail(err, STATUS_INVALID, "%s '%.40s': must be %s%s%s%s", label, text, allowed,
                    has_other ? ", or " : "", other,
                    p->form == PARAM_DAYS ? "; none is for completed jobs of a kind" : "");
}

static enum status set_value(const struct verb_param *p, const char *label, const char *text,
                             const char **ret, char room[VERB_ROOM], struct err *err)
{
    char allowed[ALLOWED_MAX] = "";
    *ret = text;
    if (p->form == PARAM_QUEUE) {
        return job_queue_check(text, err);
    }
    if (p->form == PARAM_FLAG) {
        *ret = text[0] == '\0' ? "t" : text;
        return STATUS_OK;
    }
    if (p->form == PARAM_KIND) {
        return job_kind_check(text, err);
    }
    if (p->other != NULL && strcmp(text, p->other) == 0) {
        *ret = p->is_other_passed ? text : NULL;
        return STATUS_OK;
    }
    if (!has_form(p, text, room, allowed)) {
        return refuse(p, label, text, allowed, err);
    }
    *ret = room[0] != '\0' ? room : text;
    return STATUS_OK;
}

static size_t find_param(const struct verb *verb, const char *name)
{
    size_t i = 0;
    while (i < verb->param_count && strcmp(verb->params[i].name, name) != 0) {
        i++;
    }
    return i;
}

void verb_put(struct verb_call *call, const char *name, const char *text)
{
    size_t i = find_param(call->verb, name);
    if (i < call->verb->param_count) {
        call->params[i] = text;
    }
}

enum status verb_set(struct verb_call *call, const char *name, const char *label, const char *text,
                     struct err *err)
{
    size_t i = find_param(call->verb, name);
    assert(i < call->verb->param_count);
    call->params[i] = NULL;
    call->rooms[i][0] = '\0';
    if (text == NULL) {
        return STATUS_OK;
    }
    return set_value(&call->verb->params[i], label, text, &call->params[i], call->rooms[i], err);
}
