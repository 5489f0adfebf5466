/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims: which worker gets which job, and why an id was refused. */
#include "job_store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(a_claim_runs_the_row_as_it_is_now)
{
    int64_t id = add_jobs(1);
    sql_run(side, "UPDATE claimd.job SET args = '{\"edited\": true}', priority = 7");
    claim_now(&store_a, id, 1);
    ck_assert_uint_eq(got.job_count, 1);
    const struct claimed_job *job = &got.jobs[0];
    ck_assert_int_eq(job->id, id);
    ck_assert_int_eq(job->attempt, 1);
    ck_assert_int_eq(job->settings.max_attempts, 25);
    ck_assert_int_eq(job->settings.max_crashes, 3);
    ck_assert_int_eq(job->settings.timeout_us, JOB_TIMEOUT_US_DEFAULT);
    ck_assert_int_eq(job->priority, 7);
    ck_assert_str_eq(job->queue, "default");
    ck_assert_str_eq(job->args, "{\"edited\": true}");
    ck_assert(job->fence > 0);
    ASSERT_TEXT("SELECT state || ' ' || worker_id || ' ' || attempt FROM claimd.job",
                "running " WORKER_A " 1");
}
END_TEST

START_TEST(limits_come_from_the_job_then_its_kind_then_the_defaults)
{
    sql_run(side, "INSERT INTO claimd.kind (name, max_attempts, max_crashes, timeout, "
                  "at_most_once) VALUES ('noop', 7, 2, '90 s', true)");
    int64_t id = add_jobs(2);
    sql_run(side, "UPDATE claimd.job SET max_attempts = 2, timeout = '1.5 s' WHERE id = (SELECT "
                  "max(id) FROM claimd.job)");
    claim_now(&store_a, id, 2);
    const struct claimed_job *plain = claimed(id);
    const struct claimed_job *own = claimed(id + 1);
    ck_assert(plain != NULL && own != NULL);
    ck_assert_int_eq(plain->settings.max_attempts, 7);
    ck_assert_int_eq(plain->settings.max_crashes, 2);
    ck_assert_int_eq(plain->settings.timeout_us, 90 * US_PER_S);
    ck_assert(plain->settings.at_most_once);
    ck_assert_int_eq(own->settings.max_attempts, 2);
    ck_assert_int_eq(own->settings.timeout_us, 1500 * US_PER_MS);
}
END_TEST

START_TEST(lock_G4_every_id_is_claimed_or_refused_with_its_reason)
{
    int64_t id = add_jobs(6);
    claim_now(&store_a, id, 1); /* running */
    sql_run(side, "SELECT claimd.cancel(%lld)", (long long)(id + 1));
    sql_run(side, "UPDATE claimd.job SET scheduled_at = now() + '1 h' WHERE id = %lld",
            (long long)(id + 2));
    sql_run(side, "UPDATE claimd.job SET kind = 'unserved' WHERE id = %lld", (long long)(id + 3));
    claim_now(&store_a, id, 7); /* one id too many: unknown */
    ck_assert_uint_eq(got.job_count, 3);
    ck_assert_uint_eq(got.refused_count, 5);
    ck_assert_int_eq(refused(id)->why, CLAIM_GONE);
    ck_assert_int_eq(refused(id + 1)->why, CLAIM_GONE);
    ck_assert_int_eq(refused(id + 2)->why, CLAIM_LATER);
    ck_assert_int_eq(refused(id + 3)->why, CLAIM_PUT_BACK);
    ck_assert_str_eq(refused(id + 3)->kind, "unserved");
    ck_assert_int_eq(refused(id + 3)->priority, 4);
    ck_assert(claimed(id + 4) != NULL && claimed(id + 5) != NULL);
    ck_assert_int_eq(refused(id + 6)->why, CLAIM_GONE);
}
END_TEST

START_TEST(two_workers_that_want_the_same_ids_get_each_once)
{
    struct store b;
    store_start(&b, WORKER_B);
    int64_t id = add_jobs(200);
    ask(&store_a, id, 200, 200);
    ask(&b, id, 200, 200);
    RUN_UNTIL(got.claims == 2);
    ck_assert_uint_eq(got.job_count, 200);
    ck_assert_uint_eq(got.refused_count, 200);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE state = 'running' AND attempt = 1",
                  200);
    store_stop(&b);
}
END_TEST

