/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer with a mandatory bound. Data is appended at the tail and consumed from the
 * head, so a buffer also serves as an output queue. A NUL always follows the content and is not
 * counted in `len`. Growing past `max` returns STATUS_LIMIT and leaves the content unchanged. */
#ifndef CLAIMD_BASE_BUF_H
#define CLAIMD_BASE_BUF_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data; /* the allocation; the content starts at data + head */
    size_t head;
    size_t len;
    size_t cap;
    size_t max;
};

#define BUF_INIT(bytes_max) \
    {                       \
        .max = (bytes_max)  \
    }
#define autobuf CLEANUP(buf_release)

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b); /* accepts a zeroed buffer; keeps the bound */
void buf_reset(struct buf *b);   /* keeps the memory */

static inline char *buf_at(const struct buf *b)
{
    return b->data + b->head;
}

/* Makes room for `extra` more bytes after the content, and for the NUL. Returns NOMEM or LIMIT on
 * failure. */
enum status buf_reserve(struct buf *b, size_t extra, struct err *err) MUST_USE;
enum status buf_append(struct buf *b, const void *bytes, size_t len, struct err *err) MUST_USE;
enum status buf_append_byte(struct buf *b, char byte, struct err *err) MUST_USE;
enum status buf_append_text(struct buf *b, const char *text, struct err *err) MUST_USE;
/* Appends the bytes, with a backslash before each one that occurs in `special`. */
enum status buf_append_escaped(struct buf *b, const char *bytes, size_t len, const char *special,
                               struct err *err) MUST_USE;
enum status buf_printf(struct buf *b, struct err *err, const char *format, ...) MUST_USE
    PRINTF_LIKE(3, 4);

/* Truncates the content to its first `len` bytes; len ≤ b->len. */
void buf_cut(struct buf *b, size_t len);

/* Adds `len` bytes to the content, after the caller has reserved room with buf_reserve() and
 * written them behind the content. */
void buf_grew(struct buf *b, size_t len);

/* Drops `len` bytes from the head; len ≤ b->len. */
void buf_consume(struct buf *b, size_t len);

#endif
