/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "support/suite.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>

/* Runs in libcheck's fork, so stderr belongs to this test. */
static void log_to_pipe(int ends[2])
{
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    (void)close(ends[1]);
}

/* Returns what was logged, without "ts=… ". Closes stderr, so that reading ends. */
static void logged(int read_fd, char *ret_text, size_t size)
{
    size_t len = 0;
    ssize_t n = 0;
    (void)close(STDERR_FILENO);
    while ((n = read(read_fd, ret_text + len, size - 1 - len)) > 0) {
        len += (size_t)n;
    }
    ret_text[len] = '\0';
    if (len > 0) {
        const char *rest = strchr(ret_text, ' ');
        ck_assert(strncmp(ret_text, "ts=", 3) == 0 && rest != NULL);
        memmove(ret_text, rest + 1, strlen(rest));
    }
}

#define assert_logged(expected)               \
    do {                                      \
        char text_[8192];                     \
        logged(ends[0], text_, sizeof text_); \
        ck_assert_str_eq(text_, (expected));  \
    } while (0)

START_TEST(a_line_has_level_program_event_and_fields)
{
    int ends[2];
    log_init("worker", LOG_INFO);
    log_to_pipe(ends);
    log_info("job_finished", LOG_I64("job", -7), LOG_TEXT("outcome", "done"));
    assert_logged("level=info program=worker event=job_finished job=-7 outcome=done\n");
}
END_TEST

START_TEST(what_could_be_misread_is_quoted_and_escaped)
{
    int ends[2];
    log_init("p", LOG_INFO);
    log_to_pipe(ends);
    log_warn("e", LOG_TEXT("a", "two words"), LOG_TEXT("b", ""), LOG_TEXT("c", "k=\"v\"\\"),
             LOG_TEXT("d", "line\nfeed\x01"), LOG_TEXT("e", "früh"));
    assert_logged("level=warn program=p event=e a=\"two words\" b=\"\" c=\"k=\\\"v\\\"\\\\\" "
                  "d=\"line\\nfeed\\x01\" e=früh\n");
}
END_TEST

START_TEST(a_level_above_the_maximum_is_silent)
{
    int ends[2];
    log_init("p", LOG_WARN);
    log_to_pipe(ends);
    log_info("quiet", LOG_I64("n", 1));
    log_write(LOG_DEBUG, "quiet", NULL, 0);
    log_error("loud", LOG_I64("n", 1));
    assert_logged("level=error program=p event=loud n=1\n");
}
END_TEST

