/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of keys: checking, sorting, removing duplicates. */
#include "redlock/client/client.h"

#include <assert.h>

int keys_compare(const struct redlock_async_key *a, const struct redlock_async_key *b)
{
    size_t shorter = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->bytes, b->bytes, shorter);
    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

static int compare(const void *a, const void *b)
{
    return keys_compare(a, b);
}

size_t keys_sort(struct redlock_async_key *keys, size_t count)
{
    size_t kept = 0;
    qsort(keys, count, sizeof keys[0], compare);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || keys_compare(&keys[kept - 1], &keys[i]) != 0) {
            keys[kept++] = keys[i];
        }
    }
    return kept;
}

enum status keys_check_count(size_t count, struct err *err)
{
    if (count < 1 || count > REDLOCK_KEYS_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: %zu keys, allowed are 1 to %d", count,
                        REDLOCK_KEYS_MAX);
    }
    return STATUS_OK;
}

enum status keys_check(const void *key, size_t given_len, size_t *ret_len, struct err *err)
{
    size_t len = given_len;
    if (key == NULL) {
        return err_fail(err, STATUS_INVALID, "redlock: no key");
    }
    if (len == 0) {
        len = strnlen(key, REDLOCK_KEY_LEN_MAX + 1);
    }
    if (len == 0) {
        return err_fail(err, STATUS_INVALID, "redlock: an empty key, allowed are 1 to %d bytes",
                        REDLOCK_KEY_LEN_MAX);
    }
    if (len > REDLOCK_KEY_LEN_MAX) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: a key that is too long, allowed are 1 to %d "
                        "bytes",
                        REDLOCK_KEY_LEN_MAX);
    }
    *ret_len = len;
    return STATUS_OK;
}

bool key_set_fill(struct key_set *set, const struct redlock_async_key *keys, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += sizeof(uint16_t) + keys[i].len;
    }
    assert(size > 0);
    char *bytes = malloc(size);
    if (bytes == NULL) {
        return false;
    }
    *set = (struct key_set){.bytes = bytes, .size = size};
    for (size_t i = 0; i < count; i++) {
        uint16_t len = (uint16_t)keys[i].len;
        memcpy(bytes, &len, sizeof len);
        memcpy(bytes + sizeof len, keys[i].bytes, len);
        bytes += sizeof len + len;
    }
    return true;
}

bool key_set_next(const struct key_set *set, size_t *at, struct redlock_async_key *ret_key)
{
    uint16_t len = 0;
    if (*at == set->size) {
        return false;
    }
    memcpy(&len, set->bytes + *at, sizeof len);
    *ret_key = (struct redlock_async_key){.bytes = set->bytes + *at + sizeof len, .len = len};
    *at += sizeof len + len;
    return true;
}

void key_set_release(struct key_set *set)
{
    free(set->bytes);
    *set = (struct key_set){0};
}
