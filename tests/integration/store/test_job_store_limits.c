/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with a limit: which of them are claimed, and which become claimable when a run ends. */
#include "job_store_fixture.h"

#include <stdio.h>

/* Adds `count` jobs with this exclusive key; returns their first id. */
static int64_t add_keyed(int count, const char *key)
{
    int64_t last = sql_number(side, "SELECT COALESCE(max(id), 0)::text FROM claimd.job");
    sql_run(side,
            "SELECT claimd.enqueue_many((SELECT jsonb_agg(jsonb_build_object('kind', 'noop', "
            "'exclusive_key', '%s')) FROM generate_series(1, %d)))",
            key, count);
    return sql_number(side, "SELECT min(id)::text FROM claimd.job WHERE id > %lld",
                      (long long)last);
}

static void finish_now(size_t n, enum finish_kind kind)
{
    int before = got.finishes;
    struct job_finish f = finish_of(n, kind);
    f.delay_us = 3600 * US_PER_S;
    submit(&store_a, &f);
    RUN_UNTIL(got.finishes == before + 1);
}

START_TEST(inv_S18_of_one_key_one_job_is_claimed_and_the_others_are_refused_for_it)
{
    int64_t plain = add_jobs(2);
    int64_t a = add_keyed(3, "a");
    int64_t b = add_keyed(2, "b");
    claim_now(&store_a, plain, 7);
    ck_assert_uint_eq(got.job_count, 4);
    ck_assert(claimed(plain) != NULL && claimed(plain + 1) != NULL);
    ck_assert(claimed(a) != NULL && claimed(b) != NULL);
    ck_assert_int_eq(claimed(plain)->flags, 0);
    ck_assert_int_eq(claimed(a)->flags, 2);
    ck_assert_int_eq(refused(a + 1)->why, CLAIM_LIMITED);
    ck_assert_int_eq(refused(a + 2)->why, CLAIM_LIMITED);
    ck_assert_int_eq(refused(b + 1)->why, CLAIM_LIMITED);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive e JOIN claimd.job j"
                  " ON j.id = e.job_id AND j.fence = e.fence AND j.exclusive_key = e.key"
                  " WHERE j.state = 'running'",
                  2);
    claim_now(&store_a, a + 1, 1);
    ck_assert_uint_eq(got.job_count, 4);
}
END_TEST

START_TEST(the_first_of_a_key_is_claimed_first_whatever_its_place_among_the_ids)
{
    int64_t a = add_keyed(3, "a");
    sql_run(side, "UPDATE claimd.job SET priority = 0 WHERE id = (SELECT max(id) FROM claimd.job)");
    claim_now(&store_a, a, 3);
    ck_assert_uint_eq(got.job_count, 1);
    ck_assert(claimed(a + 2) != NULL);
    finish_now(0, FINISH_COMPLETED);
    ck_assert_uint_eq(got.freed_count, 1);
    ck_assert_int_eq(got.freed[0], a);
}
END_TEST

/* No token is added during a test: the bucket is filled from tomorrow on. */
static void given_tokens(const char *key, int tokens)
{
    sql_run(side,
            "WITH k AS (SELECT claimd.limit_key('%s', 10), claimd.limit_key_rate('%s', 100000)) "
            "SELECT count(*)::text FROM k",
            key, key);
    sql_run(side, "UPDATE claimd.key_limit SET tokens = %d, filled_at = now() + interval '1 d'",
            tokens);
}

