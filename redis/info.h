/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the text of INFO, and sorts error replies. Pure. */
#ifndef CLAIMD_REDIS_INFO_H
#define CLAIMD_REDIS_INFO_H

#include "redis/redis.h"

/* INVALID when a field on which safety depends is missing or unreadable. */
enum status redis_info_parse(const char *text, size_t len, struct redis_server_info *ret,
                             struct err *err) MUST_USE;

#endif
