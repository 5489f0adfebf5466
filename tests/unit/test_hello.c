/* SPDX-License-Identifier: Apache-2.0 */
#include "support/suite.h"
#include "worker/membership/hello.h"

#include <check.h>
#include <stdio.h>

#define GOOD                                                                                       \
    "'name': 'a', 'plugin': 'p', 'version': '1', 'max_attempts': 1000, 'max_crashes': 3, "         \
    "'timeout_ms': 31536000000, 'at_most_once': false, 'backoff': 'fixed:1s', 'keep_log': false, " \
    "'grace_ms': 3600000"

/* Parses a hello with these members added; later members win. */
static size_t kinds_of(const char *more, struct worker_kind kinds[KIND_SET_MAX], json_t **ret_hello)
{
    char text[2048];
    (void)snprintf(text, sizeof text, "{'kinds': [{" GOOD "%s}]}", more);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    *ret_hello = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(*ret_hello);
    return hello_kinds(*ret_hello, kinds);
}

/* Values that PostgreSQL would refuse, which would prevent the other kinds from being announced. */
static const char *const bad[] = {
    ", 'name': 'A b'",
    ", 'name': ''",
    ", 'plugin': 'no/plugin'",
    (", 'version': "
     "'12345678901234567890123456789012345678901234567890123456789012345'"),
    ", 'max_attempts': 0",
    ", 'max_attempts': 1001",
    ", 'max_attempts': 9223372036854775807",
    ", 'max_crashes': -1",
    ", 'timeout_ms': 0",
    ", 'timeout_ms': 31536000001",
    ", 'timeout_ms': 9223372036854775807",
    ", 'backoff': 'now and then'",
    ", 'timeout_ms': '1'",
    ", 'at_most_once': 1",
    ", 'grace_ms': -1",
    ", 'grace_ms': 3600001"};

START_TEST(G5_a_kind_that_postgresql_would_refuse_is_left_out)
{
    struct worker_kind kinds[KIND_SET_MAX];
    json_t *hello = NULL;
    ck_assert_uint_eq(kinds_of("", kinds, &hello), 1);
    ck_assert_int_eq(kinds[0].settings.timeout_us, INT64_C(31536000000) * 1000);
    ck_assert_int_eq(kinds[0].settings.grace_us, INT64_C(3600000) * 1000);
    json_decref(hello);
    ck_assert_uint_eq(kinds_of(bad[_i], kinds, &hello), 0);
    json_decref(hello);
}
END_TEST

START_TEST(G5_a_kind_that_is_said_twice_is_taken_once)
{
    struct worker_kind kinds[KIND_SET_MAX];
    json_t *hello = NULL;
    ck_assert_uint_eq(kinds_of("}, {" GOOD, kinds, &hello), 1);
    json_decref(hello);
    ck_assert_uint_eq(kinds_of("}, {" GOOD ", 'name': 'b'", kinds, &hello), 2);
    json_decref(hello);
}
END_TEST

START_TEST(G5_of_very_many_refused_files_the_first_are_looked_at)
{
    json_t *refused = json_array();
    for (int i = 0; i < 2 * HELLO_REFUSED_MAX; i++) {
        ck_assert_int_eq(json_array_append_new(refused, json_integer(i)), 0);
    }
    ck_assert_uint_eq(hello_refused_count(refused), HELLO_REFUSED_MAX);
    json_decref(refused);
    ck_assert_uint_eq(hello_refused_count(NULL), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hello");
    TCase *c = tcase_create("hello");
    tcase_add_loop_test(c, G5_a_kind_that_postgresql_would_refuse_is_left_out, 0,
                        (int)ARRAY_COUNT(bad));
    tcase_add_test(c, G5_a_kind_that_is_said_twice_is_taken_once);
    tcase_add_test(c, G5_of_very_many_refused_files_the_first_are_looked_at);
    suite_add_tcase(s, c);
    return suite_run(s);
}
