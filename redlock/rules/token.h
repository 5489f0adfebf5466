/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens, and the values of lock keys, which begin with a token (lock.K1–K3). 12 characters of
 * base64url are drawn once per process, so that a successor can recognise its predecessor's keys;
 * 15 more are drawn for each batch, hence for each attempt. A value is the token alone, or the
 * token, '|' and the client's label. */
#ifndef CLAIMD_REDLOCK_RULES_TOKEN_H
#define CLAIMD_REDLOCK_RULES_TOKEN_H

#include "base/err.h"
#include "redlock/redlock_async.h"

#define VALUE_MARK '|' /* follows the token; not in base64url */
#define VALUE_SIZE (REDLOCK_VALUE_LEN_MAX + 1)

/* Both return UNAVAILABLE if the kernel gives no randomness; there is no other source. */
enum status token_draw_prefix(char ret_prefix[REDLOCK_PREFIX_LEN + 1], struct err *err) MUST_USE;
enum status token_draw(const char prefix[REDLOCK_PREFIX_LEN + 1],
                       char ret_token[REDLOCK_TOKEN_LEN + 1], struct err *err) MUST_USE;

/* Draws a value with the label, which may be "". UNAVAILABLE as above. */
enum status value_draw(const char prefix[REDLOCK_PREFIX_LEN + 1], const char *label,
                       char ret_value[VALUE_SIZE], struct err *err) MUST_USE;
/* True if it is as long as a token, or as a token followed by the mark and a label. A value of that
 * length fits into VALUE_SIZE. */
bool value_has_form(const char *value, size_t len);
/* Extracts the label of any client's value, of any length; "" = none. For display: characters that
 * are not printable ASCII become '?'. */
void value_label(const char *value, size_t len, char ret_label[REDLOCK_LABEL_LEN_MAX + 1]);
/* Copies bytes with the same replacements; ret_text must have room for len + 1 characters. */
void value_show(const char *bytes, size_t len, char *ret_text);

#endif
