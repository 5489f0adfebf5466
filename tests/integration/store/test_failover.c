/* SPDX-License-Identifier: Apache-2.0
 *
 * PostgreSQL fails over to a streaming standby. Rows that the primary had not sent are lost, and
 * their fences with them; no lost fence may lead to a second claim under it. Each test has its own
 * two servers. */
#include "job_store_fixture.h"
#include "store/migrate.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 20 /* jobs whose claims the standby has received */
#define LOST 30 /* jobs whose claims it has not */
#define JUMP (INT64_C(1) << 32)
#define RECONNECT_US (60 * US_PER_S)

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

static struct pg_server standby;

/* Starts the primary and its standby; `side` and store_a know both hosts. */
static void setup(void)
{
    char dir[SERVER_PATH_MAX + 16];
    OK(dir_make(world.dir, sizeof world.dir, &err));
    (void)snprintf(dir, sizeof dir, "%s/p", world.dir);
    OK(pg_server_start(dir, false, &world.server, &err));
    OK(migrate_up(world.server.conninfo, LIMIT_US, NULL, NULL, &err));
    (void)snprintf(dir, sizeof dir, "%s/s", world.dir);
    OK(pg_standby_start(dir, &world.server, &standby, &err));
    OK(pg_standby_conninfo(&world.server, &standby, "postgres", world.conninfo,
                           sizeof world.conninfo, &err));
    ck_assert_int_eq(uv_loop_init(&world.loop), 0);
    memset(&got, 0, sizeof got);
    side = sql_open(world.conninfo);
    store_start(&store_a, WORKER_A);
}

static void teardown(void)
{
    store_stop(&store_a);
    sql_close(side);
    world_teardown();
    pg_server_stop(&standby);
    pg_server_stop(&world.server);
    dir_remove(world.dir);
}

/* Promotes the standby, and waits until the worker's session is back. */
static void fail_over(void)
{
    int ups = store_a.ups;
    pg_server_kill(&world.server);
    RUN_UNTIL(store_a.downs > 0);
    OK(pg_standby_promote(&standby, &err));
    int64_t promoted_us = clock_boot_us();
    RUN_UNTIL(store_a.ups > ups);
    ck_assert_int_le(clock_boot_us() - promoted_us, RECONNECT_US);
    sql_close(side);
    side = sql_open(world.conninfo);
}

static void complete(struct store *s, size_t from, size_t to)
{
    int before = got.finishes;
    for (size_t i = from; i < to; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        submit(s, &f);
    }
    RUN_UNTIL(got.finishes == before + (int)(to - from));
}

/* Makes KEPT claims that the standby has, then LOST claims that it lacks; half of the lost ones are
 * completed. */
static int64_t given_lost_claims(void)
{
    int64_t first = add_jobs(KEPT + LOST);
    claim_now(&store_a, first, KEPT);
    OK(pg_standby_catch_up(&standby, &world.server, &err));
    OK(pg_standby_cut(&standby, &err));
    claim_now(&store_a, first + KEPT, LOST);
    ck_assert_uint_eq(got.job_count, KEPT + LOST);
    complete(&store_a, KEPT, KEPT + LOST / 2);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], LOST / 2);
    return first;
}

/* Some managed servers refuse this function. */
static void refuse_timeline(void)
{
    sql_run(side, "REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC");
}

static void nothing(void)
{
}

static void (*const before_claims[])(void) = {nothing, refuse_timeline};

START_TEST(D5_no_fence_that_a_lost_primary_gave_out_is_accepted_after_the_failover)
{
    struct store b;
    before_claims[_i]();
    int64_t first = given_lost_claims();
    int64_t highest = got.jobs[KEPT + LOST - 1].fence;
    fail_over();
    store_start(&b, WORKER_B);
    claim_now(&b, first + KEPT, LOST); /* lost jobs run again, also the completed ones */
    ck_assert_uint_eq(got.job_count, KEPT + LOST + LOST);
    for (size_t i = KEPT + LOST; i < got.job_count; i++) {
        ck_assert_int_gt(got.jobs[i].fence, highest + JUMP - 100); /* some may not have arrived */
    }
    memset(got.verdicts, 0, sizeof got.verdicts);
    complete(&store_a, KEPT, KEPT + LOST);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], LOST);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 0);
    complete(&b, KEPT + LOST, KEPT + LOST + LOST);
    complete(&store_a, 0, KEPT); /* the newest claims of these jobs */
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], LOST + KEPT);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", KEPT + LOST);
    store_stop(&b);
}
END_TEST

