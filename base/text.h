/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a text piece by piece. The first failure sticks: later calls do nothing, so a caller
 * checks `err` only once, at the end. */
#ifndef CLAIMD_BASE_TEXT_H
#define CLAIMD_BASE_TEXT_H

#include "base/buf.h"

#include <stdio.h>

struct text {
    struct buf buf;
    struct err err; /* NOMEM, LIMIT, or an error that the caller put there */
};

#define TEXT_INIT(bytes_max)       \
    {                              \
        .buf = BUF_INIT(bytes_max) \
    }
#define autotext CLEANUP(text_release)
void text_release(struct text *t);

void text_put(struct text *t, const char *format, ...) PRINTF_LIKE(2, 3);
void text_put_bytes(struct text *t, const void *bytes, size_t len);
/* Appends the bytes, with a backslash before each one that occurs in `special`. */
void text_put_escaped(struct text *t, const char *bytes, size_t len, const char *special);

/* Returns the text, NUL-terminated; "" if it is empty. */
const char *text_str(const struct text *t);
/* Returns the status of the first failure, and copies the failure to *err. */
enum status text_end(const struct text *t, struct err *err) MUST_USE;
/* Writes the text to `out`; INTERNAL if that fails. */
enum status text_print(const struct text *t, FILE *out, struct err *err) MUST_USE;

#endif
