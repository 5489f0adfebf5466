/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backoff.h"
#include "support/backoff_cases.h"
#include "support/suite.h"

#include <check.h>

START_TEST(a_backoff_waits_as_its_text_says)
{
    struct backoff b;
    struct err err = {0};
    ck_assert_msg(backoff_parse(backoff_delays[_i].text, &b, &err) == STATUS_OK, "%s", err.msg);
    int64_t us = backoff_us(&b, backoff_delays[_i].attempt, backoff_delays[_i].unit);
    ck_assert_msg(us == backoff_delays[_i].us, "%s, attempt %d: %lld", backoff_delays[_i].text,
                  backoff_delays[_i].attempt, (long long)us);
}
END_TEST

START_TEST(a_malformed_backoff_is_refused_with_the_allowed_forms)
{
    struct backoff b = {.count = 7};
    struct err err = {0};
    ck_assert_msg(backoff_parse(backoff_malformed[_i], &b, &err) == STATUS_INVALID, "%s",
                  backoff_malformed[_i]);
    ck_assert_ptr_nonnull(strstr(err.msg, "exponential:15s:1h"));
    ck_assert_uint_eq(b.count, 7);
}
END_TEST

START_TEST(the_usual_backoff_is_one_of_them)
{
    struct backoff b;
    ck_assert_int_eq(backoff_parse("exponential:15s:1h~10%", &b, NULL), STATUS_OK);
    for (int attempt = 1; attempt < 12; attempt++) {
        for (int unit = 0; unit <= 1000; unit += 250) {
            ck_assert_int_eq(backoff_us(&b, attempt, unit), job_backoff_us(attempt, unit));
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("backoff");
    TCase *c = tcase_create("forms");
    tcase_add_loop_test(c, a_backoff_waits_as_its_text_says, 0, (int)ARRAY_COUNT(backoff_delays));
    tcase_add_loop_test(c, a_malformed_backoff_is_refused_with_the_allowed_forms, 0,
                        (int)ARRAY_COUNT(backoff_malformed));
    tcase_add_test(c, the_usual_backoff_is_one_of_them);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
