/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict readers for text from outside: the whole input must be the value, in its canonical
 * form. */
#ifndef CLAIMD_BASE_PARSE_H
#define CLAIMD_BASE_PARSE_H

#include "base/err.h"

#include <stdint.h>

/* Canonical decimal: optional '-', no '+', no spaces, no leading zeros. INVALID says what is wrong
 * and leaves *ret_value untouched. */
enum status parse_i64(const char *text, size_t len, int64_t min, int64_t max, int64_t *ret_value,
                      struct err *err) MUST_USE;

/* "250ms", "10s", "5m", "2h", "1d" or a bare number of seconds, to microseconds. */
enum status parse_duration_us(const char *text, int64_t *ret_us, struct err *err) MUST_USE;

/* Length in bytes of the valid UTF-8 character at bytes[0..len), len > 0; 0: it is invalid, or NUL;
 * -1: it is cut off by the end. */
int utf8_length(const char *bytes, size_t len);

/* Copies text[0..len) into out as valid UTF-8 without NUL: each bad byte becomes U+FFFD, a cut
 * character at the end is dropped. Returns the length written, < size; out is always terminated. */
size_t utf8_clean(const char *text, size_t len, char *ret_out, size_t size);

/* How many bytes utf8_clean() writes for the character at text[0..len), len > 0; *ret_step: how
 * many it reads. */
size_t utf8_clean_octets(const char *text, size_t len, size_t *ret_step);

/* Is text[0..len) valid UTF-8 without NUL? */
bool utf8_is_clean(const char *text, size_t len);

#endif
