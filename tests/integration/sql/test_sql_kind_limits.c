/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of kinds (feat.D3): the key that a claim gives to the jobs of a kind. */
#include "sql_db.h"
#include "support/sql.h"

static void setup_kinds(void)
{
    setup();
    run("INSERT INTO claimd.kind (name) VALUES ('a'), ('b')");
}

#define CLAIM                                                                           \
    "SELECT COALESCE(string_agg(id::text, ',' ORDER BY id), '') FROM "                  \
    "claimd.claim_limited(ARRAY(SELECT id FROM claimd.job WHERE state = 'available'), " \
    "gen_random_uuid(), '{a,b}', '{}')"
#define KEYS                                                                                    \
    "SELECT string_agg(concat_ws(' ', id, exclusive_key, second_key, flags & 4098), ',' ORDER " \
    "BY id) FROM claimd.job"
#define LIMITS                                                                                   \
    "SELECT COALESCE(string_agg(key || ' ' || max_running || ' ' || COALESCE(rate::text, '-'), " \
    "','), '') FROM claimd.key_limit"

START_TEST(feat_D3_so_many_jobs_of_a_kind_run_in_all_queues_and_others_go_on)
{
    run("SELECT claimd.enqueue('a', queue => 'q' || n)::text FROM generate_series(1, 4) AS n");
    run("SELECT claimd.enqueue('b')::text FROM generate_series(1, 3)");
    run("SELECT claimd.set_kind('a', '{\"max_running\": 2}')::text");
    ck_assert_str_eq(text(CLAIM), "1,2,5,6,7");
    ck_assert_str_eq(text(CLAIM), "");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.key_waiting"), 2);
}
END_TEST

START_TEST(feat_D3_a_job_with_a_key_of_its_own_needs_a_place_of_both)
{
    run("SELECT claimd.set_kind('a', '{\"max_running\": 2}')::text");
    run("SELECT claimd.enqueue('a', exclusive_key => 'x')::text FROM generate_series(1, 2)");
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    ck_assert_str_eq(text(CLAIM), "1,3");
    ck_assert_str_eq(text(KEYS), "1 x kind:a 4098,2 x kind:a 4098,3 kind:a 4098,4 kind:a 4098");
}
END_TEST

START_TEST(feat_D3_a_job_with_two_keys_of_its_own_is_beyond_the_limit_of_its_kind)
{
    run("SELECT claimd.set_kind('a', '{\"max_running\": 1}')::text");
    run("SELECT claimd.enqueue('a')::text");
    run("SELECT claimd.enqueue('a', exclusive_key => 'x', second_key => 'y')::text");
    ck_assert_str_eq(text(CLAIM), "1,2");
    ck_assert_str_eq(text(KEYS), "1 kind:a 4098,2 x y 2");
}
END_TEST

START_TEST(feat_D3_without_the_limit_a_job_loses_the_key_that_it_did_not_bring)
{
    run("SELECT claimd.set_kind('a', '{\"max_running\": 1}')::text");
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 3)");
    run("SELECT claimd.enqueue('a', exclusive_key => 'x')::text");
    run("SELECT claimd.enqueue('a', exclusive_key => 'kind:a')::text");
    ck_assert_str_eq(text(CLAIM), "1");
    run("SELECT claimd.set_kind('a', '{\"max_running\": null}')::text");
    ck_assert_str_eq(text(LIMITS), "");
    ck_assert_str_eq(text(CLAIM), "2,3,4");
    ck_assert_str_eq(text(KEYS), "1 kind:a 4098,2 0,3 0,4 x 2,5 kind:a 2");
}
END_TEST

START_TEST(feat_D3_a_rate_alone_lets_any_number_run_and_each_limit_can_be_taken_back)
{
    run("SELECT claimd.set_kind('a', '{\"rate\": \"60/m\"}')::text");
    ck_assert_str_eq(text(LIMITS), "kind:a 1000 1");
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 9)");
    ck_assert_str_eq(text(CLAIM), "1"); /* a bucket begins with one token */
    run("SELECT claimd.set_kind('a', '{\"max_running\": 7, \"timeout\": \"1 min\"}')::text");
    ck_assert_str_eq(text(LIMITS), "kind:a 7 1");
    run("SELECT claimd.set_kind('a', '{\"rate\": null}')::text");
    ck_assert_str_eq(text(LIMITS), "kind:a 7 -");
    run("SELECT claimd.set_kind('a', '{\"max_running\": null}')::text");
    ck_assert_str_eq(text(LIMITS), "");
    ck_assert_str_eq(text("SELECT string_agg(name || limited, ',' ORDER BY name) FROM claimd.kind"),
                     "afalse,bfalse");
}
END_TEST

START_TEST(feat_D3_a_kind_that_nobody_has_announced_can_have_a_limit)
{
    run("SELECT claimd.set_kind('later', '{\"max_running\": 3}')::text");
    ck_assert_str_eq(text("SELECT string_agg(name, ',') FROM claimd.kind WHERE limited"), "later");
    run("SELECT claimd.set_kind('later', '{\"max_running\": null}')::text");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.kind"), 2);
}
END_TEST

START_TEST(feat_D3_a_limit_that_can_not_be_is_refused)
{
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"max_running\": 0}')", "CL002",
                   "patch.max_running: must be 1 to 1000, or NULL for no limit");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"rate\": \"5/x\"}')", "CL002",
                   "patch.rate: must be 1 to 100000, then /s, /m, /h or /d");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"max_runing\": 1}')", "CL002",
                   "did you mean 'max_running'?");
    run("UPDATE claimd.cluster SET oldest_program = 2");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"max_running\": 1}')", "CL003",
                   "programs of an older release may still work");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limits of kinds");
    TCase *tc = tcase_create("limits of kinds");
    tcase_add_checked_fixture(tc, setup_kinds, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, feat_D3_so_many_jobs_of_a_kind_run_in_all_queues_and_others_go_on);
    tcase_add_test(tc, feat_D3_a_job_with_a_key_of_its_own_needs_a_place_of_both);
    tcase_add_test(tc, feat_D3_a_job_with_two_keys_of_its_own_is_beyond_the_limit_of_its_kind);
    tcase_add_test(tc, feat_D3_without_the_limit_a_job_loses_the_key_that_it_did_not_bring);
    tcase_add_test(tc, feat_D3_a_rate_alone_lets_any_number_run_and_each_limit_can_be_taken_back);
    tcase_add_test(tc, feat_D3_a_kind_that_nobody_has_announced_can_have_a_limit);
    tcase_add_test(tc, feat_D3_a_limit_that_can_not_be_is_refused);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
