/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define BUF_CAP_MIN 256U

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void buf_release(struct buf *b)
{
    int saved = errno;
    free(b->data);
    errno = saved;
    *b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
    b->head = 0;
    b->len = 0;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

static void move_to_front(struct buf *b)
{
    if (b->head > 0) {
        memmove(b->data, b->data + b->head, b->len + 1);
        b->head = 0;
    }
}

enum status buf_reserve(struct buf *b, size_t extra, struct err *err)
{
    if (extra > b->max || b->len > b->max - extra) {
        return err_fail(err, STATUS_LIMIT, "buffer: %zu + %zu bytes exceed its limit of %zu",
                        b->len, extra, b->max);
    }
    size_t need = b->len + extra + 1;
    if (b->cap >= b->head + need) {
        return STATUS_OK;
    }
    if (b->cap >= need && b->head >= b->cap / 2) {
        move_to_front(b);
        return STATUS_OK;
    }
    size_t cap = b->cap < BUF_CAP_MIN ? BUF_CAP_MIN : b->cap;
    while (cap < b->head + need) {
        cap *= 2;
    }
    char *data = realloc(b->data, cap);
    if (data == NULL) {
        return err_fail(err, STATUS_NOMEM, "buffer: no memory for %zu bytes", cap);
    }
    if (b->data == NULL) {
        data[0] = '\0';
    }
    b->data = data;
    b->cap = cap;
    return STATUS_OK;
}

void buf_grew(struct buf *b, size_t len)
{
    b->len += len;
    assert(b->head + b->len < b->cap);
    b->data[b->head + b->len] = '\0';
}

void buf_cut(struct buf *b, size_t len)
{
    assert(len <= b->len);
    if (b->data != NULL) {
        b->len = len;
        b->data[b->head + len] = '\0';
    }
}

enum status buf_append(struct buf *b, const void *bytes, size_t len, struct err *err)
{
    enum status st = buf_reserve(b, len, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (len > 0) {
        memcpy(buf_at(b) + b->len, bytes, len);
    }
    buf_grew(b, len);
    return STATUS_OK;
}

enum status buf_append_byte(struct buf *b, char byte, struct err *err)
{
    return buf_append(b, &byte, 1, err);
}

enum status buf_append_escaped(struct buf *b, const char *bytes, size_t len, const char *special,
                               struct err *err)
{
    for (size_t i = 0; i < len; i++) {
        bool is_special = bytes[i] != '\0' && strchr(special, bytes[i]) != NULL;
        enum status st = is_special ? buf_append_byte(b, '\\', err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
        st = buf_append_byte(b, bytes[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status buf_append_text(struct buf *b, const char *text, struct err *err)
{
    return buf_append(b, text, strlen(text), err);
}

enum status buf_printf(struct buf *b, struct err *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        return err_fail(err, STATUS_INTERNAL, "buffer: bad format");
    }
    enum status st = buf_reserve(b, (size_t)n, err);
    if (st != STATUS_OK) {
        return st;
    }
    va_start(args, format);
    (void)vsnprintf(buf_at(b) + b->len, (size_t)n + 1, format, args);
    va_end(args);
    buf_grew(b, (size_t)n);
    return STATUS_OK;
}

void buf_consume(struct buf *b, size_t len)
{
    assert(len <= b->len);
    b->head += len;
    b->len -= len;
    if (b->len == 0) {
        buf_reset(b);
    }
}