START_TEST(lock_G2_S1_fences_are_unique_and_rise_with_the_attempts)
{
    int64_t id = add_jobs(100);
    int64_t highest = 0;
    for (int attempt = 1; attempt <= 3; attempt++) {
        got.job_count = 0;
        claim_now(&store_a, id, 100);
        ck_assert_uint_eq(got.job_count, 100);
        ASSERT_NUMBER("SELECT count(DISTINCT fence)::text FROM claimd.job", 100);
        ck_assert(sql_number(side, "SELECT min(fence)::text FROM claimd.job") > highest);
        highest = sql_number(side, "SELECT max(fence)::text FROM claimd.job");
        sql_run(side, "UPDATE claimd.job SET state = 'available'");
    }
}
END_TEST

START_TEST(a_claim_ahead_leaves_out_last_attempts_and_at_most_once)
{
    sql_run(side, "INSERT INTO claimd.kind (name, at_most_once) VALUES ('other', true)");
    int64_t id = add_jobs(6);
    sql_run(side, "UPDATE claimd.job SET max_attempts = 1 WHERE id IN (%lld, %lld)", (long long)id,
            (long long)(id + 3));
    sql_run(side, "UPDATE claimd.job SET kind = 'other' WHERE id IN (%lld, %lld)",
            (long long)(id + 1), (long long)(id + 4));
    ask(&store_a, id, 6, 3);
    RUN_UNTIL(got.claims == 1);
    ck_assert_uint_eq(got.job_count, 4);
    ck_assert(claimed(id) != NULL && claimed(id + 1) != NULL && claimed(id + 2) != NULL);
    ck_assert(claimed(id + 5) != NULL);
    ck_assert_int_eq(refused(id + 3)->why, CLAIM_PUT_BACK);
    ck_assert_int_eq(refused(id + 4)->why, CLAIM_PUT_BACK);
}
END_TEST

START_TEST(a_claim_of_nothing_but_at_most_once_ahead_puts_all_back)
{
    sql_run(side,
            "INSERT INTO claimd.kind (name, at_most_once) VALUES ('other', true), ('noop', true)");
    int64_t id = add_jobs(2);
    ask(&store_a, id, 2, 0);
    RUN_UNTIL(got.claims == 1);
    ck_assert_int_eq(refused(id)->why, CLAIM_PUT_BACK);
    ck_assert_int_eq(refused(id + 1)->why, CLAIM_PUT_BACK);
}
END_TEST

START_TEST(lock_G5_a_job_without_an_attempt_left_is_discarded_not_claimed)
{
    int64_t id = add_jobs(1);
    sql_run(side, "UPDATE claimd.job SET attempt = 3, max_attempts = 3");
    claim_now(&store_a, id, 1);
    ck_assert_uint_eq(got.job_count, 0);
    ck_assert_int_eq(refused(id)->why, CLAIM_GONE);
    RUN_UNTIL(sql_number(side, "SELECT count(*)::text FROM claimd.job_history") == 1);
    ASSERT_TEXT("SELECT state || ': ' || error FROM claimd.job_history",
                "discarded: no attempts left");
}
END_TEST

START_TEST(large_args_stay_behind_and_are_fetched)
{
    int64_t id = add_jobs(2);
    sql_run(side, "UPDATE claimd.job SET args = jsonb_build_object('t', repeat('x', 300000)) WHERE "
                  "id = (SELECT max(id) FROM claimd.job)");
    claim_now(&store_a, id, 2);
    ck_assert(claimed(id)->args != NULL);
    ck_assert_ptr_null(claimed(id + 1)->args);
}
END_TEST

struct fetched {
    int calls;
    enum status st;
    size_t len;
    bool is_whole;
    bool has_metadata;
    char checkpoint[64];
    char predecessors[256];
    char too_long[16];
};

static void on_args(void *ctx, enum status st, const struct job_args *args)
{
    struct fetched *f = ctx;
    f->calls++;
    f->st = st;
    f->len = args->args_len;
    f->is_whole = args->args != NULL && strlen(args->args) == args->args_len;
    (void)snprintf(f->checkpoint, sizeof f->checkpoint, "%s",
                   args->checkpoint != NULL ? args->checkpoint : "");
    (void)snprintf(f->predecessors, sizeof f->predecessors, "%s",
                   args->predecessors != NULL ? args->predecessors : "");
    f->has_metadata = args->metadata != NULL;
    (void)snprintf(f->too_long, sizeof f->too_long, "%s",
                   args->too_long != NULL ? args->too_long : "");
}

