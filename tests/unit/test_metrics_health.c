/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/health.h"
#include "support/suite.h"

#include <check.h>

static void ck_text_is(const struct health *h, const char *expected)
{
    autobuf struct buf out = BUF_INIT(4096);
    ck_assert_int_eq(health_render(h, &out, NULL), STATUS_OK);
    ck_assert_str_eq(buf_at(&out), expected);
}

START_TEST(all_checks_fine_is_ok)
{
    struct health h = {.count = 0};
    health_add(&h, "loop", true, "unused %d", 1);
    health_add(&h, "postgres", true, "unused");
    ck_assert(health_is_ok(&h));
    ck_text_is(&h, "{\"status\":\"ok\",\"checks\":{\"loop\":{\"ok\":true},"
                   "\"postgres\":{\"ok\":true}}}\n");
}
END_TEST

START_TEST(one_check_that_fails_says_why_and_the_whole_fails)
{
    struct health h = {.count = 0};
    health_add(&h, "loop", true, "unused");
    health_add(&h, "quorum", false, "%d of 5", 2);
    ck_assert(!health_is_ok(&h));
    ck_text_is(&h, "{\"status\":\"failing\",\"checks\":{\"loop\":{\"ok\":true},"
                   "\"quorum\":{\"ok\":false,\"why\":\"2 of 5\"}}}\n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("health");
    TCase *t = tcase_create("health");
    tcase_add_test(t, all_checks_fine_is_ok);
    tcase_add_test(t, one_check_that_fails_says_why_and_the_whole_fails);
    suite_add_tcase(s, t);
    return suite_run(s);
}
