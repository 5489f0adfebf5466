/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens, the values of lock keys (lock.K1, K2). 12 characters of base64url are drawn once per
 * process, so that a successor can recognise its predecessor's keys; 15 more are drawn for each
 * batch, hence for each attempt. */
#ifndef CLAIMD_REDLOCK_TOKEN_H
#define CLAIMD_REDLOCK_TOKEN_H

#include "base/err.h"
#include "redlock/redlock_async.h"

/* Both: UNAVAILABLE when the kernel gives no randomness; there is no other source. */
enum status token_draw_prefix(char ret_prefix[REDLOCK_PREFIX_LEN + 1], struct err *err) MUST_USE;
enum status token_draw(const char prefix[REDLOCK_PREFIX_LEN + 1],
                       char ret_token[REDLOCK_TOKEN_LEN + 1], struct err *err) MUST_USE;

#endif
