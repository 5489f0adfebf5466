/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/text.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

START_TEST(the_first_error_wins)
{
    struct err err = {0};
    ck_assert_int_eq(err_fail(&err, STATUS_INVALID, "first %d", 1), STATUS_INVALID);
    ck_assert_int_eq(err_fail(&err, STATUS_TIMEOUT, "second"), STATUS_TIMEOUT);
    ck_assert_int_eq(err.status, STATUS_INVALID);
    ck_assert_str_eq(err.msg, "first 1");
}
END_TEST

START_TEST(an_error_may_be_nobodys_interest)
{
    ck_assert_int_eq(err_fail(NULL, STATUS_LIMIT, "unseen"), STATUS_LIMIT);
    err_prefix(NULL, "context");
}
END_TEST

START_TEST(a_system_error_appends_its_text)
{
    struct err err = {0};
    ck_assert_int_eq(err_fail_sys(&err, STATUS_UNAVAILABLE, ENOENT, "open %s", "x"),
                     STATUS_UNAVAILABLE);
    ck_assert_str_eq(err.msg, "open x: No such file or directory");
}
END_TEST

START_TEST(a_prefix_goes_before_the_text_and_cuts_its_tail)
{
    struct err err = {0};
    char long_text[2 * ERR_TEXT_MAX];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    err_set(&err, STATUS_INTERNAL, 0, "%s", long_text);
    ck_assert_uint_eq(strlen(err.msg), ERR_TEXT_MAX - 1);
    err_prefix(&err, "load '%s'", "a");
    ck_assert_int_eq(strncmp(err.msg, "load 'a': xxx", 13), 0);
    ck_assert_uint_lt(strlen(err.msg), ERR_TEXT_MAX);
}
END_TEST

START_TEST(a_prefix_makes_no_error_of_success)
{
    struct err err = {0};
    err_prefix(&err, "context");
    ck_assert_int_eq(err.status, STATUS_OK);
    ck_assert_str_eq(err.msg, "");
}
END_TEST

START_TEST(every_status_has_a_text)
{
    for (int st = STATUS_OK; st <= STATUS_INTERNAL; st++) {
        ck_assert_uint_gt(strlen(status_text((enum status)st)), 0);
    }
    ck_assert_str_eq(status_text((enum status)99), "unknown status");
}
END_TEST

START_TEST(a_buffer_refuses_to_pass_its_bound_and_keeps_its_content)
{
    autobuf struct buf b = BUF_INIT(10);
    ck_assert_int_eq(buf_append_text(&b, "12345678", NULL), STATUS_OK);
    ck_assert_int_eq(buf_append_text(&b, "abc", NULL), STATUS_LIMIT);
    ck_assert_int_eq(buf_printf(&b, NULL, "%d", 123), STATUS_LIMIT);
    ck_assert_int_eq(buf_append(&b, "x", SIZE_MAX, NULL), STATUS_LIMIT);
    ck_assert_str_eq(buf_at(&b), "12345678");
    ck_assert_int_eq(buf_append_text(&b, "90", NULL), STATUS_OK);
    ck_assert_uint_eq(b.len, 10);
}
END_TEST

START_TEST(special_bytes_get_a_backslash_and_a_full_buffer_says_so)
{
    autobuf struct buf b = BUF_INIT(8);
    ck_assert_int_eq(buf_append_escaped(&b, "a\"b\\", 4, "\"\\", NULL), STATUS_OK);
    ck_assert_str_eq(buf_at(&b), "a\\\"b\\\\");
    /* A NUL is a byte like any other. */
    ck_assert_int_eq(buf_append_escaped(&b, "\0", 1, "x", NULL), STATUS_OK);
    ck_assert_uint_eq(b.len, 7);
    ck_assert_int_eq(buf_append_escaped(&b, "\"", 1, "\"", NULL), STATUS_LIMIT);
}
END_TEST

START_TEST(the_first_failure_of_a_text_sticks)
{
    autotext struct text t = TEXT_INIT(8);
    struct err err = {0};
    ck_assert_str_eq(text_str(&t), "");
    text_put(&t, "%d-%s", 12, "ab");
    text_put_escaped(&t, "x\"", 2, "\"");
    ck_assert_int_eq(text_end(&t, &err), STATUS_OK);
    ck_assert_str_eq(text_str(&t), "12-abx\\\"");
    text_put(&t, "%s", "too long");
    text_put_bytes(&t, "", 0);
    text_put(&t, "y");
    ck_assert_str_eq(text_str(&t), "12-abx\\\"");
    ck_assert_int_eq(text_end(&t, &err), STATUS_LIMIT);
    ck_assert_int_eq(err.status, STATUS_LIMIT);
}
END_TEST

/* Appends numbers at the tail while others are taken from the head, and compares these. */
START_TEST(a_buffer_is_a_queue_of_bytes)
{
    autobuf struct buf b = BUF_INIT(4096);
    unsigned char in = 0;
    unsigned char out = 0;
    for (int round = 0; round < 5000; round++) {
        for (int i = 0; i < round % 7 + 1; i++, in++) {
            ck_assert_int_eq(buf_append_byte(&b, (char)in, NULL), STATUS_OK);
        }
        size_t n = b.len > 900 || round % 3 == 0 ? b.len * 2 / 3 : b.len / 4;
        for (size_t i = 0; i < n; i++, out++) {
            ck_assert_uint_eq((unsigned char)buf_at(&b)[i], out);
        }
        buf_consume(&b, n);
        ck_assert_int_eq(buf_at(&b)[b.len], '\0');
    }
    ck_assert_uint_eq((unsigned char)(in - out), (unsigned char)b.len);
    ck_assert_uint_le(b.cap, 8192);
}
END_TEST

