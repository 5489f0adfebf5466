/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/job_line.h"

#include "base/clock.h"
#include "base/parse.h"
#include "model/job.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>

/* The columns of sql/queries/admin_copy.sql, in their order; `delay` is another way to say `at`. */
#define KEY_MAP(X)                  \
    X(KIND, "kind")                 \
    X(ARGS, "args")                 \
    X(QUEUE, "queue")               \
    X(PRIORITY, "priority")         \
    X(AT, "at")                     \
    X(MAX_ATTEMPTS, "max_attempts") \
    X(TIMEOUT, "timeout")           \
    X(TAGS, "tags")                 \
    X(METADATA, "metadata")         \
    X(DELAY, "delay")

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

/* ---- where each value stands in the line ---- */

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

/* The end of the value at p. The line was parsed already, so it is well-formed. */
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
            return err_fail(err, STATUS_INVALID, "%.*s: unknown key; known: %s",
                            (int)(len < 64 ? len : 64), name, known_keys + strlen(", "));
        }
        if (*value != 'n') {
            ret_values[key] = (struct span){.text = value, .len = (size_t)(p - value)};
        }
        p = skip_space(p);
        p = *p == ',' ? skip_space(p + 1) : p;
    }
    return STATUS_OK;
}

/* ---- checks ---- */

/* The parser's reason; what is JSON and yet refused is not called "not JSON". */
static enum status refuse_json(const char *name, const json_error_t *where, struct err *err)
{
    enum json_error_code code = json_error_code(where);
    if (code == json_error_null_character || code == json_error_null_byte_in_key) {
        return err_fail(err, STATUS_INVALID, "%s\\u0000 is not allowed in a text (column %d)", name,
                        where->column);
    }
    if (code == json_error_numeric_overflow) {
        return err_fail(err, STATUS_INVALID, "%sa number is too large (column %d)", name,
                        where->column);
    }
    return err_fail(err, STATUS_INVALID, "%s%s%s (column %d)", name,
                    code == json_error_duplicate_key ? "" : "not JSON: ", where->text,
                    where->column);
}

enum status job_args_check(const char *json, size_t len, struct err *err)
{
    if (len > JOB_ARGS_MAX) {
        return err_fail(err, STATUS_INVALID, "args: %zu bytes of JSON text; allowed: at most %zu",
                        len, JOB_ARGS_MAX);
    }
    json_error_t where;
    json_auto_t *value = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    if (value == NULL) {
        return refuse_json("args: ", &where, err);
    }
    return STATUS_OK;
}

enum status job_metadata_check(const char *json, size_t len, struct err *err)
{
    if (len > JOB_METADATA_MAX) {
        return err_fail(err, STATUS_INVALID,
                        "metadata: %zu bytes of JSON text; allowed: at most %zu", len,
                        JOB_METADATA_MAX);
    }
    json_error_t where;
    json_auto_t *value = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    if (value == NULL) {
        return refuse_json("metadata: ", &where, err);
    }
    if (!json_is_object(value)) {
        return err_fail(err, STATUS_INVALID, "metadata: allowed: a JSON object");
    }
    return STATUS_OK;
}

enum status job_duration_check(const char *name, const char *text, int64_t min_us, int64_t max_us,
                               int64_t *ret_us, struct err *err)
{
    enum status st = parse_duration_us(text, ret_us, err);
    if (st == STATUS_OK && (*ret_us < min_us || *ret_us > max_us)) {
        st = err_fail(err, STATUS_INVALID, "'%.40s' is not allowed; allowed: %s to %lld days", text,
                      min_us == 0 ? "0" : "1ms", (long long)(max_us / (86400 * US_PER_S)));
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s", name);
    }
    return st;
}

/* Does `text` look like the pattern ('0' = a digit, 'T' = T or a space)? Returns its end or
 * NULL. */
static const char *match(const char *text, const char *pattern)
{
    for (; *pattern != '\0'; pattern++, text++) {
        bool is_digit = *text >= '0' && *text <= '9';
        bool is_gap = *text == 'T' || *text == ' ';
        if (*pattern == '0' ? !is_digit : *pattern == 'T' ? !is_gap : *text != *pattern) {
            return NULL;
        }
    }
    return text;
}

enum status job_time_check(const char *text, struct err *err)
{
    const char *p = match(text, "0000-00-00T00:00:00");
    if (p != NULL && *p == '.') {
        size_t digits = strspn(p + 1, "0123456789");
        p = digits == 0 ? NULL : p + 1 + digits;
    }
    if (p != NULL && *p == 'Z') {
        p++;
    } else if (p != NULL && (*p == '+' || *p == '-')) {
        p = match(p + 1, "00:00");
    } else {
        p = NULL;
    }
    if (p == NULL || *p != '\0') {
        return err_fail(err, STATUS_INVALID,
                        "at: '%.40s' is not allowed; allowed: a time with its zone, such as "
                        "2026-01-31T08:00:00Z or 2026-01-31T08:00:00+01:00",
                        text);
    }
    return STATUS_OK;
}

