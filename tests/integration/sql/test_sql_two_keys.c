/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with two keys (feat.D3): both or none, which job waits for which key, and which hint is
 * pushed when. */
#include "sql_db.h"
#include "support/sql.h"

#include <stdio.h>

static void setup_kind(void)
{
    setup();
    run("INSERT INTO claimd.kind (name) VALUES ('a')");
    run("CREATE TEMPORARY TABLE held (id bigint, fence bigint, key_row tid, second_row tid, place "
        "tid)");
}

/* Adds one job with these keys; "" = none. */
static int64_t enqueue(const char *first, const char *second)
{
    return sql_number(db,
                      "SELECT claimd.enqueue('a', exclusive_key => NULLIF('%s', ''), second_key => "
                      "NULLIF('%s', ''))::text",
                      first, second);
}

#define CLAIM                                                                             \
    "claimd.claim_limited(ARRAY(SELECT id FROM claimd.job WHERE state = 'available' AND " \
    "flags & 2 <> 0), gen_random_uuid(), '{a}', '{}')"

/* Claims all jobs; returns those that won, ordered by id. */
static const char *claim(void)
{
    return text(
        "WITH won AS (INSERT INTO held SELECT id, fence, key_row, second_row, place FROM " CLAIM
        " RETURNING id) SELECT COALESCE(string_agg(id::text, ',' ORDER BY id), '') FROM "
        "won");
}

/* Ends the run of a job as its worker does; returns the jobs whose hints are pushed. */
static const char *finish(int64_t id)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "DELETE FROM claimd.job WHERE id = %lld", (long long)id);
    run(sql);
    return sql_text(
        db,
        "WITH run AS (DELETE FROM held WHERE id = %lld RETURNING *), r AS (SELECT id, fence, "
        "key_row, place FROM run UNION ALL SELECT id, fence, second_row, NULL FROM run WHERE "
        "second_row IS NOT NULL), a AS (SELECT array_agg(id) AS ids, array_agg(fence) AS fences, "
        "array_agg(key_row) AS rows, array_agg(place) AS places FROM r) SELECT "
        "COALESCE(string_agg(n.id::text, ',' ORDER BY n.id), '') FROM a CROSS JOIN LATERAL "
        "claimd.free_ended(a.ids, a.fences, a.rows, a.places) AS n",
        (long long)id);
}

#define HELD                                                                                \
    "SELECT COALESCE(string_agg(key || ' ' || job_id, ',' ORDER BY key, job_id), '') FROM " \
    "claimd.exclusive"
#define NEXT(function) \
    "SELECT COALESCE(string_agg(id::text, ',' ORDER BY id), '') FROM claimd." function
/* Rows that no claim and no end may leave behind. */
#define LEAKED                                                                                  \
    "SELECT count(*)::text FROM claimd.exclusive e WHERE NOT EXISTS (SELECT FROM claimd.job j " \
    "WHERE j.id = e.job_id AND j.fence = e.fence AND j.state = 'running' AND e.key IN "         \
    "(j.exclusive_key, j.second_key))"

START_TEST(feat_D3_a_job_with_two_keys_starts_once_both_have_a_place)
{
    (void)enqueue("m", "");  /* 1 */
    (void)enqueue("m", "c"); /* 2 */
    (void)enqueue("n", "c"); /* 3 */
    (void)enqueue("c", "");  /* 4 */
    ck_assert_str_eq(claim(), "1,3");
    ck_assert_str_eq(text(HELD), "c 3,m 1,n 3");
    ck_assert_str_eq(claim(), "");
    ck_assert_str_eq(text(HELD), "c 3,m 1,n 3"); /* a refused claim holds no key */
    ck_assert_str_eq(finish(1), "");
    ck_assert_str_eq(claim(), "");
    ck_assert_str_eq(finish(3), "2");
    ck_assert_str_eq(claim(), "2");
    ck_assert_str_eq(text(HELD), "c 2,m 2");
    ck_assert_str_eq(finish(2), "4");
    ck_assert_str_eq(claim(), "4");
    ck_assert_str_eq(finish(4), "");
    ck_assert_str_eq(text(HELD), "");
}
END_TEST

