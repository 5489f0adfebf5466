/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"

#include <stdio.h>

#define LINE_MAX_BYTES 2048
#define COMPLAINT_FIRST_US (1 * US_PER_S)
#define COMPLAINT_MAX_US (60 * US_PER_S)

static const char *log_program = "claimd";
static enum log_level log_max_level = LOG_INFO;
static const char *const level_names[] = {"error", "warn", "info", "debug"};

struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
};

void log_init(const char *program, enum log_level max_level)
{
    log_program = program;
    log_max_level = max_level;
}

bool log_enabled(enum log_level level)
{
    return level <= log_max_level;
}

static void put(struct line *l, const char *bytes, size_t len)
{
    size_t room = sizeof l->text - 1 - l->len; /* one byte stays for the newline */
    size_t n = len < room ? len : room;
    memcpy(l->text + l->len, bytes, n);
    l->len += n;
}

static void put_text(struct line *l, const char *text)
{
    put(l, text, strlen(text));
}

static bool is_bare(const char *text)
{
    if (*text == '\0') {
        return false;
    }
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7F) {
            return false;
        }
    }
    return true;
}

static void put_quoted(struct line *l, const char *text)
{
    put_text(l, "\"");
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        char escaped[8];
        if (c == '"' || c == '\\') {
            (void)snprintf(escaped, sizeof escaped, "\\%c", c);
        } else if (c == '\n') {
            (void)snprintf(escaped, sizeof escaped, "\\n");
        } else if (c < ' ' || c == 0x7F) {
            (void)snprintf(escaped, sizeof escaped, "\\x%02x", c);
        } else {
            put(l, p, 1);
            continue;
        }
        put_text(l, escaped);
    }
    put_text(l, "\"");
}

static void put_field(struct line *l, const struct log_field *f)
{
    put_text(l, " ");
    put_text(l, f->name);
    put_text(l, "=");
    if (f->text == NULL) {
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)f->number);
        put_text(l, number);
    } else if (is_bare(f->text)) {
        put_text(l, f->text);
    } else {
        put_quoted(l, f->text);
    }
}

void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count)
{
    if (!log_enabled(level)) {
        return;
    }
    struct line l = {.len = 0};
    char ts[CLOCK_TEXT_SIZE];
    clock_wall_text(ts, sizeof ts);
    const struct log_field head[] = {LOG_TEXT("level", level_names[level]),
                                     LOG_TEXT("program", log_program), LOG_TEXT("event", event)};
    put_text(&l, "ts=");
    put_text(&l, ts);
    for (size_t i = 0; i < ARRAY_COUNT(head); i++) {
        put_field(&l, &head[i]);
    }
    for (size_t i = 0; i < count; i++) {
        put_field(&l, &fields[i]);
    }
    l.text[l.len++] = '\n';
    ssize_t written = write(STDERR_FILENO, l.text, l.len);
    (void)written; /* a log that can't be written must not stop the work (fault.F5) */
}

bool complaint_due(struct complaint *c, int64_t now_us)
{
    c->count++;
    if (now_us < c->next_us) {
        return false;
    }
    int64_t doubled = c->distance_us * 2;
    c->distance_us = doubled == 0                 ? COMPLAINT_FIRST_US
                     : doubled < COMPLAINT_MAX_US ? doubled
                                                  : COMPLAINT_MAX_US;
    c->next_us = now_us + c->distance_us;
    return true;
}

int64_t complaint_end(struct complaint *c)
{
    int64_t count = c->count;
    *c = (struct complaint){0};
    return count;
}