START_TEST(a_released_buffer_keeps_its_bound_and_can_be_used_again)
{
    struct buf b;
    buf_init(&b, 100);
    ck_assert_int_eq(buf_printf(&b, NULL, "%s-%d", "a", 7), STATUS_OK);
    ck_assert_str_eq(buf_at(&b), "a-7");
    buf_release(&b);
    buf_release(&b);
    ck_assert_uint_eq(b.max, 100);
    ck_assert_int_eq(buf_append_text(&b, "again", NULL), STATUS_OK);
    buf_reset(&b);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_str_eq(buf_at(&b), "");
    buf_release(&b);
}
END_TEST

START_TEST(ownership_moves_with_take)
{
    autofree char *p = strdup("x");
    char *taken = TAKE(p);
    ck_assert_ptr_null(p);
    ck_assert_str_eq(taken, "x");
    free(taken);
}
END_TEST

START_TEST(a_scope_closes_its_descriptor_and_keeps_errno)
{
    int copy = -1;
    errno = EAGAIN;
    {
        autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        copy = fd;
    }
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(fcntl(copy, F_GETFD), -1);
}
END_TEST

START_TEST(random_bytes_differ_and_are_whole)
{
    unsigned char a[300] = {0};
    unsigned char b[300] = {0};
    size_t zeros = 0;
    ck_assert_int_eq(rand_bytes(a, sizeof a, NULL), STATUS_OK);
    ck_assert_int_eq(rand_bytes(b, sizeof b, NULL), STATUS_OK);
    ck_assert_int_ne(memcmp(a, b, sizeof a), 0);
    for (size_t i = 0; i < sizeof a; i++) {
        zeros += a[i] == 0 ? 1 : 0;
    }
    ck_assert_uint_lt(zeros, 30); /* 1.2 expected */
}
END_TEST

START_TEST(a_seed_repeats_its_draws)
{
    struct rand a;
    struct rand b;
    rand_seed(&a, 42);
    rand_seed(&b, 42);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(rand_next(&a), rand_next(&b));
    }
    rand_seed_from_system(&b);
    ck_assert_uint_ne(rand_next(&a), rand_next(&b));
}
END_TEST

START_TEST(a_draw_stays_below_its_bound_and_jitter_within_its_percent)
{
    struct rand r;
    int64_t least = INT64_MAX;
    int64_t most = 0;
    rand_seed(&r, 7);
    for (int i = 0; i < 10000; i++) {
        int64_t v = rand_below(&r, 5);
        ck_assert(v >= 0 && v < 5);
        int64_t j = rand_jitter(&r, 1000000, 10);
        least = j < least ? j : least;
        most = j > most ? j : most;
    }
    ck_assert(least >= 900000 && least < 901000);
    ck_assert(most <= 1100000 && most > 1099000);
    ck_assert_int_eq(rand_below(&r, 0), 0);
}
END_TEST

START_TEST(the_clock_counts_microseconds_and_never_goes_back)
{
    int64_t before = clock_boot_us();
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_boot_us();
        ck_assert_int_ge(now, before);
        before = now;
    }
    char text[CLOCK_TEXT_SIZE];
    clock_wall_text(text, sizeof text);
    ck_assert_uint_eq(strlen(text), CLOCK_TEXT_SIZE - 1);
    ck_assert_int_eq(text[CLOCK_TEXT_SIZE - 2], 'Z');
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    tcase_add_test(t, the_first_error_wins);
    tcase_add_test(t, an_error_may_be_nobodys_interest);
    tcase_add_test(t, a_system_error_appends_its_text);
    tcase_add_test(t, a_prefix_goes_before_the_text_and_cuts_its_tail);
    tcase_add_test(t, a_prefix_makes_no_error_of_success);
    tcase_add_test(t, every_status_has_a_text);
    tcase_add_test(t, a_buffer_refuses_to_pass_its_bound_and_keeps_its_content);
    tcase_add_test(t, special_bytes_get_a_backslash_and_a_full_buffer_says_so);
    tcase_add_test(t, the_first_failure_of_a_text_sticks);
    tcase_add_test(t, a_buffer_is_a_queue_of_bytes);
    tcase_add_test(t, a_released_buffer_keeps_its_bound_and_can_be_used_again);
    tcase_add_test(t, ownership_moves_with_take);
    tcase_add_test(t, a_scope_closes_its_descriptor_and_keeps_errno);
    tcase_add_test(t, random_bytes_differ_and_are_whole);
    tcase_add_test(t, a_seed_repeats_its_draws);
    tcase_add_test(t, a_draw_stays_below_its_bound_and_jitter_within_its_percent);
    tcase_add_test(t, the_clock_counts_microseconds_and_never_goes_back);
    suite_add_tcase(s, t);
    return suite_run(s);
}
