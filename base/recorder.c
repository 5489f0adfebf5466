/* SPDX-License-Identifier: Apache-2.0 */
#include "base/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define TEXT_MAX 128 /* of one value; keys and tokens are shorter */
#define TAIL_ROOM 16

static struct { /* set once at start, for debugging */
    const char *program;
    int fd;
    bool is_on;
} recorder;

static int64_t boot_ns(void)
{
    struct timespec ts = {0};
    (void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

enum status recorder_open(const char *program, struct err *err)
{
    const char *folder = getenv("CLAIMD_HISTORY");
    if (folder == NULL || folder[0] == '\0') {
        return STATUS_OK;
    }
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%s.%d.%" PRId64 ".jsonl", folder, program,
                       (int)getpid(), boot_ns());
    if (len < 0 || (size_t)len >= sizeof path) {
        return err_fail(err, STATUS_INVALID, "CLAIMD_HISTORY: longer than %zu bytes",
                        sizeof path / 2);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_fail(err, STATUS_INVALID,
                        "CLAIMD_HISTORY '%s': must be a folder to write to: %s", folder,
                        strerror(errno));
    }
    recorder.program = program;
    recorder.fd = fd;
    recorder.is_on = true;
    record("start", "inv", RECORD_I64("pid", getpid()));
    return STATUS_OK;
}

bool recorder_is_on(void)
{
    return recorder.is_on;
}

struct line {
    char bytes[LINE_MAX_BYTES];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof l->bytes - TAIL_ROOM - l->len;
    int len = vsnprintf(l->bytes + l->len, room, format, args);
    va_end(args);
    if (len > 0 && (size_t)len < room) {
        l->len += (size_t)len;
    } else {
        l->bytes[l->len] = '\0'; /* drop a piece that doesn't fit whole */
    }
}

static void put_text(struct line *l, const char *text, size_t len)
{
    put(l, "\"");
    for (size_t i = 0; i < len && i < TEXT_MAX; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c >= 0x7F || c == '"' || c == '\\') {
            put(l, "\\u%04x", c);
        } else if (l->len < sizeof l->bytes - TAIL_ROOM) {
            l->bytes[l->len++] = (char)c;
        }
    }
    put(l, "\"");
}

static void put_field(struct line *l, const struct recorder_field *f)
{
    put(l, ",\"%s\":", f->name);
    if (f->text == NULL) {
        put(l, "%" PRId64, f->number);
    } else if (f->is_json) {
        put(l, "%.*s", (int)f->len, f->text);
    } else {
        put_text(l, f->text, f->len);
    }
}

void recorder_write(const char *op, const char *phase, const struct recorder_field *fields,
                    size_t count)
{
    struct line l = {.len = 0};
    put(&l, "{\"t\":%" PRId64 ",\"p\":\"%s.%d\",\"op\":\"%s\",\"ph\":\"%s\"", boot_ns(),
        recorder.program, (int)getpid(), op, phase);
    for (size_t i = 0; i < count; i++) {
        put_field(&l, &fields[i]);
    }
    memcpy(l.bytes + l.len, "}\n", 2);
    l.len += 2;
    if (write(recorder.fd, l.bytes, l.len) != (ssize_t)l.len) {
        (void)fprintf(stderr, "%s: the history can't be written: %s\n", recorder.program,
                      strerror(errno));
        abort(); /* a history with gaps would show faults that did not happen */
    }
}
