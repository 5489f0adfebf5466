/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/parse.h"
#include "support/suite.h"

#include <check.h>

static enum status parse(const char *text, int64_t *ret_value)
{
    return parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, ret_value, NULL);
}

static const struct {
    const char *text;
    int64_t value;
} numbers[] = {
    {"0", 0},
    {"7", 7},
    {"-1", -1},
    {"1234567890123456789", INT64_C(1234567890123456789)},
    {"9223372036854775807", INT64_MAX},
    {"-9223372036854775808", INT64_MIN},
};

START_TEST(a_canonical_number_is_read)
{
    int64_t v = 99;
    ck_assert_int_eq(parse(numbers[_i].text, &v), STATUS_OK);
    ck_assert_int_eq(v, numbers[_i].value);
}
END_TEST

static const char *const no_numbers[] = {
    "",
    "-",
    "+1",
    " 1",
    "1 ",
    "01",
    "-0",
    "00",
    "0x",
    "1e3",
    "1.0",
    "--1",
    "1-1",
    "١",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999",
    "123456789012345678901234567890",
};

START_TEST(everything_else_is_refused_and_leaves_the_value)
{
    int64_t v = 99;
    struct err err = {0};
    const char *text = no_numbers[_i];
    ck_assert_int_eq(parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, &v, &err), STATUS_INVALID);
    ck_assert_int_eq(v, 99);
    ck_assert_uint_gt(strlen(err.msg), 0);
}
END_TEST

START_TEST(a_number_ends_where_its_length_says)
{
    int64_t v = 0;
    ck_assert_int_eq(parse_i64("123x", 3, 0, 200, &v, NULL), STATUS_OK);
    ck_assert_int_eq(v, 123);
    ck_assert_int_eq(parse_i64("1\0002", 3, 0, 200, &v, NULL), STATUS_INVALID);
}
END_TEST

START_TEST(a_number_out_of_range_names_the_range)
{
    int64_t v = 0;
    struct err err = {0};
    ck_assert_int_eq(parse_i64("10", 2, 0, 9, &v, &err), STATUS_INVALID);
    ck_assert_str_eq(err.msg, "10 is not allowed; allowed: 0 to 9");
}
END_TEST

static const struct {
    const char *text;
    int64_t us;
} durations[] = {
    {"0", 0},
    {"5", 5 * US_PER_S},
    {"250ms", 250 * US_PER_MS},
    {"10s", 10 * US_PER_S},
    {"5m", 300 * US_PER_S},
    {"2h", 7200 * US_PER_S},
    {"1d", 86400 * US_PER_S},
};

START_TEST(a_duration_has_a_unit)
{
    int64_t us = -1;
    ck_assert_int_eq(parse_duration_us(durations[_i].text, &us, NULL), STATUS_OK);
    ck_assert_int_eq(us, durations[_i].us);
}
END_TEST

static const char *const no_durations[] = {
    "", "s", "-1s", "1 s", "1S", "1w", "1.5h", "1h30m", "ms", "9223372036854775807d", "010s",
};

START_TEST(what_is_no_duration_is_refused)
{
    int64_t us = -1;
    ck_assert_int_eq(parse_duration_us(no_durations[_i], &us, NULL), STATUS_INVALID);
    ck_assert_int_eq(us, -1);
}
END_TEST

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

static const struct {
    const char *in;
    size_t len;
    const char *out;
    bool is_clean;
} texts[] = {
    {"plain", 5, "plain", true},
    {"", 0, "", true},
    {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", true},
    {"a\0b", 3, "a" BAD "b", false},
    {"\xFF", 1, BAD, false},
    {"\x80x", 2, BAD "x", false},
    {"\xC0\x80", 2, BAD BAD, false},                 /* overlong NUL */
    {"\xE0\x80\x80", 3, BAD BAD BAD, false},         /* overlong */
    {"\xED\xA0\x80", 3, BAD BAD BAD, false},         /* a surrogate */
    {"\xF4\x90\x80\x80", 4, BAD BAD BAD BAD, false}, /* above U+10FFFF */
    {"\xC3(", 2, BAD "(", false},
    {"x\xE2\x82", 3, "x", false}, /* cut off at the end: dropped */
    {"x\xF0\x9F\x98", 4, "x", false},
};

START_TEST(text_from_outside_becomes_valid_utf8)
{
    char out[64];
    size_t n = utf8_clean(texts[_i].in, texts[_i].len, out, sizeof out);
    ck_assert_str_eq(out, texts[_i].out);
    ck_assert_uint_eq(n, strlen(texts[_i].out));
    ck_assert_int_eq(utf8_is_clean(texts[_i].in, texts[_i].len), texts[_i].is_clean);
    ck_assert(utf8_is_clean(out, n));
}
END_TEST

START_TEST(cleaning_never_cuts_a_character_nor_passes_the_end)
{
    char out[8];
    ck_assert_uint_eq(utf8_clean("abcdef\xE2\x82\xAC", 9, out, sizeof out), 6);
    ck_assert_str_eq(out, "abcdef");
    ck_assert_uint_eq(utf8_clean("\xFF\xFF\xFF", 3, out, sizeof out), 6);
    ck_assert_uint_eq(utf8_clean("abc", 3, out, 1), 0);
    ck_assert_str_eq(out, "");
    ck_assert_uint_eq(utf8_clean("abc", 3, out, 0), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_parse");
    TCase *t = tcase_create("base_parse");
    tcase_add_loop_test(t, a_canonical_number_is_read, 0, (int)ARRAY_COUNT(numbers));
    tcase_add_loop_test(t, everything_else_is_refused_and_leaves_the_value, 0,
                        (int)ARRAY_COUNT(no_numbers));
    tcase_add_test(t, a_number_ends_where_its_length_says);
    tcase_add_test(t, a_number_out_of_range_names_the_range);
    tcase_add_loop_test(t, a_duration_has_a_unit, 0, (int)ARRAY_COUNT(durations));
    tcase_add_loop_test(t, what_is_no_duration_is_refused, 0, (int)ARRAY_COUNT(no_durations));
    tcase_add_loop_test(t, text_from_outside_becomes_valid_utf8, 0, (int)ARRAY_COUNT(texts));
    tcase_add_test(t, cleaning_never_cuts_a_character_nor_passes_the_end);
    suite_add_tcase(s, t);
    return suite_run(s);
}
