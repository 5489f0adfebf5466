/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one value of a handler file. INVALID: *err names its place and what is allowed, and *ret is
 * unchanged. */
#ifndef CLAIMD_RUNNER_HANDLER_VALUE_H
#define CLAIMD_RUNNER_HANDLER_VALUE_H

#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

/* Lists of keys end with NULL. */
bool handler_key_is_one(const char *const *list, const char *key);
enum status handler_key_refuse(const char *place, const char *key, const char *const *allowed,
                               struct err *err) MUST_USE;

enum status handler_get_integer(const json_t *value, const char *place, int64_t min, int64_t max,
                                int64_t *ret, struct err *err) MUST_USE;
/* Seconds, or a text such as "500ms", "90s", "10m". */
enum status handler_get_ms(const json_t *value, const char *place, int64_t max_ms, int64_t *ret_ms,
                           struct err *err) MUST_USE;
/* Octets, or a text such as "512M", "2G". */
enum status handler_get_octets(const json_t *value, const char *place, int64_t *ret,
                               struct err *err) MUST_USE;
enum status handler_get_flag(const json_t *value, const char *place, int32_t *ret,
                             struct err *err) MUST_USE;
/* Borrowed from the value. */
enum status handler_get_text(const json_t *value, const char *place, const char **ret,
                             struct err *err) MUST_USE;

#endif
