/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits for all keys with the same prefix (feat.B29). */
#include "sql_db.h"
#include "support/sql.h"

#include <stdio.h>

static void enqueue(const char *key, int count)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(claimd.enqueue('a', exclusive_key => '%s'))::text FROM "
                   "generate_series(1, %d)",
                   key, count);
    run(sql);
}

static void setup_kind(void)
{
    setup();
    run("INSERT INTO claimd.kind (name) VALUES ('a')");
}

/* Claims all jobs; returns the number of each key. */
static const char *claim(void)
{
    run("CREATE TEMPORARY TABLE IF NOT EXISTS got (id bigint)");
    run("INSERT INTO got SELECT id FROM claimd.claim_limited(ARRAY(SELECT id FROM claimd.job WHERE "
        "state = 'available'), gen_random_uuid(), '{a}', '{}')");
    return sql_text(
        db, "SELECT string_agg(key || ' ' || jobs, ',' ORDER BY key) FROM (SELECT exclusive_key AS "
            "key, count(*) AS jobs FROM claimd.job WHERE state = 'running' GROUP BY 1) AS j");
}

static const char *limits(const char *key)
{
    return sql_text(db,
                    "SELECT concat_ws(' ', max_running, rate, is_grouped) FROM claimd.key_limit "
                    "WHERE key = '%s'",
                    key);
}

#define GROUPED "SELECT count(*)::text FROM claimd.key_limit WHERE is_grouped"

START_TEST(feat_B29_each_key_of_a_pattern_has_its_own_places)
{
    run("SELECT claimd.limit_key('customer:*', 2)::text");
    enqueue("customer:1", 3);
    enqueue("customer:2", 3);
    enqueue("machine", 3);
    ck_assert_str_eq(claim(), "customer:1 2,customer:2 2,machine 1");
    ck_assert_str_eq(claim(), "customer:1 2,customer:2 2,machine 1");
    ck_assert_int_eq(sql_number(db, GROUPED), 2);
}
END_TEST

START_TEST(feat_B29_each_key_of_a_pattern_has_its_own_rate)
{
    run("SELECT claimd.limit_key('customer:*', 10)::text");
    run("SELECT claimd.limit_key_rate('customer:*', 1, '1 hour')::text");
    enqueue("customer:1", 3);
    enqueue("customer:2", 3);
    ck_assert_str_eq(claim(), "customer:1 1,customer:2 1");
    ck_assert_str_eq(claim(), "customer:1 1,customer:2 1");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.next_of_rates(10)"), 0);
    run("UPDATE claimd.key_limit SET tokens = 1 WHERE key = 'customer:2'");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(j.exclusive_key, ',') FROM "
                                  "claimd.next_of_rates(10) n JOIN claimd.job j USING (id)"),
                     "customer:2");
    ck_assert_str_eq(claim(), "customer:1 1,customer:2 2");
}
END_TEST

START_TEST(feat_B29_the_longest_pattern_counts_and_what_is_said_of_a_key_itself_above_all)
{
    run("SELECT claimd.limit_key('c:*', 3)::text");
    run("SELECT claimd.limit_key('c:vip:*', 2)::text");
    run("SELECT claimd.limit_key('c:7', 4)::text");
    run("SELECT claimd.limit_key('c:8', 1)::text");
    enqueue("c:1", 5);
    enqueue("c:7", 5);
    enqueue("c:8", 5);
    enqueue("c:vip:1", 5);
    ck_assert_str_eq(claim(), "c:1 3,c:7 4,c:8 1,c:vip:1 2");
    ck_assert_str_eq(limits("c:7"), "4 f");
    run("SELECT claimd.limit_key('c:7', NULL)::text"); /* removes its own limit */
    ck_assert_str_eq(limits("c:7"), "");
    ck_assert_str_eq(claim(), "c:1 3,c:7 4,c:8 1,c:vip:1 2"); /* the running ones count */
    ck_assert_str_eq(limits("c:7"), "3 t");
}
END_TEST

START_TEST(feat_B29_a_pattern_may_be_changed_and_taken_back)
{
    run("SELECT claimd.limit_key('c:*', 2)::text");
    run("SELECT claimd.limit_key('c:vip:*', 1)::text");
    enqueue("c:1", 9);
    enqueue("c:vip:1", 9);
    (void)claim();
    run("SELECT claimd.limit_key('c:*', 4)::text");
    ck_assert_str_eq(limits("c:1"), "4 t");
    ck_assert_str_eq(claim(), "c:1 4,c:vip:1 1");
    run("SELECT claimd.limit_key('c:vip:*', NULL)::text");
    ck_assert_str_eq(claim(), "c:1 4,c:vip:1 4");
    run("SELECT claimd.limit_key('c:1', 9)::text"); /* its own row, instead of the pattern's */
    ck_assert_str_eq(limits("c:1"), "9 f");
    run("SELECT claimd.limit_key('c:*', NULL)::text");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.key_group"), 0);
    ck_assert_str_eq(limits("c:vip:1"), "1 t");
    ck_assert_str_eq(limits("c:1"), "9 f");
}
END_TEST

