/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that is put together piece by piece. The first failure sticks: what follows does nothing, so
 * a caller looks once, at the end, at `err`. */
#ifndef CLAIMD_BASE_TEXT_H
#define CLAIMD_BASE_TEXT_H

#include "base/buf.h"

#include <stdio.h>

struct text {
    struct buf buf;
    struct err err; /* NOMEM, LIMIT, or what a caller put there */
};

#define TEXT_INIT(bytes_max)       \
    {                              \
        .buf = BUF_INIT(bytes_max) \
    }
#define autotext CLEANUP(text_release)
void text_release(struct text *t);

void text_put(struct text *t, const char *format, ...) PRINTF_LIKE(2, 3);
void text_put_bytes(struct text *t, const void *bytes, size_t len);
/* With a backslash before each byte that is one of `special`. */
void text_put_escaped(struct text *t, const char *bytes, size_t len, const char *special);

/* What was put, ended by a NUL; "" when nothing was. */
const char *text_str(const struct text *t);
/* The first failure, which goes to *err as well. */
enum status text_end(const struct text *t, struct err *err) MUST_USE;
/* Writes it; INTERNAL: it can't. */
enum status text_print(const struct text *t, FILE *out, struct err *err) MUST_USE;

#endif