START_TEST(a_long_value_is_cut_and_the_line_still_ends)
{
    int ends[2];
    char text[8192];
    char value[5000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    log_init("p", LOG_INFO);
    log_to_pipe(ends);
    log_info("e", LOG_TEXT("value", value), LOG_TEXT("more", value));
    logged(ends[0], text, sizeof text);
    ck_assert_uint_lt(strlen(text), 2048);
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
END_TEST

/* ---- JSON ---- */

/* Returns the one line that was logged, as an object; fails the test if it is not one. */
static json_t *logged_json(int read_fd, size_t *ret_len)
{
    char text[8192];
    size_t len = 0;
    ssize_t n = 0;
    json_error_t where;
    (void)close(STDERR_FILENO);
    while ((n = read(read_fd, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    ck_assert_ptr_eq(strchr(text, '\n'), text + len - 1);
    json_t *line = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    ck_assert_msg(json_is_object(line), "%s: %s", where.text, text);
    *ret_len = len;
    return line;
}

static const char *text_of(const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));
    return text == NULL ? "(none)" : text;
}

START_TEST(a_json_line_has_the_same_fields_numbers_as_numbers)
{
    int ends[2];
    size_t len = 0;
    log_init("worker", LOG_INFO);
    log_set(LOG_INFO, LOG_JSON);
    log_to_pipe(ends);
    log_warn("job_finished", LOG_I64("job", INT64_MIN), LOG_TEXT("outcome", "done"));
    json_auto_t *line = logged_json(ends[0], &len);
    const char *ts = text_of(line, "ts");
    ck_assert_uint_eq(strlen(ts), strlen("2026-01-02T03:04:05.678901Z"));
    ck_assert_msg(ts[10] == 'T' && ts[19] == '.' && ts[26] == 'Z', "%s", ts);
    ck_assert_str_eq(text_of(line, "level"), "warn");
    ck_assert_str_eq(text_of(line, "program"), "worker");
    ck_assert_str_eq(text_of(line, "event"), "job_finished");
    ck_assert(json_integer_value(json_object_get(line, "job")) == INT64_MIN);
    ck_assert_str_eq(text_of(line, "outcome"), "done");
    ck_assert_uint_eq(json_object_size(line), 6);
}
END_TEST

static const struct {
    const char *text;
    const char *read_back;
} json_values[] = {
    {"", ""},
    {"two words, k=\"v\" and a \\", "two words, k=\"v\" and a \\"},
    {"line\nfeed, tab\t, \x01 and \x7f", "line\nfeed, tab\t, \x01 and \x7f"},
    {"früh \xE2\x82\xAC \xF0\x9F\x98\x80", "früh \xE2\x82\xAC \xF0\x9F\x98\x80"},
    {"bad \xFF byte", "bad \xEF\xBF\xBD byte"},
    {"overlong \xC0\x80, surrogate \xED\xA0\x80",
     "overlong \xEF\xBF\xBD\xEF\xBF\xBD, surrogate \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"cut \xE2\x82", "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
};

START_TEST(a_json_value_is_read_back_as_valid_utf8)
{
    int ends[2];
    size_t len = 0;
    log_init("p", LOG_INFO);
    log_set(LOG_INFO, LOG_JSON);
    log_to_pipe(ends);
    log_info("e", LOG_TEXT("v", json_values[_i].text));
    json_auto_t *line = logged_json(ends[0], &len);
    ck_assert_str_eq(text_of(line, "v"), json_values[_i].read_back);
}
END_TEST

/* Uses values of every length around the limit, which end in characters that are escaped to several
 * bytes. */
START_TEST(a_long_json_line_is_cut_and_stays_json)
{
    static const char *const tails[] = {"v", "\n", "\x01", "\xE2\x82\xAC", "\xFF", "\""};
    size_t at = 1800 + (size_t)_i % 300;
    char value[4096];
    const char *tail = tails[(size_t)_i % ARRAY_COUNT(tails)];
    memset(value, 'v', sizeof value);
    for (char *p = value + at; p + strlen(tail) < value + sizeof value; p += strlen(tail)) {
        memcpy(p, tail, strlen(tail) + 1);
    }
    int ends[2];
    size_t len = 0;
    log_init("p", LOG_INFO);
    log_set(LOG_INFO, LOG_JSON);
    log_to_pipe(ends);
    log_info("e", LOG_TEXT("value", value), LOG_I64("n", 1), LOG_TEXT("more", value));
    json_auto_t *line = logged_json(ends[0], &len);
    ck_assert_uint_le(len, 2048);
    ck_assert_uint_ge(len, 2000);
    ck_assert_int_eq(text_of(line, "value")[0], 'v');
}
END_TEST

START_TEST(a_bad_byte_is_escaped_in_logfmt)
{
    int ends[2];
    log_init("p", LOG_INFO);
    log_to_pipe(ends);
    log_info("e", LOG_TEXT("v", "bad\xFF"));
    assert_logged("level=info program=p event=e v=\"bad\\xff\"\n");
}
END_TEST

START_TEST(a_repeated_complaint_is_said_at_growing_distance)
{
    struct complaint c = {0};
    int said = 0;
    int64_t last_us = 0;
    int64_t distance_us = 0;
    for (int64_t now = US_PER_S; now < 600 * US_PER_S; now += US_PER_S / 10) {
        if (complaint_due(&c, now)) {
            ck_assert_int_ge(now - last_us, distance_us);
            distance_us = said > 1 && now - last_us < 60 * US_PER_S ? now - last_us : distance_us;
            last_us = now;
            said++;
        }
    }
    ck_assert_int_gt(said, 5);
    ck_assert_int_lt(said, 20);
    ck_assert_int_eq(complaint_end(&c), 5990);
    ck_assert_int_eq(complaint_end(&c), 0);
    ck_assert(complaint_due(&c, 601 * US_PER_S)); /* later trouble counts as new */
    ck_assert(!complaint_is_quiet(&c, 602 * US_PER_S, 2 * US_PER_S));
    ck_assert(complaint_is_quiet(&c, 603 * US_PER_S, 2 * US_PER_S));
    c = (struct complaint){0};
    ck_assert(!complaint_is_quiet(&c, 603 * US_PER_S, 2 * US_PER_S));
}
END_TEST

START_TEST(what_has_recovered_says_after_how_many)
{
    int ends[2];
    struct complaint c = {0};
    log_init("p", LOG_INFO);
    log_to_pipe(ends);
    log_recovered("postgres_up", &c); /* there was no trouble: no line */
    (void)complaint_due(&c, 1);
    (void)complaint_due(&c, 2);
    log_recovered("postgres_up", &c);
    log_recovered("postgres_up", &c);
    assert_logged("level=info program=p event=postgres_up after=2\n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_log");
    TCase *t = tcase_create("base_log");
    tcase_add_test(t, a_line_has_level_program_event_and_fields);
    tcase_add_test(t, what_could_be_misread_is_quoted_and_escaped);
    tcase_add_test(t, a_level_above_the_maximum_is_silent);
    tcase_add_test(t, a_long_value_is_cut_and_the_line_still_ends);
    tcase_add_test(t, a_json_line_has_the_same_fields_numbers_as_numbers);
    tcase_add_loop_test(t, a_json_value_is_read_back_as_valid_utf8, 0,
                        (int)ARRAY_COUNT(json_values));
    tcase_add_loop_test(t, a_long_json_line_is_cut_and_stays_json, 0, 300);
    tcase_add_test(t, a_bad_byte_is_escaped_in_logfmt);
    tcase_add_test(t, what_has_recovered_says_after_how_many);
    tcase_add_test(t, a_repeated_complaint_is_said_at_growing_distance);
    suite_add_tcase(s, t);
    return suite_run(s);
}
