/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const texts[] = {
#define X(name, text) [STATUS_##name] = (text),
    STATUS_MAP(X)
#undef X
};

const char *status_text(enum status st)
{
    size_t i = (size_t)st;
    return i < ARRAY_COUNT(texts) ? texts[i] : "unknown status";
}

void err_set(struct err *err, enum status st, int sys, const char *format, ...)
{
    if (err == NULL || err->status != STATUS_OK) {
        return;
    }
    err->status = st;
    err->code[0] = '\0';
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->msg, sizeof err->msg, format, args);
    va_end(args);
    if (n < 0) {
        err->msg[0] = '\0';
        n = 0;
    }
    size_t used = (size_t)n < sizeof err->msg ? (size_t)n : sizeof err->msg - 1;
    if (sys != 0) {
        char text[128];
        (void)snprintf(err->msg + used, sizeof err->msg - used, ": %s",
                       strerror_r(sys, text, sizeof text));
    }
}

void err_prefix(struct err *err, const char *format, ...)
{
    if (err == NULL || err->status == STATUS_OK) {
        return;
    }
    char tail[ERR_TEXT_MAX];
    (void)snprintf(tail, sizeof tail, "%s", err->msg);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->msg, sizeof err->msg, format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof err->msg ? (size_t)n : sizeof err->msg - 1;
    int room = (int)(sizeof err->msg - used) - 3; /* for ": " and the NUL */
    if (room > 0) {
        (void)snprintf(err->msg + used, sizeof err->msg - used, ": %.*s", room, tail);
    }
}