START_TEST(of_a_key_with_a_rate_so_many_start_as_it_has_tokens)
{
    int64_t a = add_keyed(6, "a");
    given_tokens("a", 4);
    claim_now(&store_a, a, 6);
    ck_assert_uint_eq(got.job_count, 4);
    ck_assert_int_eq(refused(a + 5)->why, CLAIM_LIMITED);
    ASSERT_NUMBER("SELECT tokens::int::text FROM claimd.key_limit", 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.next_of_rates(100)", 0);
    finish_now(0, FINISH_COMPLETED);
    ck_assert_uint_eq(got.freed_count, 0); /* there is a place, but no token */
    given_tokens("a", 1);
    ASSERT_NUMBER("SELECT id::text FROM claimd.next_of_rates(100)", a + 4);
    ASSERT_NUMBER("SELECT id::text FROM claimd.next_free(ARRAY(SELECT max(id) FROM claimd.job))",
                  a + 4); /* three runs hold places, not tokens */
    claim_now(&store_a, a + 4, 2);
    ck_assert_uint_eq(got.job_count, 5);
}
END_TEST

START_TEST(L9_after_the_next_job_of_a_key_was_cancelled_the_one_after_it_is_found)
{
    int64_t a = add_keyed(3, "a");
    claim_now(&store_a, a, 3);
    finish_now(0, FINISH_COMPLETED);
    ck_assert_int_eq(got.freed[0], a + 1);
    sql_run(side, "SELECT claimd.cancel(%lld)::text", (long long)a + 1);
    ASSERT_NUMBER("SELECT id::text FROM claimd.next_of_rates(100)", a + 2);
}
END_TEST

START_TEST(who_is_refused_for_the_place_of_a_key_takes_no_token)
{
    int64_t a = add_keyed(3, "a");
    given_tokens("a", 4);
    sql_run(side, "SELECT claimd.limit_key('a', 1)::text");
    claim_now(&store_a, a, 1);
    claim_now(&store_a, a + 1, 2);
    ck_assert_uint_eq(got.job_count, 1);
    ASSERT_NUMBER("SELECT tokens::int::text FROM claimd.key_limit", 3);
}
END_TEST

START_TEST(A4_a_kept_edit_is_applied_by_the_next_claim_of_a_job_without_limits)
{
    int64_t id = add_jobs(1);
    claim_now(&store_a, id, 1);
    sql_run(side, "SELECT claimd.edit(%lld, '{\"args\": {\"v\": 2}}', apply => 'next')::text",
            (long long)id);
    finish_now(0, FINISH_HAND_BACK);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE args = '{\"v\": 2}'", 0);
    claim_now(&store_a, id, 1);
    ck_assert_uint_eq(got.job_count, 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE args = '{\"v\": 2}' AND flags = 0"
                  " AND state = 'running'",
                  1);
}
END_TEST

/* No end of a run frees a key for it, so this is the only push of its hint. */
START_TEST(A4_a_job_with_a_kept_edit_whose_row_is_locked_is_put_back_not_dropped)
{
    struct sql *other = sql_open(world.conninfo);
    int64_t id = add_jobs(1);
    sql_run(side, "UPDATE claimd.job SET flags = 64");
    sql_run(other, "BEGIN");
    sql_run(other, "SELECT id::text FROM claimd.job FOR UPDATE");
    claim_now(&store_a, id, 1);
    ck_assert_uint_eq(got.job_count, 0);
    ck_assert_int_eq(refused(id)->why, CLAIM_PUT_BACK);
    sql_run(other, "ROLLBACK");
    claim_now(&store_a, id, 1);
    ck_assert_uint_eq(got.job_count, 1);
    sql_close(other);
}
END_TEST

START_TEST(every_end_of_a_run_frees_its_key_and_names_the_next_job)
{
    int64_t a = add_keyed(2, "a");
    claim_now(&store_a, a, 2);
    finish_now(0, (enum finish_kind)_i);
    ck_assert_uint_eq(got.freed_count, 1);
    ck_assert_int_eq(got.freed[0], a + 1);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 0);
    claim_now(&store_a, a + 1, 1);
    ck_assert_uint_eq(got.job_count, 2);
}
END_TEST

START_TEST(a_stale_finish_frees_nothing_that_a_later_run_holds)
{
    int64_t a = add_keyed(2, "a");
    claim_now(&store_a, a, 1);
    sql_run(side, "UPDATE claimd.job SET state = 'available' WHERE state = 'running'");
    sql_run(side, "SELECT claimd.free_leaked()");
    claim_now(&store_a, a, 2);
    ck_assert_uint_eq(got.job_count, 2);
    finish_now(0, FINISH_COMPLETED);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 1);
    ck_assert_uint_eq(got.freed_count, 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 1);
    finish_now(1, FINISH_COMPLETED);
    ck_assert_uint_eq(got.freed_count, 1);
    ck_assert_int_eq(got.freed[0], a + 1);
}
END_TEST