START_TEST(a_checkpoint_and_large_metadata_are_fetched_and_the_rest_comes_along)
{
    int64_t id = add_jobs(3);
    sql_run(side, "UPDATE claimd.job SET tags = '{a,\"b c\"}', metadata = '{\"m\": 1}', generation "
                  "= 2 WHERE id = (SELECT min(id) FROM claimd.job)");
    sql_run(side, "INSERT INTO claimd.job_live (id, fence, checkpoint) SELECT id, 0, '{\"at\": 7}' "
                  "FROM claimd.job ORDER BY id OFFSET 1 LIMIT 1");
    sql_run(side, "UPDATE claimd.job SET flags = 128 WHERE id IN (SELECT id FROM claimd.job_live)");
    sql_run(side, "UPDATE claimd.job SET metadata = (SELECT jsonb_object_agg(md5(n::text), n) FROM "
                  "generate_series(1, 600) n) WHERE id = (SELECT max(id) FROM claimd.job)");
    claim_now(&store_a, id, 3);
    ck_assert_ptr_nonnull(claimed(id)->args);
    ck_assert_int_eq(claimed(id)->generation, 2);
    ck_assert_int_gt(claimed(id)->created_at_unix_us, 0);
    for (int i = 1; i < 3; i++) {
        struct fetched f = {0};
        ck_assert_ptr_null(claimed(id + i)->args);
        ck_assert_int_eq(
            job_store_args(store_a.jobs, id + i, claimed(id + i)->fence, on_args, &f, NULL),
            STATUS_OK);
        RUN_UNTIL(f.calls == 1);
        ck_assert(f.is_whole);
        ck_assert_str_eq(f.checkpoint, i == 1 ? "{\"at\": 7}" : "");
        ck_assert_int_eq(f.has_metadata, i == 2);
    }
}
END_TEST

START_TEST(feat_B29_what_those_before_a_job_found_is_fetched_with_its_args)
{
    int64_t id = add_jobs(2);
    sql_run(side, "SELECT claimd.after(%lld, '{%lld}')::text", (long long)id, (long long)id + 1);
    sql_run(side, "UPDATE claimd.job SET state = 'running', attempt = 1, fence = 7 WHERE id = "
                  "(SELECT max(id) FROM claimd.job)");
    sql_run(side, "SELECT claimd.complete_in_tx(id, fence, '{\"n\": 7}')::text FROM claimd.job "
                  "WHERE state = 'running'");
    sql_run(side, "SELECT claimd.release_jobs()::text");
    claim_now(&store_a, id, 1);
    struct fetched f = {0};
    ck_assert_ptr_null(claimed(id)->args);
    ck_assert_int_eq(job_store_args(store_a.jobs, id, claimed(id)->fence, on_args, &f, NULL),
                     STATUS_OK);
    RUN_UNTIL(f.calls == 1);
    ck_assert(f.is_whole);
    ck_assert_ptr_nonnull(strstr(f.predecessors, "{\"n\": 7}"));
}
END_TEST

START_TEST(fetched_args_are_fenced)
{
    int64_t id = add_jobs(1);
    sql_run(side, "UPDATE claimd.job SET args = jsonb_build_object('t', repeat('x', 300000))");
    claim_now(&store_a, id, 1);
    struct fetched good = {0};
    struct fetched stale = {0};
    int64_t fence = got.jobs[0].fence;
    ck_assert_int_eq(job_store_args(store_a.jobs, id, fence, on_args, &good, NULL), STATUS_OK);
    ck_assert_int_eq(job_store_args(store_a.jobs, id, fence + 1, on_args, &stale, NULL), STATUS_OK);
    RUN_UNTIL(good.calls == 1 && stale.calls == 1);
    ck_assert_int_eq(good.st, STATUS_OK);
    ck_assert_uint_eq(good.len, 300000 + strlen("{\"t\": \"\"}"));
    ck_assert(good.is_whole);
    ck_assert_int_eq(stale.st, STATUS_NOT_FOUND);
}
END_TEST

