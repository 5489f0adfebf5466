/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/fault_plan.h"
#include "support/suite.h"

#include <check.h>

#define WORKERS 12
#define SCHEDULERS 3
#define FAULTS 500

static bool is_same(const struct fault *a, const struct fault *b)
{
    return a->kind == b->kind && a->target == b->target && a->at_us == b->at_us &&
           a->away_us == b->away_us && a->is_new == b->is_new && a->nth == b->nth;
}

START_TEST(a_seed_gives_the_same_faults_again_and_another_one_others)
{
    struct fault_plan a;
    struct fault_plan b;
    struct fault_plan c;
    int others = 0;
    fault_plan_init(&a, 7, WORKERS, SCHEDULERS);
    fault_plan_init(&b, 7, WORKERS, SCHEDULERS);
    fault_plan_init(&c, 8, WORKERS, SCHEDULERS);
    for (int i = 0; i < FAULTS; i++) {
        struct fault of_a = fault_plan_next(&a);
        struct fault of_b = fault_plan_next(&b);
        struct fault of_c = fault_plan_next(&c);
        ck_assert(is_same(&of_a, &of_b));
        others += is_same(&of_a, &of_c) ? 0 : 1;
    }
    ck_assert_int_gt(others, FAULTS / 2);
}
END_TEST

START_TEST(every_five_seconds_one_fault_and_one_of_a_runner_and_one_wipe_and_one_restart_in_all)
{
    struct fault_plan p;
    int counts[FAULT_RUNNER + 1] = {0};
    fault_plan_init(&p, 1, WORKERS, SCHEDULERS);
    for (int i = 1; i <= 2 * FAULTS; i++) {
        struct fault f = fault_plan_next(&p);
        ck_assert_int_eq(f.at_us, i * FAULT_EVERY_US / 2);
        ck_assert_int_eq(f.kind == FAULT_RUNNER, i % 2);
        counts[f.kind]++;
    }
    ck_assert_int_eq(counts[FAULT_REDIS], 1);
    ck_assert_int_eq(counts[FAULT_PG], 1);
    ck_assert_int_gt(counts[FAULT_KILL], FAULTS / 3);
    ck_assert_int_gt(counts[FAULT_STOP], FAULTS / 3);
}
END_TEST

START_TEST(a_worker_is_not_struck_while_it_is_away)
{
    struct fault_plan p;
    int64_t back_us[WORKERS + SCHEDULERS] = {0};
    fault_plan_init(&p, 3, WORKERS, SCHEDULERS);
    for (int i = 0; i < FAULTS; i++) {
        struct fault f = fault_plan_next(&p);
        if (f.kind == FAULT_KILL || f.kind == FAULT_STOP) {
            ck_assert_uint_lt(f.target, WORKERS + SCHEDULERS);
            ck_assert(f.target < SCHEDULERS || back_us[f.target] <= f.at_us);
            back_us[f.target] = f.at_us + f.away_us;
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("fault_plan");
    TCase *c = tcase_create("plan");
    tcase_add_test(c, a_seed_gives_the_same_faults_again_and_another_one_others);
    tcase_add_test(
        c, every_five_seconds_one_fault_and_one_of_a_runner_and_one_wipe_and_one_restart_in_all);
    tcase_add_test(c, a_worker_is_not_struck_while_it_is_away);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