START_TEST(only_jobs_that_were_refused_are_named_and_each_once)
{
    int64_t a = add_keyed(6, "a");
    sql_run(side, "SELECT claimd.limit_key('a', 2)::text");
    claim_now(&store_a, a, 5); /* the last one has its hint */
    ck_assert_uint_eq(got.job_count, 2);
    sql_run(side, "SELECT claimd.cancel(%lld)", (long long)a + 2);
    finish_now(0, FINISH_COMPLETED);
    ck_assert_uint_eq(got.freed_count, 1);
    ck_assert_int_eq(got.freed[0], a + 3);
    finish_now(1, FINISH_COMPLETED);
    ck_assert_uint_eq(got.freed_count, 2);
    ck_assert_int_eq(got.freed[1], a + 4);
    claim_now(&store_a, a + 3, 2);
    finish_now(2, FINISH_COMPLETED);
    ck_assert_uint_eq(got.freed_count, 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.key_waiting", 0);
}
END_TEST

START_TEST(a_full_pass_forgets_who_was_refused_and_has_ended_meanwhile)
{
    int64_t a = add_keyed(3, "a");
    claim_now(&store_a, a, 3);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.key_waiting", 2);
    sql_run(side, "SELECT claimd.cancel(%lld)", (long long)a + 1);
    sql_run(side, "SELECT count(*)::text FROM claimd.free_leaked()");
    ASSERT_NUMBER("SELECT job_id::text FROM claimd.key_waiting", a + 2);
}
END_TEST

START_TEST(a_run_frees_its_key_and_its_place_although_their_rows_were_moved)
{
    sql_run(side, "SELECT claimd.limit_queue('default', 3)::text");
    int64_t a = add_keyed(1, "a");
    int64_t b = add_keyed(2, "b");
    claim_now(&store_a, a, 3);
    ck_assert_uint_eq(got.job_count, 2);
    ck_assert(claimed(b)->key_row > 0 && claimed(b)->place > 0);
    finish_now(got.jobs[0].id == a ? 0 : 1, FINISH_COMPLETED);
    sql_run(side, "VACUUM FULL claimd.exclusive");
    sql_run(side, "VACUUM FULL claimd.slot");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive WHERE ctid = '(0,1)'", 1);
    finish_now(got.jobs[0].id == a ? 1 : 0, FINISH_COMPLETED);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.slot WHERE fence <> 0", 0);
    ck_assert_uint_eq(got.freed_count, 1);
    ck_assert_int_eq(got.freed[0], b + 1);
}
END_TEST

START_TEST(feat_D3_the_end_of_a_run_frees_both_its_keys_and_names_who_may_start_then)
{
    static const char two[] =
        "SELECT claimd.enqueue('noop', exclusive_key => 'a', second_key => 'b')::text";
    sql_run(side, "SELECT claimd.limit_queue('default', 9)::text");
    int64_t first = sql_number(side, "%s", two);
    (void)sql_number(side, "%s", two);
    claim_now(&store_a, first, 2);
    ck_assert_uint_eq(got.job_count, 1);
    ck_assert_int_eq(refused(first + 1)->why, CLAIM_LIMITED);
    ck_assert(claimed(first)->key_row > 0 && claimed(first)->second_row > 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 2);
    finish_now(0, (enum finish_kind)_i);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.slot WHERE fence <> 0", 0);
    ck_assert_uint_eq(got.freed_count, 1);
    ck_assert_int_eq(got.freed[0], first + 1);
}
END_TEST

/* Otherwise it would be pushed as one that may start, and refused, again and again. */
START_TEST(feat_D3_a_job_for_which_places_are_kept_is_refused_for_its_full_queue)
{
    sql_run(side, "SELECT claimd.limit_queue('default', 1)::text");
    int64_t plain = add_jobs(1);
    claim_now(&store_a, plain, 1);
    int64_t two = sql_number(
        side, "SELECT claimd.enqueue('noop', exclusive_key => 'a', second_key => 'b')::text");
    sql_run(side, "INSERT INTO claimd.key_reserved (key, job_id, until) SELECT 'a', max(id), now() "
                  "+ interval '1 min' FROM claimd.job");
    claim_now(&store_a, two, 1);
    ck_assert_int_eq(refused(two)->why, CLAIM_QUEUE_FULL);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 0);
}
END_TEST

START_TEST(while_all_jobs_have_a_limit_a_claim_is_one_commit)
{
    int64_t a = add_keyed(1, "a");
    int64_t b = add_keyed(1, "b");
    int64_t plain = add_jobs(1);
    claim_now(&store_a, a, 1); /* the store learns that jobs have limits */
    uint64_t before = job_store_counters(store_a.jobs)->commits;
    claim_now(&store_a, b, 1);
    ck_assert_uint_eq(job_store_counters(store_a.jobs)->commits - before, 1);
    claim_now(&store_a, plain, 1); /* still claimed; the store learns the contrary */
    ck_assert_uint_eq(got.job_count, 3);
    int64_t c = add_keyed(1, "c");
    before = job_store_counters(store_a.jobs)->commits;
    claim_now(&store_a, c, 1);
    ck_assert_uint_eq(job_store_counters(store_a.jobs)->commits - before, 2);
}
END_TEST