START_TEST(feat_D3_either_key_that_becomes_free_wakes_who_needs_both)
{
    for (int turn = 0; turn < 2; turn++) {
        int64_t m = enqueue("m", "");
        int64_t c = enqueue("c", "");
        (void)claim();
        int64_t both = turn == 0 ? enqueue("m", "c") : enqueue("c", "m");
        char wanted[32];
        (void)snprintf(wanted, sizeof wanted, "%lld", (long long)both);
        ck_assert_str_eq(claim(), "");
        ck_assert_str_eq(finish(turn == 0 ? m : c), "");
        ck_assert_str_eq(finish(turn == 0 ? c : m), wanted);
        ck_assert_str_eq(claim(), wanted);
        ck_assert_str_eq(text("SELECT count(*)::text FROM claimd.key_waiting"), "0");
        ck_assert_str_eq(finish(both), "");
    }
}
END_TEST

START_TEST(feat_D3_who_can_not_start_yet_holds_up_nobody_behind_it)
{
    run("SELECT claimd.limit_key('c', 3)::text");
    (void)enqueue("m", ""); /* 1 */
    (void)claim();
    (void)enqueue("m", "c"); /* 2: m is held */
    (void)enqueue("n", "c"); /* 3 */
    (void)enqueue("c", "");  /* 4 */
    (void)enqueue("o", "c"); /* 5 */
    ck_assert_str_eq(claim(), "3,4,5");
    ck_assert_str_eq(finish(3), "");
    ck_assert_str_eq(finish(1), "2");
    ck_assert_str_eq(claim(), "2");
}
END_TEST

START_TEST(feat_D3_the_places_and_the_rate_of_each_key_are_kept)
{
    run("SELECT claimd.limit_key('customer:*', 100)::text");
    run("SELECT claimd.limit_key_rate('customer:*', 1, '1 hour')::text");
    (void)enqueue("m1", "customer:1"); /* 1 */
    (void)enqueue("m2", "customer:1"); /* 2: its customer has had its start */
    (void)enqueue("m1", "customer:2"); /* 3: its machine is held */
    (void)enqueue("customer:2", "m3"); /* 4: the order of the keys does not matter */
    ck_assert_str_eq(claim(), "1,4");
    ck_assert_str_eq(text("SELECT string_agg(key || ' ' || round(tokens), ',' ORDER BY key) FROM "
                          "claimd.key_limit"),
                     "customer:1 0,customer:2 0");
    ck_assert_str_eq(finish(1), ""); /* 3 has its machine, but no token */
    run("UPDATE claimd.key_limit SET tokens = 1");
    ck_assert_str_eq(text(NEXT("next_of_rates(10)")), "2,3");
    ck_assert_str_eq(claim(), "2,3");
    ck_assert_str_eq(text("SELECT string_agg(key || ' ' || round(tokens), ',' ORDER BY key) FROM "
                          "claimd.key_limit"),
                     "customer:1 0,customer:2 0");
}
END_TEST

START_TEST(feat_D3_what_two_ends_at_once_have_not_seen_is_found_within_a_second)
{
    (void)enqueue("m", "");
    (void)enqueue("c", "");
    (void)claim();
    (void)enqueue("m", "c"); /* 3 */
    (void)claim();
    ck_assert_str_eq(text(NEXT("next_of_rates(10)")), "");
    run("DELETE FROM claimd.job WHERE state = 'running'");
    run("DELETE FROM claimd.exclusive"); /* neither end saw the other: no hint is pushed */
    ck_assert_str_eq(text(NEXT("next_of_rates(10)")), "3");
    ck_assert_str_eq(text(NEXT("next_free('{3}')")), "3");
}
END_TEST

/* Its hint met the locks of the refused claim, and it no longer waits in any line. */
START_TEST(feat_D3_who_was_refused_is_told_of_itself_and_of_others_that_may_start)
{
    (void)enqueue("m", "");
    (void)claim();
    (void)enqueue("m", "c"); /* 2 */
    (void)enqueue("n", "c"); /* 3 */
    run("INSERT INTO claimd.key_waiting (key, other_key, priority, ready_at, job_id) SELECT 'c', "
        "'n', priority, ready_at, id FROM claimd.job WHERE id = 3");
    ck_assert_str_eq(text(NEXT("next_free('{2}')")), "3");
    ck_assert_str_eq(finish(1), "");
    ck_assert_str_eq(text(NEXT("next_free('{2}')")), "2,3");
}
END_TEST

