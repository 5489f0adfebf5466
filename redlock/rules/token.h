/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens, and the values of lock keys that they begin (lock.K1–K3). 12 characters of base64url are
 * drawn once per process, so that a successor can recognise its predecessor's keys; 15 more are
 * drawn for each batch, hence for each attempt. A value is the token, or the token, '|' and the
 * client's label. */
#ifndef CLAIMD_REDLOCK_RULES_TOKEN_H
#define CLAIMD_REDLOCK_RULES_TOKEN_H

#include "base/err.h"
#include "redlock/redlock_async.h"

#define VALUE_MARK '|' /* behind the token; base64url does not have it */
#define VALUE_SIZE (REDLOCK_VALUE_LEN_MAX + 1)

/* Both: UNAVAILABLE when the kernel gives no randomness; there is no other source. */
enum status token_draw_prefix(char ret_prefix[REDLOCK_PREFIX_LEN + 1], struct err *err) MUST_USE;
enum status token_draw(const char prefix[REDLOCK_PREFIX_LEN + 1],
                       char ret_token[REDLOCK_TOKEN_LEN + 1], struct err *err) MUST_USE;

/* With the label, which may be "". UNAVAILABLE as above. */
enum status value_draw(const char prefix[REDLOCK_PREFIX_LEN + 1], const char *label,
                       char ret_value[VALUE_SIZE], struct err *err) MUST_USE;
/* Is it as long as a token, or a token with a label behind its mark? Then it has room in
 * VALUE_SIZE. */
bool value_has_form(const char *value, size_t len);
/* The label of anybody's value, of any length; "" = it has none. To be shown: whatever is no
 * printable ASCII character is '?'. */
void value_label(const char *value, size_t len, char ret_label[REDLOCK_LABEL_LEN_MAX + 1]);
/* As much of any bytes, with the same replacements; ret_text has room for len + 1 characters. */
void value_show(const char *bytes, size_t len, char *ret_text);

#endif
