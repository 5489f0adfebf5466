/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict parsers for text from outside: the whole input must be one value in canonical form. */
#ifndef CLAIMD_BASE_PARSE_H
#define CLAIMD_BASE_PARSE_H

#include "base/err.h"

#include <stdint.h>

/* Parses a canonical decimal: optional '-', no '+', no spaces, no leading zeros. On failure returns
 * INVALID with the reason and leaves *ret_value unchanged. */
enum status parse_i64(const char *text, size_t len, int64_t min, int64_t max, int64_t *ret_value,
                      struct err *err) MUST_USE;

/* Parses "250ms", "10s", "5m", "2h", "1d" or a bare number of seconds. */
enum status parse_duration_us(const char *text, int64_t *ret_us, struct err *err) MUST_USE;

/* Returns the length in bytes of the UTF-8 character at bytes[0..len), len > 0; 0 if it is invalid
 * or NUL; -1 if the end of the input cuts it off. */
int utf8_length(const char *bytes, size_t len);

/* Copies text[0..len) to `ret_out` as valid UTF-8 without NUL: each bad byte becomes U+FFFD, and a
 * truncated character at the end is dropped. Returns the number of bytes written, < size; the
 * output is always NUL-terminated. */
size_t utf8_clean(const char *text, size_t len, char *ret_out, size_t size);

/* Returns how many bytes utf8_clean() writes for the character at text[0..len), len > 0, and sets
 * *ret_step to the number that it reads. */
size_t utf8_clean_octets(const char *text, size_t len, size_t *ret_step);

/* Cuts characters off the beginning of a text until utf8_clean() writes at most `max` bytes. */
void utf8_cut_head(const char **text, size_t *len, size_t max);

/* True if text[0..len) is valid UTF-8 without NUL. */
bool utf8_is_clean(const char *text, size_t len);

#endif
