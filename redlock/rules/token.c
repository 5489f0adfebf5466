/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/rules/token.h"

#include "base/rand.h"

#include <string.h>

#define PREFIX_BYTES 9
#define BATCH_BYTES 11

/* Encodes without padding: ⌈8·len / 6⌉ characters, and a NUL. */
static void base64url(const unsigned char *bytes, size_t len, char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned bits = 0;
    unsigned bit_count = 0;
    for (size_t i = 0; i < len; i++) {
        bits = (bits << 8 | bytes[i]) & 0x3FFF; /* at most 4 left from before, and 8 new */
        for (bit_count += 8; bit_count >= 6; bit_count -= 6) {
            *out++ = alphabet[bits >> (bit_count - 6) & 63];
        }
    }
    if (bit_count > 0) {
        *out++ = alphabet[bits << (6 - bit_count) & 63];
    }
    *out = '\0';
}

enum status token_draw_prefix(char ret_prefix[REDLOCK_PREFIX_LEN + 1], struct err *err)
{
    unsigned char bytes[PREFIX_BYTES];
    enum status st = rand_bytes(bytes, sizeof bytes, err);
    if (st == STATUS_OK) {
        base64url(bytes, sizeof bytes, ret_prefix);
    }
    return st;
}

enum status token_draw(const char prefix[REDLOCK_PREFIX_LEN + 1],
                       char ret_token[REDLOCK_TOKEN_LEN + 1], struct err *err)
{
    unsigned char bytes[BATCH_BYTES];
    enum status st = rand_bytes(bytes, sizeof bytes, err);
    if (st == STATUS_OK) {
        memcpy(ret_token, prefix, REDLOCK_PREFIX_LEN);
        base64url(bytes, sizeof bytes, ret_token + REDLOCK_PREFIX_LEN);
    }
    return st;
}

enum status value_draw(const char prefix[REDLOCK_PREFIX_LEN + 1], const char *label,
                       char ret_value[VALUE_SIZE], struct err *err)
{
    enum status st = token_draw(prefix, ret_value, err);
    size_t len = strlen(label);
    if (st == STATUS_OK && len > 0) {
        ret_value[REDLOCK_TOKEN_LEN] = VALUE_MARK;
        memcpy(ret_value + REDLOCK_TOKEN_LEN + 1, label, len + 1);
    }
    return st;
}

bool value_has_form(const char *value, size_t len)
{
    return len == REDLOCK_TOKEN_LEN || (len > REDLOCK_TOKEN_LEN && len <= REDLOCK_VALUE_LEN_MAX &&
                                        value[REDLOCK_TOKEN_LEN] == VALUE_MARK);
}

void value_show(const char *bytes, size_t len, char *ret_text)
{
    for (size_t i = 0; i < len; i++) {
        ret_text[i] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
    }
    ret_text[len] = '\0';
}

void value_label(const char *value, size_t len, char ret_label[REDLOCK_LABEL_LEN_MAX + 1])
{
    ret_label[0] = '\0';
    if (len > REDLOCK_TOKEN_LEN && value_has_form(value, len)) {
        value_show(value + REDLOCK_TOKEN_LEN + 1, len - REDLOCK_TOKEN_LEN - 1, ret_label);
    }
}
