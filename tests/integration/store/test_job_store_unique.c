/* SPDX-License-Identifier: Apache-2.0
 *
 * A job that is unique while it is queued (unique_states 'queued'), many producers and a worker: a
 * run that starts later sees the producers' earlier commits, and the job does start. */
#include "job_store_fixture.h"
#include "support/sql.h"

#include <stdio.h>

#define PRODUCERS 50
#define ROUNDS 100
/* The producer's own write, the call, and 10 ms until the commit. */
#define PRODUCE                                                                            \
    "DO $$ BEGIN FOR n IN 1..%d LOOP UPDATE written SET n = written.n + 1 WHERE who = %d;" \
    " PERFORM claimd.enqueue('noop', unique_key => 'k', unique_states => 'queued',"        \
    " on_conflict => 'ignore'); PERFORM pg_sleep(0.01); COMMIT; END LOOP; END $$"
#define WRITTEN "SELECT sum(n)::text FROM written"

static void start_producers(struct sql **ret_producers)
{
    sql_run(side, "CREATE TABLE written AS SELECT who, 0 AS n FROM generate_series(0, 49) who");
    for (int i = 0; i < PRODUCERS; i++) {
        ret_producers[i] = sql_open(world.conninfo);
        sql_send(ret_producers[i], PRODUCE, ROUNDS, i);
    }
}

/* Claims the queued job of the key as a worker does, which claims again after a refusal. Returns
 * the number of rounds that the producers made in the meantime. */
static int64_t start_queued(int64_t id)
{
    int64_t before = sql_number(side, WRITTEN);
    int64_t end_us = clock_boot_us() + LIMIT_US;
    got.job_count = got.refused_count = 0;
    while (got.job_count == 0 && clock_boot_us() < end_us) {
        claim_now(&store_a, id, 1);
    }
    ck_assert_uint_eq(got.job_count, 1);
    return sql_number(side, WRITTEN) - before;
}

START_TEST(a_job_that_is_unique_while_queued_starts_among_many_producers_and_sees_all_they_wrote)
{
    static struct sql *producers[PRODUCERS];
    int64_t seen = -1;
    int runs = 0;
    start_producers(producers);
    int64_t end_us = clock_boot_us() + LIMIT_US;
    while (seen != PRODUCERS * ROUNDS && clock_boot_us() < end_us) {
        int64_t id = sql_number(
            side, "SELECT COALESCE(max(id), 0)::text FROM claimd.job WHERE state = 'available'");
        if (id == 0) { /* a write that no run will see any more, once all have ended */
            ck_assert_msg(
                seen < 0 || sql_number(side, WRITTEN) != PRODUCERS * ROUNDS ||
                    sql_number(side,
                               "SELECT count(*)::text FROM claimd.job WHERE state = 'available'") ==
                        1,
                "the last of %d runs saw %d of %d writes", runs, (int)seen, PRODUCERS * ROUNDS);
            continue;
        }
        int64_t rounds = start_queued(id);
        ck_assert_msg(rounds <= 20 * PRODUCERS, "it started after %d rounds of the producers",
                      (int)rounds);
        seen = sql_number(side, WRITTEN);
        runs++;
        struct job_finish f = finish_of(0, FINISH_COMPLETED);
        int before = got.finishes;
        submit(&store_a, &f);
        RUN_UNTIL(got.finishes == before + 1);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        sql_wait(producers[i]); /* fails the test with the error of a producer that stopped */
        sql_close(producers[i]);
    }
    ck_assert_int_eq(seen, PRODUCERS * ROUNDS);
    ck_assert_int_gt(runs, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_unique");
    TCase *tests = tcase_create("unique");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, jobs_setup, jobs_teardown);
    tcase_add_test(
        tests,
        a_job_that_is_unique_while_queued_starts_among_many_producers_and_sees_all_they_wrote);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
