/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends one command to one Redis over a connection of its own, with a deadline: like an operator's
 * redis-cli, but cheaper. */
#ifndef CLAIMD_TESTS_CHAOS_REDIS_LINE_H
#define CLAIMD_TESTS_CHAOS_REDIS_LINE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* `words`: NULL-ended. The first line of the reply is written to ret_reply (NULL: not wanted).
 * UNAVAILABLE, TIMEOUT; INVALID: an error reply. */
enum status redis_say(const char *socket_path, const char *password, int64_t timeout_us,
                      const char *const *words, char *ret_reply, size_t size,
                      struct err *err) MUST_USE;

#endif
