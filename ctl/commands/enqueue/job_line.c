/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/enqueue/job_line.h"

#include "base/clock.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/text.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_time.h"
#include "model/backoff.h"
#include "model/job.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>

/* The columns of sql/queries/admin_copy.sql, in their order. `delay` and `scheduled_at` are other
 * forms of `at`. Only the function enqueue_many() accepts those after them. */
#define KEY_MAP(X)                    \
    X(KIND, "kind")                   \
    X(ARGS, "args")                   \
    X(QUEUE, "queue")                 \
    X(PRIORITY, "priority")           \
    X(AT, "at")                       \
    X(MAX_ATTEMPTS, "max_attempts")   \
    X(TIMEOUT, "timeout")             \
    X(TAGS, "tags")                   \
    X(METADATA, "metadata")           \
    X(BACKOFF, "backoff")             \
    X(DELAY, "delay")                 \
    X(SCHEDULED_AT, "scheduled_at")   \
    X(UNIQUE_KEY, "unique_key")       \
    X(UNIQUE_BY, "unique_by")         \
    X(UNIQUE_FOR, "unique_for")       \
    X(UNIQUE_STATES, "unique_states") \
    X(ON_CONFLICT, "on_conflict")     \
    X(EXCLUSIVE_KEY, "exclusive_key") \
    X(SECOND_KEY, "second_key")       \
    X(SHARE_KEY, "share_key")         \
    X(AFTER, "after")                 \
    X(IF_DEAD, "if_dead")             \
    X(EXPIRES_AT, "expires_at")       \
    X(GRACE, "grace")

enum key {
#define X(name, text) KEY_##name,
    KEY_MAP(X)
#undef X
        KEY_COUNT
};

static const char *const key_names[] = {
#define X(name, text) text,
    KEY_MAP(X)
#undef X
};

#define X(name, text) ", " text
static const char known_keys[] = KEY_MAP(X);
#undef X

struct span {
    const char *text; /* NULL = not given, or null */
    size_t len;
};

/* ---- positions of the values in the line ---- */

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

static const char *skip_string(const char *p)
{
    for (p++; *p != '"'; p++) {
        p += *p == '\\';
    }
    return p + 1;
}

/* Returns the end of the value at p. The line has been parsed already, so it is well-formed. */
static const char *skip_value(const char *p)
{
    int depth = 0;
    do {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p++;
        if (depth == 0 && strchr("{}[]", p[-1]) == NULL) {
            p += strcspn(p, " \t\r\n,}]");
        }
    } while (depth > 0);
    return p;
}

static enum status refuse_key(const char *name, size_t len, struct err *err)
{
    char wanted[65];
    char hint[NEAREST_HINT_MAX];
    (void)snprintf(wanted, sizeof wanted, "%.*s", (int)(len < 64 ? len : 64), name);
    struct nearest nearest = {.wanted = wanted};
    for (size_t i = 0; i < KEY_COUNT; i++) {
        nearest_try(&nearest, key_names[i]);
    }
    return err_fail(err, STATUS_INVALID, "%s: unknown key; known: %s%s", wanted,
                    known_keys + strlen(", "), nearest_hint(&nearest, hint));
}

static enum status find_values(const char *line, struct span *ret_values, struct err *err)
{
    const char *p = skip_space(skip_space(line) + 1);
    while (*p != '}') {
        const char *name = p + 1;
        p = skip_string(p);
        size_t len = (size_t)(p - name) - 1;
        const char *value = skip_space(skip_space(p) + 1);
        p = skip_value(value);
        int key = 0;
        while (key < KEY_COUNT &&
               (strlen(key_names[key]) != len || memcmp(key_names[key], name, len) != 0)) {
            key++;
        }
        if (key == KEY_COUNT) {
            return refuse_key(name, len, err);
        }
        if (*value != 'n') {
            ret_values[key] = (struct span){.text = value, .len = (size_t)(p - value)};
        }
        p = skip_space(p);
        p = *p == ',' ? skip_space(p + 1) : p;
    }
    return STATUS_OK;
}

/* ---- columns ---- */

static enum status wrong_type(enum key key, const char *wanted, struct err *err)
{
    return err_fail(err, STATUS_INVALID, "%s: allowed: %s", key_names[key], wanted);
}