/* Otherwise it would be pushed for its old key and refused for its new one, again and again. */
START_TEST(feat_D3_a_job_whose_key_was_edited_does_not_wait_in_its_former_line_any_more)
{
    (void)enqueue("m", "");
    (void)enqueue("d", "");
    (void)claim();
    (void)enqueue("m", "c"); /* 3 */
    (void)enqueue("m", "");  /* 4 */
    (void)claim();
    run("SELECT claimd.edit(3, '{\"second_key\": \"d\"}')::text");
    (void)claim();
    ck_assert_str_eq(finish(1), "4");
    ck_assert_str_eq(text(NEXT("next_free('{3}')")), "4");
    ck_assert_str_eq(claim(), "4");
    ck_assert_str_eq(finish(4), "");
    ck_assert_str_eq(text(NEXT("next_free('{3}')")), "");
    ck_assert_str_eq(text(NEXT("next_of_rates(9)")), "");
    ck_assert_str_eq(finish(2), "3");
}
END_TEST

START_TEST(feat_D3_a_run_frees_both_keys_although_their_rows_were_moved)
{
    (void)enqueue("m", "c");
    (void)claim();
    run("UPDATE held SET key_row = '(0,0)', second_row = NULL");
    (void)enqueue("m", "c");
    (void)claim();
    ck_assert_str_eq(finish(1), "2");
    ck_assert_str_eq(text(HELD), "");
}
END_TEST

START_TEST(feat_D3_a_full_pass_frees_what_no_run_holds)
{
    (void)enqueue("m", "c");
    (void)claim();
    run("UPDATE claimd.job SET state = 'available'");
    ck_assert_str_eq(text(LEAKED), "2");
    run("SELECT count(*)::text FROM claimd.free_leaked()");
    ck_assert_str_eq(text(HELD), "");
    ck_assert_str_eq(claim(), "1");
}
END_TEST

/* Each pair of keys is used in both orders, so that claims that took keys job by job would wait for
 * each other. */
START_TEST(feat_D3_claims_that_want_the_same_keys_at_once_neither_deadlock_nor_leak)
{
    struct sql *other = sql_open(world.conninfo);
    run("SELECT claimd.limit_key('k3', 2)::text, claimd.limit_key('k5', 3)::text");
    for (int i = 0; i < 40; i++) {
        char first[8];
        char second[8];
        (void)snprintf(first, sizeof first, "k%d", i % 8);
        (void)snprintf(second, sizeof second, "k%d", (i * 5 + 3) % 8);
        (void)enqueue(first, second);
    }
    for (int round = 0; round < 20; round++) {
        run("BEGIN");
        run("SELECT count(*)::text FROM claimd.claim_limited(ARRAY(SELECT id FROM claimd.job WHERE "
            "id % 2 = 0), gen_random_uuid(), '{a}', '{}')");
        sql_send(other, "SELECT count(*) FROM claimd.claim_limited(ARRAY(SELECT id FROM claimd.job "
                        "WHERE id %% 2 = 1 ORDER BY id DESC), gen_random_uuid(), '{a}', '{}')");
        run("COMMIT");
        sql_wait(other);
        ck_assert_str_eq(text(LEAKED), "0");
        ck_assert_int_eq(
            sql_number(db, "SELECT count(*)::text FROM (SELECT key, count(*) AS n FROM "
                           "claimd.exclusive GROUP BY key) AS k LEFT JOIN claimd.key_limit l USING "
                           "(key) WHERE n > COALESCE(max_running, 1)"),
            0);
        ck_assert_int_eq(
            sql_number(db, "SELECT count(*)::text FROM claimd.job j CROSS JOIN LATERAL (VALUES "
                           "(j.exclusive_key), (j.second_key)) AS k(key) WHERE j.state = 'running' "
                           "AND k.key IS NOT NULL AND NOT EXISTS (SELECT FROM claimd.exclusive e "
                           "WHERE (e.key, e.job_id, e.fence) = (k.key, j.id, j.fence))"),
            0);
        run("UPDATE claimd.job SET state = 'available' WHERE state = 'running'");
        run("SELECT count(*)::text FROM claimd.free_leaked()");
    }
    sql_close(other);
}
END_TEST

