/* SPDX-License-Identifier: Apache-2.0
 *
 * 32-bit FNV-1a, for hash tables and fingerprints of texts. It does not resist an attacker who
 * chooses the input. */
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
