/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "base/clock.h"

#include <limits.h>

#define I64_DIGITS_MAX 20

enum status parse_i64(const char *text, size_t len, int64_t min, int64_t max, int64_t *ret_value,
                      struct err *err)
{
    char copy[I64_DIGITS_MAX + 1];
    size_t digits = len > 0 && text[0] == '-' ? 1 : 0;
    bool canonical = len > digits && len <= I64_DIGITS_MAX;
    canonical = canonical && !(text[digits] == '0' && len > 1);
    for (size_t i = digits; canonical && i < len; i++) {
        canonical = text[i] >= '0' && text[i] <= '9';
    }
    if (!canonical) {
        return err_fail(err, STATUS_INVALID, "'%.*s' is not a decimal number",
                        (int)(len < 40 ? len : 40), text);
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    errno = 0;
    long long v = strtoll(copy, NULL, 10);
    if (errno != 0 || v < min || v > max) {
        return err_fail(err, STATUS_INVALID, "%s is not allowed; allowed: %lld to %lld", copy,
                        (long long)min, (long long)max);
    }
    *ret_value = v;
    return STATUS_OK;
}

static const struct {
    const char *suffix;
    int64_t us;
} units[] = {{"", US_PER_S},       {"ms", US_PER_MS},      {"s", US_PER_S},
             {"m", 60 * US_PER_S}, {"h", 3600 * US_PER_S}, {"d", 86400 * US_PER_S}};

enum status parse_duration_us(const char *text, int64_t *ret_us, struct err *err)
{
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; digits > 0 && i < ARRAY_COUNT(units); i++) {
        if (strcmp(text + digits, units[i].suffix) != 0) {
            continue;
        }
        int64_t n = 0;
        enum status st = parse_i64(text, digits, 0, INT64_MAX / units[i].us, &n, err);
        if (st != STATUS_OK) {
            return st;
        }
        *ret_us = n * units[i].us;
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID,
                    "'%.40s' is not a duration: a number of seconds, or one with ms, s, m, h or d",
                    text);
}

int utf8_length(const char *bytes, size_t len)
{
    const unsigned char *text = (const unsigned char *)bytes;
    if (text[0] < 0x80) {
        return text[0] == 0 ? 0 : 1;
    }
    int n = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    if (text[0] < 0xC2 || text[0] > 0xF4) {
        return 0;
    }
    for (int i = 1; i < n; i++) {
        if ((size_t)i >= len) {
            return -1;
        }
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xF0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xED && text[1] > 0x9F;
    bool too_large = text[0] == 0xF4 && text[1] > 0x8F;
    return overlong || surrogate || too_large ? 0 : n;
}

bool utf8_is_clean(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        int n = utf8_length(text + i, len - i);
        if (n <= 0) {
            return false;
        }
        i += (size_t)n;
    }
    return true;
}

static const char replacement[] = "\xEF\xBF\xBD";

size_t utf8_clean_octets(const char *text, size_t len, size_t *ret_step)
{
    int n = utf8_length(text, len);
    *ret_step = n > 0 ? (size_t)n : n == 0 ? 1 : len;
    return n > 0 ? (size_t)n : n == 0 ? sizeof replacement - 1 : 0;
}

size_t utf8_clean(const char *text, size_t len, char *ret_out, size_t size)
{
    size_t out = 0;
    size_t step = 0;
    for (size_t i = 0; i < len; i += step) {
        size_t bytes = utf8_clean_octets(text + i, len - i, &step);
        if (out + bytes >= size) {
            break;
        }
        memcpy(ret_out + out, bytes == step ? text + i : replacement, bytes);
        out += bytes;
    }
    if (size > 0) {
        ret_out[out] = '\0';
    }
    return out;
}

void utf8_cut_head(const char **text, size_t *len, size_t max)
{
    size_t clean = 0;
    size_t step = 0;
    for (size_t i = 0; i < *len; i += step) {
        clean += utf8_clean_octets(*text + i, *len - i, &step);
    }
    while (clean > max) {
        clean -= utf8_clean_octets(*text, *len, &step);
        *text += step;
        *len -= step;
    }
}
