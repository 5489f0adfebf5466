/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"

#include <check.h>
#include <stdio.h>

/* Runs in libcheck's fork, so stderr is this test's own. */
static void log_to_pipe(int ends[2])
{
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    (void)close(ends[1]);
}

/* What was logged, without "ts=… "; it stops reading when stderr is closed. */
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
    ck_assert(complaint_due(&c, 601 * US_PER_S)); /* the next trouble is new */
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
    tcase_add_test(t, a_repeated_complaint_is_said_at_growing_distance);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