START_TEST(of_two_workers_that_want_a_key_at_once_one_gets_it)
{
    struct store b;
    store_start(&b, WORKER_B);
    for (int round = 0; round < 50; round++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", round);
        int64_t id = add_keyed(40, key);
        int before = got.claims;
        got.job_count = 0;
        got.refused_count = 0;
        ask(&store_a, id, 20, 20);
        ask(&b, id + 20, 20, 20);
        RUN_UNTIL(got.claims == before + 2);
        ck_assert_uint_eq(got.job_count, 1);
        ck_assert_uint_eq(got.refused_count, 39);
    }
    store_stop(&b);
}
END_TEST

START_TEST(a_claim_waits_for_the_end_of_the_run_that_is_being_committed)
{
    int64_t a = add_keyed(2, "a");
    claim_now(&store_a, a, 1);
    sql_run(side, "BEGIN");
    sql_run(side, "DELETE FROM claimd.job WHERE state = 'running'");
    sql_run(side, "DELETE FROM claimd.exclusive");
    ask(&store_a, a + 1, 1, 1);
    struct sql *other = sql_open(world.conninfo);
    RUN_UNTIL(sql_number(other, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type "
                                "= 'Lock' AND query LIKE '%%claim_limited%%'") > 0);
    sql_run(side, "COMMIT");
    RUN_UNTIL(got.claims == 2);
    ck_assert_uint_eq(got.job_count, 2);
    sql_close(other);
}
END_TEST

START_TEST(a_limited_job_that_somebody_has_locked_holds_nobody_up)
{
    int64_t a = add_keyed(2, "a");
    sql_run(side, "BEGIN");
    sql_run(side, "SELECT id FROM claimd.job WHERE id = %lld FOR UPDATE", (long long)a);
    claim_now(&store_a, a, 2);
    ck_assert_uint_eq(got.job_count, 1);
    ck_assert(claimed(a + 1) != NULL);
    sql_run(side, "COMMIT");
}
END_TEST

/* Its key is free, so every query for the next job returns this one, again and again. */
START_TEST(a_locked_job_whose_key_is_free_is_put_back_as_one_without_a_limit)
{
    struct sql *other = sql_open(world.conninfo);
    int64_t a = add_keyed(1, "a");
    sql_run(other, "BEGIN");
    sql_run(other, "SELECT id::text FROM claimd.job FOR UPDATE");
    claim_now(&store_a, a, 1);
    ck_assert_uint_eq(got.job_count, 0);
    ck_assert_int_eq(refused(a)->why, CLAIM_PUT_BACK);
    sql_run(other, "ROLLBACK");
    claim_now(&store_a, a, 1);
    ck_assert_uint_eq(got.job_count, 1);
    sql_close(other);
}
END_TEST

static void on_next(void *ctx, enum status st)
{
    ck_assert_int_eq(st, STATUS_OK);
    ++*(int *)ctx;
}

static void on_each(void *ctx, const struct freed_job *job)
{
    (void)ctx;
    got.freed[got.freed_count++] = job->id;
}

static void next_now(int64_t id)
{
    static int answers;
    int before = answers;
    got.freed_count = 0;
    ck_assert_int_eq(
        job_store_ask(store_a.jobs, QUESTION_NEXT, &id, 1, on_each, on_next, &answers, NULL),
        STATUS_OK);
    RUN_UNTIL(answers == before + 1);
}

START_TEST(who_was_refused_learns_what_comes_next_once_the_key_is_free)
{
    int64_t a = add_keyed(3, "a");
    claim_now(&store_a, a, 2);
    next_now(a + 1);
    ck_assert_uint_eq(got.freed_count, 0);
    finish_now(0, FINISH_COMPLETED);
    next_now(a + 2);
    ck_assert_uint_eq(got.freed_count, 1);
    ck_assert_int_eq(got.freed[0], a + 1);
    sql_run(side, "INSERT INTO claimd.queue (name, paused) VALUES ('default', true)");
    next_now(a + 2);
    ck_assert_uint_eq(got.freed_count, 0);
}
END_TEST