static enum status put_escaped(struct buf *out, const char *text, size_t len, struct err *err)
{
    enum status st = buf_reserve(out, 2 * len, err);
    if (st != STATUS_OK) {
        return st;
    }
    char *to = buf_at(out) + out->len;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        char letter = c == '\\' ? '\\' : c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : '\0';
        if (letter != '\0') {
            to[n++] = '\\';
        }
        to[n++] = letter != '\0' ? letter : c;
    }
    buf_grew(out, n);
    return STATUS_OK;
}

static enum status put_name(const json_t *job, enum key key, const struct span *v, struct buf *out,
                            struct err *err)
{
    const char *name = json_string_value(json_object_get(job, key_names[key]));
    if (v->text == NULL && key == KEY_QUEUE) {
        return buf_append_text(out, "default", err);
    }
    if (name == NULL) {
        return wrong_type(key, key == KEY_KIND ? "a text, it must be given" : "a text", err);
    }
    enum status st = key == KEY_KIND ? job_kind_check(name, err) : job_queue_check(name, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(out, name, err);
}

static enum status put_number(enum key key, const struct span *v, int64_t min, int64_t max,
                              const char *standard, struct buf *out, struct err *err)
{
    int64_t value = 0;
    if (v->text == NULL) {
        return buf_append_text(out, standard, err);
    }
    enum status st = parse_i64(v->text, v->len, min, max, &value, err);
    if (st != STATUS_OK) {
        err_prefix(err, "%s", key_names[key]);
        return st;
    }
    return buf_printf(out, err, "%lld", (long long)value);
}

static enum status put_unix_us(int64_t us, struct buf *out, struct err *err)
{
    time_t seconds = (time_t)(us / US_PER_S);
    struct tm tm;
    char text[40];
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0) {
        return err_fail(err, STATUS_INVALID, "delay: is too long");
    }
    return buf_printf(out, err, "%s.%06d+00", text, (int)(us % US_PER_S));
}

