/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the reply to INFO, and classifies error replies. Pure. */
#ifndef CLAIMD_REDIS_INFO_H
#define CLAIMD_REDIS_INFO_H

#include "redis/redis.h"

/* Parses INFO. INVALID if a field on which safety depends is missing or unreadable. */
enum status redis_info_parse(const char *text, size_t len, struct redis_server_info *ret,
                             struct err *err) MUST_USE;

#endif