START_TEST(feat_B29_rows_of_keys_that_nobody_uses_go_once_their_bucket_is_full)
{
    run("SELECT claimd.limit_key('c:*', 2)::text");
    run("SELECT claimd.limit_key_rate('c:*', 1, '1 hour')::text");
    enqueue("c:1", 1);
    (void)claim();
    run("SELECT count(*)::text FROM claimd.free_leaked()");
    ck_assert_int_eq(sql_number(db, GROUPED), 1); /* it runs */
    run("SELECT claimd.complete_in_tx(id, fence)::text FROM claimd.job");
    run("DELETE FROM claimd.exclusive");
    run("SELECT count(*)::text FROM claimd.free_leaked()");
    ck_assert_int_eq(sql_number(db, GROUPED), 1); /* a start is missing in its bucket */
    run("UPDATE claimd.key_limit SET filled_at = filled_at - interval '2 hours'");
    run("SELECT count(*)::text FROM claimd.free_leaked()");
    ck_assert_int_eq(sql_number(db, GROUPED), 0);
}
END_TEST

START_TEST(feat_B29_a_row_that_a_claim_has_made_of_an_older_pattern_follows_with_the_full_pass)
{
    run("SELECT claimd.limit_key('c:*', 2)::text");
    enqueue("c:1", 3);
    (void)claim();
    run("UPDATE claimd.key_limit SET max_running = 7, rate = 5");
    run("SELECT count(*)::text FROM claimd.free_leaked()");
    ck_assert_str_eq(limits("c:1"), "2 t");
}
END_TEST

START_TEST(feat_B29_of_two_claims_with_the_same_new_keys_both_come_to_an_end)
{
    struct sql *other = sql_open(world.conninfo);
    run("SELECT claimd.limit_key('c:*', 1)::text");
    run("SELECT claimd.limit_key_rate('c:*', 100)::text");
    for (int i = 0; i < 20; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "c:%d", (i * 7) % 20);
        enqueue(key, 2);
    }
    run("BEGIN");
    (void)claim();
    sql_send(other, "SELECT count(*) FROM claimd.claim_limited(ARRAY(SELECT id FROM claimd.job "
                    "ORDER BY id DESC), gen_random_uuid(), '{a}', '{}')");
    RUN_UNTIL(
        sql_number(
            db, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 1);
    run("COMMIT");
    sql_wait(other);
    ck_assert_int_eq(
        sql_number(db, "SELECT max(n)::text FROM (SELECT count(*) AS n FROM claimd.job WHERE state "
                       "= 'running' GROUP BY exclusive_key) AS k"),
        1);
    sql_close(other);
}
END_TEST

START_TEST(feat_B29_what_is_no_pattern_is_a_key)
{
    run("SELECT claimd.limit_key('customer*', 2)::text");
    run("SELECT claimd.limit_key('*', 2)::text");
    run("SELECT claimd.limit_key('a/b/*', 2)::text");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.key_limit"), 2);
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(prefix, ',') FROM claimd.key_group"), "a/b/");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key('c:*', 0)", "CL002", "max_running: must be 1 to");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key_rate('c:*', 5, '0 s')", "CL002", "per: must be");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key(repeat('c', 511) || ':*', 2)", "CL002",
                   "key: must have 1 to 512 bytes");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("groups");
    TCase *tc = tcase_create("groups");
    tcase_add_checked_fixture(tc, setup_kind, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, feat_B29_each_key_of_a_pattern_has_its_own_places);
    tcase_add_test(tc, feat_B29_each_key_of_a_pattern_has_its_own_rate);
    tcase_add_test(tc,
                   feat_B29_the_longest_pattern_counts_and_what_is_said_of_a_key_itself_above_all);
    tcase_add_test(tc, feat_B29_a_pattern_may_be_changed_and_taken_back);
    tcase_add_test(tc, feat_B29_rows_of_keys_that_nobody_uses_go_once_their_bucket_is_full);
    tcase_add_test(
        tc, feat_B29_a_row_that_a_claim_has_made_of_an_older_pattern_follows_with_the_full_pass);
    tcase_add_test(tc, feat_B29_of_two_claims_with_the_same_new_keys_both_come_to_an_end);
    tcase_add_test(tc, feat_B29_what_is_no_pattern_is_a_key);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