static enum status put_scheduled_at(const json_t *job, const struct span *values, int64_t now_us,
                                    struct buf *out, struct err *err)
{
    const struct span *delay = &values[KEY_DELAY];
    enum key key = values[KEY_AT].text != NULL ? KEY_AT : KEY_SCHEDULED_AT;
    int64_t delay_us = 0;
    if (values[key].text != NULL) {
        const char *at = json_string_value(json_object_get(job, key_names[key]));
        if (delay->text != NULL || (key == KEY_AT && values[KEY_SCHEDULED_AT].text != NULL)) {
            return err_fail(err, STATUS_INVALID, "at: allowed: one of at, delay and scheduled_at");
        }
        if (at == NULL) {
            return wrong_type(key, "a text such as \"2026-01-31T08:00:00Z\"", err);
        }
        enum status st = job_time_check(at, err);
        if (st != STATUS_OK) {
            return st;
        }
        return buf_append_text(out, at, err);
    }
    if (delay->text != NULL) {
        const json_t *given = json_object_get(job, "delay");
        char number[24] = "";
        if (json_is_integer(given) && delay->len < sizeof number) {
            memcpy(number, delay->text, delay->len);
        } else if (!json_is_string(given)) {
            return wrong_type(KEY_DELAY, "a text such as \"10s\", or whole seconds", err);
        }
        enum status st =
            job_duration_check("delay", json_is_string(given) ? json_string_value(given) : number,
                               0, JOB_DELAY_MAX_US, &delay_us, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return put_unix_us(now_us + delay_us, out, err);
}

/* Appends an interval of PostgreSQL. */
static enum status put_interval(const json_t *job, enum key key, const struct span *v,
                                struct buf *out, struct err *err)
{
    if (v->text == NULL) {
        return buf_append_text(out, "\\N", err);
    }
    const json_t *given = json_object_get(job, key_names[key]);
    char number[24] = "";
    if (json_is_integer(given) && v->len < sizeof number) {
        memcpy(number, v->text, v->len);
    } else if (!json_is_string(given)) {
        return wrong_type(key, "a text such as \"30s\", or whole seconds", err);
    }
    int64_t us = 0;
    enum status st = job_duration_check(key_names[key],
                                        json_is_string(given) ? json_string_value(given) : number,
                                        US_PER_MS, JOB_TIMEOUT_MAX_US, &us, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_printf(out, err, "%lld microseconds", (long long)us);
}

/* Appends an array literal of PostgreSQL: {"a","b"}, escaped once for the array and once for
 * COPY. */
static enum status put_tags(const json_t *job, const struct span *v, struct buf *out,
                            struct err *err)
{
    const json_t *tags = json_object_get(job, "tags");
    if (v->text == NULL) {
        return buf_append_text(out, "\\N", err);
    }
    if (!job_tags_are_allowed(tags)) {
        return wrong_type(KEY_TAGS, JOB_TAGS_ALLOWED, err);
    }
    autotext struct text array = TEXT_INIT(JOB_LINE_MAX);
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        text_put(&array, i == 0 ? "{\"" : ",\"");
        text_put_escaped(&array, tag, strlen(tag), "\"\\");
        text_put(&array, "\"");
    }
    text_put(&array, json_array_size(tags) == 0 ? "{}" : "}");
    enum status st = text_end(&array, err);
    if (st != STATUS_OK) {
        return st;
    }
    return put_escaped(out, text_str(&array), array.buf.len, err);
}

static enum status put_json(enum key key, const struct span *v, size_t max, const char *standard,
                            struct buf *out, struct err *err)
{
    if (v->text == NULL) {
        return buf_append_text(out, standard, err);
    }
    if (v->len > max) {
        return err_fail(err, STATUS_INVALID, "%s: %zu bytes of JSON text; allowed: at most %zu",
                        key_names[key], v->len, max);
    }
    if (key == KEY_METADATA && v->text[0] != '{') {
        return wrong_type(key, "a JSON object", err);
    }
    return put_escaped(out, v->text, v->len, err);
}

static enum status put_backoff(const json_t *job, const struct span *v, struct buf *out,
                               struct err *err)
{
    struct backoff backoff;
    const char *form = json_string_value(json_object_get(job, key_names[KEY_BACKOFF]));
    if (v->text == NULL) {
        return buf_append_text(out, "\\N", err);
    }
    if (form == NULL) {
        return wrong_type(KEY_BACKOFF, "a text such as \"fixed:30s\"", err);
    }
    enum status st = backoff_parse(form, &backoff, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(out, form, err);
}

static enum status put_column(const json_t *job, enum key key, const struct span *values,
                              int64_t now_us, struct buf *out, struct err *err)
{
    const struct span *v = &values[key];
    switch (key) {
    case KEY_KIND:
    case KEY_QUEUE:
        return put_name(job, key, v, out, err);
    case KEY_ARGS:
        return put_json(key, v, JOB_ARGS_MAX, "{}", out, err);
    case KEY_METADATA:
        return put_json(key, v, JOB_METADATA_MAX, "\\N", out, err);
    case KEY_PRIORITY:
        return put_number(key, v, 0, JOB_PRIORITY_MAX, "4", out, err);
    case KEY_MAX_ATTEMPTS:
        return put_number(key, v, 1, INT32_MAX, "\\N", out, err);
    case KEY_AT:
        return put_scheduled_at(job, values, now_us, out, err);
    case KEY_TIMEOUT:
        return put_interval(job, key, v, out, err);
    case KEY_TAGS:
        return put_tags(job, v, out, err);
    case KEY_BACKOFF:
        return put_backoff(job, v, out, err);
    case KEY_DELAY:
    case KEY_SCHEDULED_AT:
    case KEY_UNIQUE_KEY:
    case KEY_UNIQUE_BY:
    case KEY_UNIQUE_FOR:
    case KEY_UNIQUE_STATES:
    case KEY_ON_CONFLICT:
    case KEY_EXCLUSIVE_KEY:
    case KEY_SECOND_KEY:
    case KEY_SHARE_KEY:
    case KEY_AFTER:
    case KEY_IF_DEAD:
    case KEY_EXPIRES_AT:
    case KEY_GRACE:
    case KEY_COUNT:
        break;
    }
    return STATUS_OK;
}

static enum status put_row(const json_t *job, const struct span *values, int64_t now_us,
                           struct buf *out, struct err *err)
{
    for (enum key key = KEY_KIND; key < KEY_DELAY; key++) {
        enum status st = put_column(job, key, values, now_us, out, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = buf_append_text(out, key + 1 < KEY_DELAY ? "\t" : "\n", err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* ---- an element of enqueue_many() ---- */

static bool is_array_of(const json_t *array, bool is_of_texts)
{
    size_t i = 0;
    const json_t *element = NULL;
    json_array_foreach(array, i, element)
    {
        if (is_of_texts ? !json_is_string(element) : !json_is_integer(element)) {
            return false;
        }
    }
    return json_is_array(array);
}

static bool is_interval(enum key key)
{
    return key == KEY_TIMEOUT || key == KEY_UNIQUE_FOR || key == KEY_GRACE;
}

static enum status check_type(const json_t *job, enum key key, struct err *err)
{
    const json_t *value = json_object_get(job, key_names[key]);
    if (key == KEY_AFTER) {
        return is_array_of(value, false) ? STATUS_OK : wrong_type(key, "an array of ids", err);
    }
    if (key == KEY_UNIQUE_BY) {
        return is_array_of(value, true) ? STATUS_OK : wrong_type(key, "an array of texts", err);
    }
    if (key == KEY_EXPIRES_AT && json_is_string(value)) {
        enum status st = job_time_check(json_string_value(value), err);
        err_prefix(err, "%s", key_names[key]);
        return st;
    }
    return key <= KEY_SCHEDULED_AT || is_interval(key) || json_is_string(value)
               ? STATUS_OK
               : wrong_type(key, "a text", err);
}

/* The texts that this function makes itself need no escapes. */
static enum status put_value(const json_t *job, enum key key, const struct span *values,
                             int64_t now_us, struct buf *out, struct err *err)
{
    bool is_time = key == KEY_AT || key == KEY_DELAY || key == KEY_SCHEDULED_AT;
    if (!is_time && !is_interval(key)) {
        return buf_append(out, values[key].text, values[key].len, err);
    }
    enum status st = buf_append_byte(out, '"', err);
    if (st != STATUS_OK) {
        return st;
    }
    st = is_time ? put_scheduled_at(job, values, now_us, out, err)
                 : put_interval(job, key, &values[key], out, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_byte(out, '"', err);
}

static enum status put_member(const json_t *job, enum key key, const struct span *values,
                              int64_t now_us, struct buf *out, struct err *err)
{
    bool is_first = buf_at(out)[out->len - 1] == '{';
    bool is_time = key == KEY_AT || key == KEY_DELAY;
    enum status st = check_type(job, key, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_printf(out, err, "%s\"%s\":", is_first ? "" : ",",
                    key_names[is_time ? KEY_SCHEDULED_AT : key]);
    if (st != STATUS_OK) {
        return st;
    }
    return put_value(job, key, values, now_us, out, err);
}

static enum status put_request(const json_t *job, const struct span *values, int64_t now_us,
                               struct buf *out, struct err *err)
{
    enum status st = buf_append_text(out, out->len == 0 ? "[{" : ",{", err);
    for (enum key key = KEY_KIND; st == STATUS_OK && key < KEY_COUNT; key++) {
        if (values[key].text != NULL) {
            st = put_member(job, key, values, now_us, out, err);
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_byte(out, '}', err);
}

/* ---- a line ---- */

static bool is_blank(const char *line, size_t len)
{
    size_t i = 0;
    while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) {
        i++;
    }
    return i == len;
}

enum status job_line_put(const char *line, size_t len, int64_t now_us, bool *is_request,
                         struct buf *row, struct buf *request, struct err *err)
{
    json_error_t where;
    if (is_blank(line, len)) {
        return err_fail(err, STATUS_INVALID, "empty; allowed: one JSON object per line");
    }
    json_auto_t *job = json_loadb(line, len, JSON_REJECT_DUPLICATES, &where);
    if (job == NULL) {
        return job_refuse_json("", &where, err);
    }
    if (!json_is_object(job)) {
        return err_fail(err, STATUS_INVALID, "allowed: one JSON object per line");
    }
    struct span values[KEY_COUNT] = {{0}};
    enum status st = find_values(line, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_row(job, values, now_us, row, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (enum key key = KEY_UNIQUE_KEY; key < KEY_COUNT; key++) {
        *is_request = *is_request || values[key].text != NULL;
    }
    return *is_request ? put_request(job, values, now_us, request, err) : STATUS_OK;
}

/* Rewrites "… new row for relation "job" violates check constraint "RULE" (FIELD: WHAT IS
 * ALLOWED)". */
void job_line_name_refusal(struct err *err)
{
    char *said = strstr(err->msg, "new row for relation \"job\"");
    char *text = said != NULL ? strstr(said, "\" (") : NULL;
    if (text == NULL) {
        return;
    }
    text += strlen("\" (");
    const char *end = strrchr(text, ')');
    size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
    memmove(said, text, len);
    said[len] = '\0';
}
