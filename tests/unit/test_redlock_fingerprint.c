/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/redlock_status.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[REDLOCK_FINGERPRINT_SIZE];

/* Returns the fingerprint of up to three URLs; NULL ends the list. */
static const char *of(const char *a, const char *b, const char *c)
{
    char nodes[256];
    struct redlock_report report = {0};
    (void)snprintf(nodes, sizeof nodes, "%s%s%s%s%s", a, b != NULL ? "," : "", b != NULL ? b : "",
                   c != NULL ? ", " : "", c != NULL ? c : "");
    ck_assert_msg(redlock_fingerprint(nodes, text, &report) == REDLOCK_OK, "%s", report.message);
    ck_assert_uint_eq(strlen(text), 16);
    ck_assert_uint_eq(strspn(text, "0123456789abcdef"), 16);
    return text;
}

static void same(const char *a, const char *b, const char *c)
{
    char first[REDLOCK_FINGERPRINT_SIZE];
    (void)snprintf(first, sizeof first, "%s", of("h1", "h2", "h3"));
    ck_assert_str_eq(of(a, b, c), first);
}

static void other(const char *a, const char *b, const char *c)
{
    char first[REDLOCK_FINGERPRINT_SIZE];
    (void)snprintf(first, sizeof first, "%s", of("h1", "h2", "h3"));
    ck_assert_str_ne(of(a, b, c), first);
}

START_TEST(N8_equal_lists_have_equal_fingerprints)
{
    same("h1", "h2", "h3");
    same("h3", "h1", "h2"); /* in any order */
    same("H1", "h2:6379", "redis://H3");
    same("redis://user:secret@h1", "h2", "redis://h3:6379/0"); /* independent of the login */
}
END_TEST

START_TEST(N8_other_lists_have_other_fingerprints)
{
    other("h1", "h2", NULL);
    other("h1", "h2", "h4");
    other("h1:6380", "h2", "h3");
    other("redis://h1/1", "redis://h2/1", "redis://h3/1"); /* another database has other locks */
    other("h1", "h2", "unix:/h3");
    char first[REDLOCK_FINGERPRINT_SIZE];
    (void)snprintf(first, sizeof first, "%s", of("unix:/A", NULL, NULL));
    ck_assert_str_ne(of("unix:/a", NULL, NULL), first); /* paths are case-sensitive */
}
END_TEST

/* Programs of different versions store it, so it must not change. */
START_TEST(N8_the_fingerprint_of_a_list_is_the_same_for_ever)
{
    ck_assert_str_eq(of("10.0.0.1", "10.0.0.2", "10.0.0.3"), "bd33aab468b02a42");
}
END_TEST

START_TEST(N8_a_hundred_thousand_lists_collide_nowhere)
{
    enum { LISTS = 100000, SLOTS = 1 << 20 };
    uint64_t *seen = calloc(SLOTS, sizeof *seen);
    ck_assert_ptr_nonnull(seen);
    for (int i = 0; i < LISTS; i++) {
        char url[32];
        (void)snprintf(url, sizeof url, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        uint64_t print = strtoull(of(url, "h2", "h3"), NULL, 16);
        size_t at = print % SLOTS;
        while (seen[at] != 0) {
            ck_assert_uint_ne(seen[at], print);
            at = (at + 1) % SLOTS;
        }
        seen[at] = print;
    }
    free(seen);
}
END_TEST

START_TEST(N8_a_list_that_can_not_be_is_refused)
{
    struct redlock_report report = {0};
    ck_assert_int_eq(redlock_fingerprint("", text, &report), REDLOCK_INVALID);
    ck_assert_ptr_nonnull(strstr(report.message, "no nodes: set nodes or $REDLOCK_NODES"));
    ck_assert_int_eq(redlock_fingerprint("h1,,h2", text, &report), REDLOCK_INVALID);
    ck_assert_int_eq(redlock_fingerprint("h1,H1:6379", text, &report), REDLOCK_INVALID);
    ck_assert_ptr_nonnull(strstr(report.message, "H1:6379 is named twice"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redlock_fingerprint");
    TCase *t = tcase_create("fingerprint");
    tcase_add_test(t, N8_equal_lists_have_equal_fingerprints);
    tcase_add_test(t, N8_other_lists_have_other_fingerprints);
    tcase_add_test(t, N8_the_fingerprint_of_a_list_is_the_same_for_ever);
    tcase_add_test(t, N8_a_hundred_thousand_lists_collide_nowhere);
    tcase_add_test(t, N8_a_list_that_can_not_be_is_refused);
    suite_add_tcase(s, t);
    return suite_run(s);
}