#define KEPT                                                                        \
    "SELECT COALESCE(string_agg(key || ' ' || job_id, ',' ORDER BY key), '') FROM " \
    "claimd.key_reserved"

/* Each time that one key is free, another job holds the other one: it would never start. */
START_TEST(feat_D3_who_has_waited_for_long_is_not_overtaken_for_ever)
{
    (void)enqueue("m", "");
    (void)enqueue("c", "");
    (void)claim();
    (void)enqueue("m", "c"); /* 3 */
    (void)enqueue("m", "");
    (void)enqueue("c", "");
    (void)claim();
    ck_assert_str_eq(text(KEPT), ""); /* not at once */
    ck_assert_str_eq(finish(1), "4");
    ck_assert_str_eq(claim(), "4");
    run("UPDATE claimd.job SET scheduled_at = now() - interval '11 s', created_at = now() - "
        "interval '11 s' WHERE id = 3");
    ck_assert_str_eq(claim(), "");
    ck_assert_str_eq(text(KEPT), "c 3,m 3");
    (void)enqueue("m", "");
    ck_assert_str_eq(finish(4), ""); /* m is kept for 3 */
    ck_assert_str_eq(claim(), "");
    ck_assert_str_eq(text(NEXT("next_free('{6}')")), "");
    ck_assert_str_eq(finish(2), "3");
    ck_assert_str_eq(claim(), "3");
    ck_assert_str_eq(text(KEPT), "");
    ck_assert_str_eq(finish(3), "5,6");
    ck_assert_str_eq(claim(), "5,6");
}
END_TEST

START_TEST(feat_D3_of_those_who_have_waited_for_long_no_two_wait_for_each_other)
{
    run("SELECT claimd.limit_key('c', 2)::text");
    (void)enqueue("m", "");
    (void)enqueue("c", "");
    (void)enqueue("c", "");
    (void)claim();
    (void)enqueue("m", "c"); /* 4 */
    (void)enqueue("c", "m"); /* 5 */
    run("UPDATE claimd.job SET scheduled_at = now() - interval '11 s', created_at = now() - "
        "interval '11 s' WHERE id > 3");
    run("SELECT count(*)::text FROM claimd.claim_limited('{5}', gen_random_uuid(), '{a}', '{}')");
    ck_assert_str_eq(text(KEPT), "c 5,m 5");
    run("SELECT count(*)::text FROM claimd.claim_limited('{4}', gen_random_uuid(), '{a}', '{}')");
    ck_assert_str_eq(text(KEPT), "c 4,m 4");
    ck_assert_str_eq(finish(2), "");
    ck_assert_str_eq(finish(1), "4");
    ck_assert_str_eq(claim(), "4");
    ck_assert_str_eq(finish(3), "");
    ck_assert_str_eq(finish(4), "5");
    ck_assert_str_eq(claim(), "5");
}
END_TEST

START_TEST(feat_D3_what_is_kept_for_a_job_that_nobody_tries_any_more_is_free_after_a_minute)
{
    (void)enqueue("m", "");
    (void)claim();
    (void)enqueue("m", "c"); /* 2 */
    run("UPDATE claimd.job SET scheduled_at = now() - interval '11 s', created_at = now() - "
        "interval '11 s' WHERE id = 2");
    ck_assert_str_eq(claim(), "");
    ck_assert_str_eq(text(KEPT), "m 2");
    run("UPDATE claimd.job SET scheduled_at = now() + interval '1 h' WHERE id = 2");
    (void)enqueue("m", "");
    ck_assert_str_eq(finish(1), "");
    ck_assert_str_eq(claim(), "");
    run("UPDATE claimd.key_reserved SET until = until - interval '1 min'");
    ck_assert_str_eq(claim(), "3");
    run("SELECT count(*)::text FROM claimd.free_leaked()");
    ck_assert_str_eq(text(KEPT), "");
}
END_TEST