/* As an earlier release let them in: args of 147 kB, too much metadata, and args of 16 MB. */
START_TEST(jobs_whose_args_expand_are_fetched_one_by_one_and_keep_no_other_claim_waiting)
{
    sql_run(side, "ALTER TABLE claimd.job DISABLE TRIGGER job_checked");
    sql_run(side, "ALTER TABLE claimd.job DISABLE TRIGGER job_sizes_checked");
    int64_t other = add_jobs(1);
    int64_t id = add_jobs(100);
    sql_run(side,
            "UPDATE claimd.job SET args = a.args FROM (SELECT jsonb_agg(1e131071::numeric) AS args "
            "FROM generate_series(1, 120)) AS a WHERE id > (SELECT min(id) FROM claimd.job) + 3");
    sql_run(side, "UPDATE claimd.job SET args = to_jsonb(round(1e131071, 16383)) WHERE id = "
                  "(SELECT min(id) FROM claimd.job) + 2");
    sql_run(side, "UPDATE claimd.job SET metadata = '{\"n\": 1e131071}' WHERE id = (SELECT min(id) "
                  "FROM claimd.job) + 3");
    ASSERT_NUMBER("SELECT claimd.mark_too_long()::text", 99);
    ASSERT_NUMBER("SELECT claimd.mark_too_long()::text", 0);
    claim_now(&store_a, id, 100);
    ck_assert_uint_eq(got.job_count, 100);
    ck_assert_ptr_nonnull(claimed(id)->args);
    static struct fetched f[100];
    int calls = 0;
    for (int i = 1; i < 100; i++) {
        ck_assert_ptr_null(claimed(id + i)->args);
        ck_assert_int_eq(
            job_store_args(store_a.jobs, id + i, claimed(id + i)->fence, on_args, &f[i], NULL),
            STATUS_OK);
    }
    claim_now(&store_a, other, 1); /* claimed last, answered before most of them */
    ck_assert_ptr_nonnull(claimed(other));
    ck_assert_int_eq(f[50].calls, 0);
    RUN_UNTIL(f[99].calls == 1);
    for (int i = 1; i < 100; i++) {
        calls += f[i].calls;
        ck_assert_int_eq(f[i].st, i == 1 ? STATUS_OK : STATUS_LIMIT);
        ck_assert_str_eq(f[i].too_long, i == 1 ? "" : i == 2 ? "metadata" : "args");
    }
    ck_assert_int_eq(calls, 99);
    ck_assert_uint_eq(f[1].len, 131072 + 1 + 16383);
    ck_assert(f[1].is_whole);
}
END_TEST

START_TEST(fetches_of_args_that_wait_for_others_are_answered_when_the_session_ends)
{
    int64_t id = add_jobs(20);
    claim_now(&store_a, id, 20);
    static struct fetched f[20];
    sql_run(side, "BEGIN");
    sql_run(side, "LOCK TABLE claimd.job_live");
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(
            job_store_args(store_a.jobs, id + i, claimed(id + i)->fence, on_args, &f[i], NULL),
            STATUS_OK);
    }
    sql_run(side, "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE "
                  "application_name = 'store'");
    sql_run(side, "COMMIT");
    for (int i = 0; i < 20; i++) {
        RUN_UNTIL(f[i].calls == 1);
        ck_assert(f[i].st == STATUS_UNAVAILABLE || (f[i].st == STATUS_OK && i > 0));
    }
    RUN_UNTIL(store_a.ups == 2);
    struct fetched again = {0};
    ck_assert_int_eq(job_store_args(store_a.jobs, id, claimed(id)->fence, on_args, &again, NULL),
                     STATUS_OK);
    RUN_UNTIL(again.calls == 1);
    ck_assert_int_eq(again.st, STATUS_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_claim");
    TCase *tests = tcase_create("claim");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, jobs_setup, jobs_teardown);
    tcase_add_test(tests, a_claim_runs_the_row_as_it_is_now);
    tcase_add_test(tests, limits_come_from_the_job_then_its_kind_then_the_defaults);
    tcase_add_test(tests, lock_G4_every_id_is_claimed_or_refused_with_its_reason);
    tcase_add_test(tests, two_workers_that_want_the_same_ids_get_each_once);
    tcase_add_test(tests, lock_G2_S1_fences_are_unique_and_rise_with_the_attempts);
    tcase_add_test(tests, a_claim_ahead_leaves_out_last_attempts_and_at_most_once);
    tcase_add_test(tests, a_claim_of_nothing_but_at_most_once_ahead_puts_all_back);
    tcase_add_test(tests, lock_G5_a_job_without_an_attempt_left_is_discarded_not_claimed);
    tcase_add_test(tests, large_args_stay_behind_and_are_fetched);
    tcase_add_test(tests, fetched_args_are_fenced);
    tcase_add_test(tests, feat_B29_what_those_before_a_job_found_is_fetched_with_its_args);
    tcase_add_test(tests,
                   jobs_whose_args_expand_are_fetched_one_by_one_and_keep_no_other_claim_waiting);
    tcase_add_test(tests, fetches_of_args_that_wait_for_others_are_answered_when_the_session_ends);
    tcase_add_test(tests, a_checkpoint_and_large_metadata_are_fetched_and_the_rest_comes_along);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