START_TEST(D5_no_job_that_comes_after_the_first_claim_gets_the_id_of_a_lost_one)
{
    int64_t first = add_jobs(10);
    OK(pg_standby_catch_up(&standby, &world.server, &err));
    OK(pg_standby_cut(&standby, &err));
    int64_t highest = add_jobs(100) + 99; /* a sequence is logged 32 values ahead */
    fail_over();
    claim_now(&store_a, first, 10);
    ck_assert_int_gt(add_jobs(1), highest);
}
END_TEST

START_TEST(D5_however_many_sessions_find_the_new_timeline_the_fence_jumps_once)
{
    struct store more[4];
    int64_t first = add_jobs(100);
    claim_now(&store_a, first, 10);
    OK(pg_standby_catch_up(&standby, &world.server, &err));
    fail_over();
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        store_start(&more[i], WORKER_B);
    }
    int before = got.claims;
    ask(&store_a, first + 10, 10, 10);
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        ask(&more[i], first + 20 + 10 * (int64_t)i, 10, 10);
    }
    RUN_UNTIL(got.claims == before + 1 + (int)ARRAY_COUNT(more));
    ck_assert_uint_eq(got.job_count, 60);
    int64_t fence = sql_number(side, "SELECT last_value::text FROM claimd.fence");
    ck_assert_int_gt(fence, JUMP);
    ck_assert_int_lt(fence, JUMP + JUMP);
    ASSERT_TEXT("SELECT timeline FROM claimd.cluster", "00000002");
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        store_stop(&more[i]);
    }
}
END_TEST

START_TEST(D5_with_a_synchronous_standby_nothing_is_lost_and_nothing_runs_again)
{
    int64_t first = add_jobs(KEPT + LOST);
    OK(pg_standby_set_sync(&world.server, true, &err));
    claim_now(&store_a, first, KEPT + LOST);
    complete(&store_a, 0, KEPT);
    fail_over();
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'completed'", KEPT);
    claim_now(&store_a, first, KEPT + LOST);
    ck_assert_uint_eq(got.refused_count, KEPT + LOST);
    complete(&store_a, KEPT, KEPT + LOST);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], KEPT + LOST);
}
END_TEST

/* The outcome of a finish in flight when the primary died is read back from the new primary. A
 * locked row keeps the finish in flight. */
START_TEST(D5_a_finish_under_way_in_a_failover_is_settled_by_what_the_new_primary_says)
{
    int64_t first = add_jobs(KEPT);
    claim_now(&store_a, first, KEPT);
    OK(pg_standby_catch_up(&standby, &world.server, &err));
    OK(pg_standby_cut(&standby, &err));
    struct sql *locker = sql_open(world.conninfo);
    sql_run(locker, "BEGIN");
    sql_run(locker, "SELECT 1::text FROM claimd.job FOR UPDATE");
    for (size_t i = 0; i < KEPT; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        submit(&store_a, &f);
    }
    RUN_UNTIL(sql_number(side, "SELECT count(*)::text FROM pg_stat_activity WHERE application_name "
                               "= 'store' AND wait_event_type = 'Lock'") == 1);
    fail_over();
    sql_close(locker);
    RUN_UNTIL(got.finishes == KEPT);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], KEPT);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'completed'", KEPT);
}
END_TEST

START_TEST(D5_a_daemon_that_finds_only_a_standby_waits_for_its_promotion)
{
    struct store only;
    char both[sizeof world.conninfo];
    memcpy(both, world.conninfo, sizeof both);
    (void)snprintf(world.conninfo, sizeof world.conninfo, "%s", standby.conninfo);
    store_open(&only, WORKER_B);
    RUN_UNTIL(only.downs > 1);
    ck_assert_int_eq(only.ups, 0);
    fail_over();
    RUN_UNTIL(only.ups == 1);
    memcpy(world.conninfo, both, sizeof both);
    store_stop(&only);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failover");
    TCase *tests = tcase_create("failover");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests,
                        D5_no_fence_that_a_lost_primary_gave_out_is_accepted_after_the_failover, 0,
                        (int)ARRAY_COUNT(before_claims));
    tcase_add_test(tests, D5_no_job_that_comes_after_the_first_claim_gets_the_id_of_a_lost_one);
    tcase_add_test(tests, D5_however_many_sessions_find_the_new_timeline_the_fence_jumps_once);
    tcase_add_test(tests, D5_with_a_synchronous_standby_nothing_is_lost_and_nothing_runs_again);
    tcase_add_test(tests,
                   D5_a_finish_under_way_in_a_failover_is_settled_by_what_the_new_primary_says);
    tcase_add_test(tests, D5_a_daemon_that_finds_only_a_standby_waits_for_its_promotion);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
