/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "base/log_out.h"
#include "base/parse.h"

#include <stdatomic.h>
#include <stdio.h>

#define LINE_END_MAX 2 /* "}" and the newline */
#define NUMBER_MAX 24
#define ESCAPED_MAX 8
#define COMPLAINT_FIRST_US (1 * US_PER_S)
#define COMPLAINT_MAX_US (60 * US_PER_S)
#define STOP_MAX_US US_PER_S

static const char *log_program = "claimd";
static atomic_int log_max_level = LOG_INFO;
static atomic_int log_shape = LOG_LOGFMT;
static const char *const level_names[] = {"error", "warn", "info", "debug"};
static atomic_ullong log_counts[LOG_DEBUG + 1];

struct line {
    char text[LOG_LINE_MAX];
    size_t len;
};

void log_init(const char *program, enum log_level max_level)
{
    log_program = program;
    atomic_store(&log_max_level, max_level);
}

void log_set(enum log_level max_level, enum log_format format)
{
    atomic_store(&log_max_level, max_level);
    atomic_store(&log_shape, format);
}

void log_to(int fd)
{
    log_out_to(fd);
}

enum log_format log_format(void)
{
    return (enum log_format)atomic_load(&log_shape);
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load(&log_max_level);
}

uint64_t log_count(enum log_level level)
{
    return atomic_load(&log_counts[level]);
}

static size_t room(const struct line *l)
{
    return sizeof l->text - LINE_END_MAX - l->len;
}

static void put(struct line *l, const char *bytes, size_t len)
{
    size_t n = len < room(l) ? len : room(l);
    memcpy(l->text + l->len, bytes, n);
    l->len += n;
}

static void put_text(struct line *l, const char *text)
{
    put(l, text, strlen(text));
}

static bool is_special(unsigned char c)
{
    return c < ' ' || c == '"' || c == '\\' || c == 0x7F;
}

static bool is_bare(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (is_special((unsigned char)*p) || *p == ' ' || *p == '=') {
            return false;
        }
    }
    return *text != '\0' && utf8_is_clean(text, strlen(text));
}

/* Writes the next character of a quoted value to `ret_text` and moves *at past it. Returns the
 * length. */
static size_t escape(const char **at, char ret_text[ESCAPED_MAX])
{
    unsigned char c = (unsigned char)**at;
    int len = utf8_length(*at, strlen(*at));
    bool is_json = log_format() == LOG_JSON;
    int n = 0;
    if (len <= 0) {
        n = snprintf(ret_text, ESCAPED_MAX, is_json ? "\xEF\xBF\xBD" : "\\x%02x", c);
    } else if (!is_special(c)) {
        n = snprintf(ret_text, ESCAPED_MAX, "%.*s", len, *at);
    } else if (c == '\n') {
        n = snprintf(ret_text, ESCAPED_MAX, "\\n");
    } else if (c == '"' || c == '\\') {
        n = snprintf(ret_text, ESCAPED_MAX, "\\%c", c);
    } else {
        n = snprintf(ret_text, ESCAPED_MAX, is_json ? "\\u%04x" : "\\x%02x", c);
    }
    *at += len <= 0 ? 1 : len;
    return n < 0 ? 0 : (size_t)n;
}

/* If the line is full, truncates the text between two characters. */
static void put_quoted(struct line *l, const char *text)
{
    put_text(l, "\"");
    while (*text != '\0') {
        char escaped[ESCAPED_MAX];
        size_t len = escape(&text, escaped);
        if (len + 1 > room(l)) {
            break;
        }
        put(l, escaped, len);
    }
    put_text(l, "\"");
}

/* Omits a field whose name doesn't fit, and truncates a text that doesn't fit. */
static void put_field(struct line *l, const struct log_field *f)
{
    bool is_json = log_format() == LOG_JSON;
    if (strlen(f->name) + ARRAY_COUNT(",\"\":\"\"") + NUMBER_MAX > room(l)) {
        return;
    }
    if (is_json) {
        put_text(l, l->len == 0 ? "{\"" : ",\"");
    } else if (l->len > 0) {
        put_text(l, " ");
    }
    put_text(l, f->name);
    put_text(l, is_json ? "\":" : "=");
    if (f->text == NULL) {
        char number[NUMBER_MAX];
        (void)snprintf(number, sizeof number, "%lld", (long long)f->number);
        put_text(l, number);
    } else if (!is_json && strlen(f->text) < room(l) && is_bare(f->text)) {
        put_text(l, f->text);
    } else {
        put_quoted(l, f->text);
    }
}

static void make_line(struct line *l, enum log_level level, const char *event,
                      const struct log_field *fields, size_t count)
{
    char ts[CLOCK_TEXT_SIZE];
    clock_wall_text(ts, sizeof ts);
    const struct log_field head[] = {LOG_TEXT("ts", ts), LOG_TEXT("level", level_names[level]),
                                     LOG_TEXT("program", log_program), LOG_TEXT("event", event)};
    l->len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(head); i++) {
        put_field(l, &head[i]);
    }
    for (size_t i = 0; i < count; i++) {
        put_field(l, &fields[i]);
    }
    if (log_format() == LOG_JSON) {
        l->text[l->len++] = '}';
    }
    l->text[l->len++] = '\n';
    (void)atomic_fetch_add(&log_counts[level], 1);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count)
{
    struct line l;
    if (log_enabled(level)) {
        make_line(&l, level, event, fields, count);
        log_out_line(l.text, l.len, level <= LOG_WARN);
    }
}

/* ---- a reader that stalls ---- */

static size_t say_dropped(uint64_t lines, uint64_t total, char ret_line[LOG_LINE_MAX])
{
    static const char *const event = "log_dropped";
    struct line l;
    const struct log_field fields[] = {LOG_I64("lines", lines), LOG_I64("total", total)};
    make_line(&l, LOG_WARN, event, fields, ARRAY_COUNT(fields));
    memcpy(ret_line, l.text, l.len);
    return l.len;
}

void log_start(void)
{
    log_out_start(say_dropped);
}

void log_stop(void)
{
    log_out_stop(STOP_MAX_US);
}

uint64_t log_dropped(void)
{
    return log_out_dropped();
}

/* ---- complaints ---- */

bool complaint_due(struct complaint *c, int64_t now_us)
{
    c->count++;
    c->last_us = now_us;
    if (now_us < c->next_us) {
        return false;
    }
    int64_t next_us = c->distance_us == 0 ? COMPLAINT_FIRST_US : 2 * c->distance_us;
    c->distance_us = next_us < COMPLAINT_MAX_US ? next_us : COMPLAINT_MAX_US;
    c->next_us = now_us + c->distance_us;
    return true;
}

bool complaint_is_quiet(const struct complaint *c, int64_t now_us, int64_t quiet_us)
{
    return c->count > 0 && now_us - c->last_us >= quiet_us;
}

void log_recovered(const char *event, struct complaint *c)
{
    int64_t count = complaint_end(c);
    if (count > 0) {
        log_info(event, LOG_I64("after", count));
    }
}

int64_t complaint_end(struct complaint *c)
{
    int64_t count = c->count;
    *c = (struct complaint){0};
    return count;
}
