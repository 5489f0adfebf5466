/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>

void text_release(struct text *t)
{
    buf_release(&t->buf);
}

void text_put_bytes(struct text *t, const void *bytes, size_t len)
{
    if (t->err.status == STATUS_OK) {
        (void)!buf_append(&t->buf, bytes, len, &t->err);
    }
}

void text_put_escaped(struct text *t, const char *bytes, size_t len, const char *special)
{
    if (t->err.status == STATUS_OK) {
        (void)!buf_append_escaped(&t->buf, bytes, len, special, &t->err);
    }
}

void text_put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = t->err.status == STATUS_OK ? vsnprintf(NULL, 0, format, args) : 0;
    va_end(args);
    if (len <= 0 || buf_reserve(&t->buf, (size_t)len, &t->err) != STATUS_OK) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(buf_at(&t->buf) + t->buf.len, (size_t)len + 1, format, args);
    va_end(args);
    buf_grew(&t->buf, (size_t)len);
}

const char *text_str(const struct text *t)
{
    return t->buf.data == NULL ? "" : buf_at(&t->buf);
}

enum status text_end(const struct text *t, struct err *err)
{
    if (t->err.status != STATUS_OK && err != NULL && err->status == STATUS_OK) {
        *err = t->err;
    }
    return t->err.status;
}

enum status text_print(const struct text *t, FILE *out, struct err *err)
{
    enum status st = text_end(t, err);
    if (st != STATUS_OK) {
        return st;
    }
    return fwrite(text_str(t), 1, t->buf.len, out) == t->buf.len
               ? STATUS_OK
               : err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
}