static enum status wrong_type(enum key key, const char *wanted, struct err *err)
{
    return err_fail(err, STATUS_INVALID, "%s: allowed: %s", key_names[key], wanted);
}

/* ---- columns ---- */

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
        return err_fail(err, STATUS_INVALID, "delay: too long");
    }
    return buf_printf(out, err, "%s.%06d+00", text, (int)(us % US_PER_S));
}

static enum status put_scheduled_at(const json_t *job, const struct span *values, int64_t now_us,
                                    struct buf *out, struct err *err)
{
    const struct span *delay = &values[KEY_DELAY];
    int64_t delay_us = 0;
    if (values[KEY_AT].text != NULL) {
        const char *at = json_string_value(json_object_get(job, "at"));
        if (delay->text != NULL) {
            return err_fail(err, STATUS_INVALID, "at: allowed: either at or delay");
        }
        enum status st = job_time_check(at == NULL ? "" : at, err);
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

static enum status put_timeout(const json_t *job, const struct span *v, struct buf *out,
                               struct err *err)
{
    if (v->text == NULL) {
        return buf_append_text(out, "\\N", err);
    }
    const json_t *given = json_object_get(job, "timeout");
    char number[24] = "";
    if (json_is_integer(given) && v->len < sizeof number) {
        memcpy(number, v->text, v->len);
    } else if (!json_is_string(given)) {
        return wrong_type(KEY_TIMEOUT, "a text such as \"30s\", or whole seconds", err);
    }
    int64_t us = 0;
    enum status st =
        job_duration_check("timeout", json_is_string(given) ? json_string_value(given) : number,
                           US_PER_MS, JOB_TIMEOUT_MAX_US, &us, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_printf(out, err, "%lld microseconds", (long long)us);
}

static enum status put_tag(struct buf *array, bool is_first, const char *text, struct err *err)
{
    enum status st = buf_append_text(array, is_first ? "\"" : ",\"", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append_escaped(array, text, strlen(text), "\"\\", err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_byte(array, '"', err);
}

/* An array literal of PostgreSQL: {"a","b"}, escaped once for the array and once for COPY. */
static enum status put_tags(const json_t *job, const struct span *v, struct buf *out,
                            struct err *err)
{
    const json_t *tags = json_object_get(job, "tags");
    if (v->text == NULL) {
        return buf_append_text(out, "\\N", err);
    }
    if (!json_is_array(tags)) {
        return wrong_type(KEY_TAGS, "an array of texts", err);
    }
    autobuf struct buf array = BUF_INIT(JOB_LINE_MAX);
    enum status st = buf_append_text(&array, "{", err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t i = 0;
    const json_t *tag = NULL;
    json_array_foreach(tags, i, tag)
    {
        if (!json_is_string(tag)) {
            return wrong_type(KEY_TAGS, "an array of texts", err);
        }
        st = put_tag(&array, i == 0, json_string_value(tag), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    st = buf_append_byte(&array, '}', err);
    if (st != STATUS_OK) {
        return st;
    }
    return put_escaped(out, buf_at(&array), array.len, err);
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
    return put_escaped(out, v->text, v->len, err);
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
        return put_timeout(job, v, out, err);
    case KEY_TAGS:
        return put_tags(job, v, out, err);
    case KEY_DELAY:
    case KEY_COUNT:
        break;
    }
    return STATUS_OK;
}

static bool is_blank(const char *line, size_t len)
{
    size_t i = 0;
    while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) {
        i++;
    }
    return i == len;
}

enum status job_line_row(const char *line, size_t len, int64_t now_us, struct buf *out,
                         struct err *err)
{
    json_error_t where;
    if (is_blank(line, len)) {
        return err_fail(err, STATUS_INVALID, "empty; allowed: one JSON object per line");
    }
    json_auto_t *job = json_loadb(line, len, JSON_REJECT_DUPLICATES, &where);
    if (job == NULL) {
        return refuse_json("", &where, err);
    }
    if (!json_is_object(job)) {
        return err_fail(err, STATUS_INVALID, "allowed: one JSON object per line");
    }
    struct span values[KEY_COUNT] = {{0}};
    enum status st = find_values(line, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (enum key key = KEY_KIND; key < KEY_DELAY; key++) {
        st = put_column(job, key, values, now_us, out, err);
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
