/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do to jobs of a cluster at work. The safety net is far away: a full pass comes
 * once an hour, so what runs was fed for the act itself. */
#include "operator.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define SOON_US (60 * US_PER_S)
#define RARE_FULL_PASS "\"scheduler\": {\"full_pass_ms\": 3600000}"

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3, .more = RARE_FULL_PASS});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* claimctl ends with 0 and prints `part`. */
static void ctl_says(const char *words, const char *part)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    int code = operator_ctl(&f, "config.json", "", words, &out);
    ck_assert_int_eq(buf_append(&out, "", 1, NULL), STATUS_OK);
    ck_assert_msg(code == 0 && strstr(buf_at(&out), part) != NULL, "%s: exit %d: %.3000s", words,
                  code, buf_at(&out));
}

START_TEST(retried_jobs_are_fed_at_once)
{
    fleet_enqueue(&f, "fail", "{}", 300);
    fleet_wait_finished(&f, 300, "discarded", SOON_US);
    ctl_says("jobs retry --kind fail", "300 jobs retried");
    fleet_wait_finished(&f, 600, "discarded", SOON_US);
    ck_assert_int_eq(sql_i64(f.sql, "SELECT count(*) FROM claimd.jobs WHERE generation = 1 AND "
                                    "attempt = 1 AND state = 'discarded'"),
                     300);
    ck_assert_int_eq(sql_i64(f.sql, "SELECT count(*) FROM claimd.jobs"), 300);
    ctl_says("db verify", "");
}
END_TEST

START_TEST(what_may_start_once_starts_once_more_when_it_is_retried)
{
    int64_t id = fleet_enqueue(&f, "once", "{\"crash\": true}", 1);
    char words[64];
    fleet_wait_finished(&f, 1, "discarded", SOON_US);
    (void)snprintf(words, sizeof words, "jobs retry %lld", (long long)id);
    ctl_says(words, "available");
    fleet_wait_finished(&f, 2, "discarded", SOON_US);
    ck_assert_int_eq(sql_i64(f.sql, "SELECT count(*) FROM claimd.job_attempt"), 2);
    ctl_says("db verify", "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("operating");
    TCase *tests = tcase_create("operating");
    tcase_add_unchecked_fixture(tests, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, retried_jobs_are_fed_at_once);
    tcase_add_test(tests, what_may_start_once_starts_once_more_when_it_is_retried);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
