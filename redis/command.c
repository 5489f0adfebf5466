/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands in the wire protocol: a head, then arguments. */
#include "redis/node.h"

#define LINE_MAX_BYTES 24 /* marker, a 64-bit number, CR LF */

static char *put_line(char *out, char marker, size_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    *out++ = marker;
    while (count > 0) {
        *out++ = digits[--count];
    }
    *out++ = '\r';
    *out++ = '\n';
    return out;
}

static char *put_arg(char *out, const struct redis_arg *arg)
{
    out = put_line(out, '$', arg->len);
    if (arg->len > 0) {
        memcpy(out, arg->bytes, arg->len);
    }
    out += arg->len;
    *out++ = '\r';
    *out++ = '\n';
    return out;
}

enum status redis_command_head(struct buf *out, size_t count, struct err *err)
{
    enum status st = buf_reserve(out, LINE_MAX_BYTES, err);
    if (st != STATUS_OK) {
        return st;
    }
    char *end = buf_at(out) + out->len;
    buf_grew(out, (size_t)(put_line(end, '*', count) - end));
    return STATUS_OK;
}

enum status redis_command_args(struct buf *out, const struct redis_arg *args, size_t count,
                               struct err *err)
{
    size_t need = 0;
    for (size_t i = 0; i < count; i++) {
        need += LINE_MAX_BYTES + args[i].len + 2;
    }
    enum status st = buf_reserve(out, need, err);
    if (st != STATUS_OK) {
        return st;
    }
    char *start = buf_at(out) + out->len;
    char *end = start;
    for (size_t i = 0; i < count; i++) {
        end = put_arg(end, &args[i]);
    }
    buf_grew(out, (size_t)(end - start));
    return STATUS_OK;
}

enum status redis_command(struct buf *out, const struct redis_arg *args, size_t count,
                          struct err *err)
{
    size_t before = out->len;
    enum status st = redis_command_head(out, count, err);
    if (st == STATUS_OK) {
        st = redis_command_args(out, args, count, err);
    }
    if (st != STATUS_OK) {
        out->len = before;
    }
    return st;
}