START_TEST(feat_D3_a_second_key_without_a_first_one_or_the_same_twice_is_one_key)
{
    (void)enqueue("", "c");
    (void)enqueue("c", "c");
    run("SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"second_key\": \"c\"}]')::text");
    run("INSERT INTO claimd.job (kind, second_key) VALUES ('a', 'c')");
    run("INSERT INTO claimd.job (kind, exclusive_key, second_key) VALUES ('a', 'c', 'c')");
    ck_assert_str_eq(text("SELECT string_agg(concat_ws(' ', exclusive_key, second_key, flags), "
                          "',') FROM claimd.job"),
                     "c 2,c 2,c 2,c 2,c 2");
    run("INSERT INTO claimd.job (kind, exclusive_key, second_key) VALUES ('a', 'm', 'c')");
    ck_assert_str_eq(text("SELECT concat_ws(' ', exclusive_key, second_key, flags) FROM claimd.job "
                          "WHERE id = 6"),
                     "m c 2");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', exclusive_key => 'c', second_key => '')",
                   "CL002", "second_key: must have 1 to 512 bytes");
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"exclusive_key\": \"c\", "
                   "\"second_key\": \"\"}]')",
                   "CL002", "jobs[0].second_key: must have 1 to 512 bytes");
}
END_TEST

START_TEST(feat_D3_an_edit_changes_either_key_or_takes_it_away)
{
    int64_t id = enqueue("m", "c");
    static const struct {
        const char *patch;
        const char *keys;
    } edits[] = {
        {"{\"second_key\": \"d\"}", "m d 2"},
        {"{\"exclusive_key\": null}", "d 2"},
        {"{\"second_key\": \"e\"}", "d e 2"},
        {"{\"exclusive_key\": \"e\"}", "e 2"},
        {"{\"second_key\": \"f\"}", "e f 2"},
        {"{\"second_key\": null}", "e 2"},
        {"{\"exclusive_key\": null}", "0"},
        {"{\"second_key\": \"g\"}", "g 2"},
        {"{\"exclusive_key\": \"a\", \"second_key\": \"b\"}", "a b 2"},
        {"{\"exclusive_key\": null, \"second_key\": null}", "0"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(edits); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.edit(%lld, '%s')::text", (long long)id,
                       edits[i].patch);
        run(sql);
        ck_assert_str_eq(text("SELECT concat_ws(' ', exclusive_key, second_key, flags) FROM "
                              "claimd.job"),
                         edits[i].keys);
    }
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"second_key\": \"\"}')", "CL002",
                   "patch.second_key: must have 1 to 512 bytes");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("two keys");
    TCase *tc = tcase_create("two keys");
    tcase_add_checked_fixture(tc, setup_kind, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, feat_D3_a_job_with_two_keys_starts_once_both_have_a_place);
    tcase_add_test(tc, feat_D3_either_key_that_becomes_free_wakes_who_needs_both);
    tcase_add_test(tc, feat_D3_who_can_not_start_yet_holds_up_nobody_behind_it);
    tcase_add_test(tc, feat_D3_the_places_and_the_rate_of_each_key_are_kept);
    tcase_add_test(tc, feat_D3_what_two_ends_at_once_have_not_seen_is_found_within_a_second);
    tcase_add_test(tc, feat_D3_who_was_refused_is_told_of_itself_and_of_others_that_may_start);
    tcase_add_test(tc,
                   feat_D3_a_job_whose_key_was_edited_does_not_wait_in_its_former_line_any_more);
    tcase_add_test(tc, feat_D3_a_run_frees_both_keys_although_their_rows_were_moved);
    tcase_add_test(tc, feat_D3_a_full_pass_frees_what_no_run_holds);
    tcase_add_test(tc, feat_D3_claims_that_want_the_same_keys_at_once_neither_deadlock_nor_leak);
    tcase_add_test(tc, feat_D3_who_has_waited_for_long_is_not_overtaken_for_ever);
    tcase_add_test(tc, feat_D3_of_those_who_have_waited_for_long_no_two_wait_for_each_other);
    tcase_add_test(
        tc, feat_D3_what_is_kept_for_a_job_that_nobody_tries_any_more_is_free_after_a_minute);
    tcase_add_test(tc, feat_D3_a_second_key_without_a_first_one_or_the_same_twice_is_one_key);
    tcase_add_test(tc, feat_D3_an_edit_changes_either_key_or_takes_it_away);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
