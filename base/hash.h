/* SPDX-License-Identifier: Apache-2.0
 *
 * FNV-1a of 32 bits: for tables and for telling texts apart, not safe against an attacker who
 * chooses them. */
#ifndef CLAIMD_BASE_HASH_H
#define CLAIMD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t hash_bytes(const char *bytes, size_t len)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619U;
    }
    return hash;
}

#endif