START_TEST(a_claim_ahead_leaves_out_limited_jobs_at_their_last_attempt)
{
    int64_t a = add_keyed(1, "a");
    int64_t b = add_keyed(1, "b");
    sql_run(side, "UPDATE claimd.job SET max_attempts = 1 WHERE exclusive_key = 'b'");
    int before = got.claims;
    ask(&store_a, a, 2, 0);
    RUN_UNTIL(got.claims == before + 1);
    ck_assert_uint_eq(got.job_count, 1);
    ck_assert_int_eq(refused(b)->why, CLAIM_LIMITED);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 1);
}
END_TEST

START_TEST(a_limited_claim_whose_answer_is_lost_is_read_back)
{
    int64_t a = add_keyed(2, "a");
    claim_now(&store_a, a, 1); /* the kinds are known now */
    finish_now(0, FINISH_COMPLETED);
    sql_run(side, "BEGIN");
    sql_run(side, "LOCK claimd.exclusive IN SHARE MODE");
    ask(&store_a, a + 1, 1, 1);
    struct sql *other = sql_open(world.conninfo);
    RUN_UNTIL(sql_number(other, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type "
                                "= 'Lock' AND query LIKE '%%claim_limited%%'") > 0);
    sql_run(
        other,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'store'");
    sql_run(side, "COMMIT");
    RUN_UNTIL(got.claims == 2);
    ck_assert_uint_eq(got.job_count + got.refused_count, 2);
    ASSERT_NUMBER(
        "SELECT count(*)::text FROM claimd.exclusive e FULL JOIN (SELECT * FROM claimd.job"
        " WHERE state = 'running') j ON j.id = e.job_id AND j.fence = e.fence"
        " WHERE e.key IS NULL OR j.id IS NULL",
        0);
    sql_close(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job store limits");
    TCase *tc = tcase_create("exclusive");
    tcase_add_checked_fixture(tc, jobs_setup, jobs_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, inv_S18_of_one_key_one_job_is_claimed_and_the_others_are_refused_for_it);
    tcase_add_test(tc, the_first_of_a_key_is_claimed_first_whatever_its_place_among_the_ids);
    tcase_add_test(tc, A4_a_kept_edit_is_applied_by_the_next_claim_of_a_job_without_limits);
    tcase_add_test(tc, A4_a_job_with_a_kept_edit_whose_row_is_locked_is_put_back_not_dropped);
    tcase_add_test(tc, of_a_key_with_a_rate_so_many_start_as_it_has_tokens);
    tcase_add_test(tc, L9_after_the_next_job_of_a_key_was_cancelled_the_one_after_it_is_found);
    tcase_add_test(tc, who_is_refused_for_the_place_of_a_key_takes_no_token);
    tcase_add_loop_test(tc, every_end_of_a_run_frees_its_key_and_names_the_next_job,
                        FINISH_COMPLETED, FINISH_HAND_BACK + 1);
    tcase_add_test(tc, a_stale_finish_frees_nothing_that_a_later_run_holds);
    tcase_add_test(tc, only_jobs_that_were_refused_are_named_and_each_once);
    tcase_add_test(tc, a_full_pass_forgets_who_was_refused_and_has_ended_meanwhile);
    tcase_add_test(tc, a_run_frees_its_key_and_its_place_although_their_rows_were_moved);
    tcase_add_loop_test(tc,
                        feat_D3_the_end_of_a_run_frees_both_its_keys_and_names_who_may_start_then,
                        FINISH_COMPLETED, FINISH_HAND_BACK + 1);
    tcase_add_test(tc, feat_D3_a_job_for_which_places_are_kept_is_refused_for_its_full_queue);
    tcase_add_test(tc, while_all_jobs_have_a_limit_a_claim_is_one_commit);
    tcase_add_test(tc, of_two_workers_that_want_a_key_at_once_one_gets_it);
    tcase_add_test(tc, a_claim_waits_for_the_end_of_the_run_that_is_being_committed);
    tcase_add_test(tc, a_limited_job_that_somebody_has_locked_holds_nobody_up);
    tcase_add_test(tc, a_locked_job_whose_key_is_free_is_put_back_as_one_without_a_limit);
    tcase_add_test(tc, who_was_refused_learns_what_comes_next_once_the_key_is_free);
    tcase_add_test(tc, a_claim_ahead_leaves_out_limited_jobs_at_their_last_attempt);
    tcase_add_test(tc, a_limited_claim_whose_answer_is_lost_is_read_back);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
