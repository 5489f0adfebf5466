/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/rand.h"
#include "redlock/rules/clockwatch.h"
#include "support/suite.h"

#include <check.h>

#define PPM 10000
#define TTL_US (10 * US_PER_S)
#define TOLERANCE_US (102 * US_PER_MS) /* D of T = 10 s */
#define EPOCH_US (INT64_C(1700000000) * US_PER_S)
#define STEP_US (60 * US_PER_S)

/* Two clocks: ours, and the server's, which is ahead and runs slightly faster or slower. */
struct clocks {
    struct clockwatch watch;
    int64_t now_us; /* by our clock */
    int64_t ahead_us;
    int rate_ppm;
};

static struct clocks given_clocks(void)
{
    return (struct clocks){.now_us = 5 * US_PER_S, .ahead_us = EPOCH_US};
}

static int64_t server_us(const struct clocks *c)
{
    return c->now_us + c->ahead_us + c->now_us / 1000000 * c->rate_ppm;
}

/* `there_us`: until the server reads its clock; `back_us`: until we have read its answer. */
static int64_t sample(struct clocks *c, int64_t there_us, int64_t back_us)
{
    struct clock_sample s = {.sent_us = c->now_us};
    c->now_us += there_us;
    s.server_us = server_us(c);
    c->now_us += back_us;
    s.received_us = c->now_us;
    return clockwatch_take(&c->watch, &s, TOLERANCE_US, PPM);
}

static int64_t next_round(struct clocks *c)
{
    c->now_us += TTL_US / 3;
    return sample(c, 200, 300);
}

START_TEST(N4_a_clock_that_stepped_is_found_by_the_second_sample)
{
    static const int64_t steps_us[] = {STEP_US, -STEP_US, US_PER_S, -US_PER_S};
    int64_t step_us = steps_us[_i];
    struct clocks c = given_clocks();
    ck_assert_int_eq(next_round(&c), 0);
    ck_assert_int_eq(next_round(&c), 0);
    c.ahead_us += step_us;
    ck_assert_int_eq(next_round(&c), 0); /* once is not enough */
    int64_t found_us = next_round(&c);
    ck_assert_int_lt(llabs(found_us - step_us), 100 * US_PER_MS);
    ck_assert_int_eq(next_round(&c), 0); /* reported once */
    ck_assert_int_eq(next_round(&c), 0);
}
END_TEST

START_TEST(N4_a_clock_that_is_back_where_it_was_did_not_step)
{
    struct clocks c = given_clocks();
    ck_assert_int_eq(next_round(&c), 0);
    for (int i = 0; i < 10; i++) {
        c.ahead_us += STEP_US;
        ck_assert_int_eq(next_round(&c), 0);
        c.ahead_us -= STEP_US;
        ck_assert_int_eq(next_round(&c), 0);
        c.ahead_us -= STEP_US; /* the other way: never twice in a row */
        ck_assert_int_eq(next_round(&c), 0);
        c.ahead_us += 2 * STEP_US;
        ck_assert_int_eq(next_round(&c), 0);
        c.ahead_us -= STEP_US;
        ck_assert_int_eq(next_round(&c), 0);
    }
}
END_TEST

START_TEST(N4_a_stalled_client_does_not_look_like_a_stepped_clock)
{
    struct rand rand;
    rand_seed(&rand, (uint64_t)_i);
    struct clocks c = given_clocks();
    c.rate_ppm = (int)rand_below(&rand, 2 * PPM) - PPM;
    for (int i = 0; i < 1000; i++) { /* stalls of up to two minutes, before and after the reading */
        bool is_stalled = rand_below(&rand, 3) == 0;
        int64_t most_us = is_stalled ? 120 * US_PER_S : US_PER_MS;
        c.now_us += rand_below(&rand, TTL_US);
        ck_assert_int_eq(sample(&c, rand_below(&rand, most_us), rand_below(&rand, most_us)), 0);
    }
}
END_TEST

START_TEST(N4_a_step_is_found_among_stalls)
{
    struct rand rand;
    rand_seed(&rand, (uint64_t)_i);
    struct clocks c = given_clocks();
    ck_assert_int_eq(next_round(&c), 0);
    for (int i = 0; i < 10; i++) { /* wide samples do not blur what is known */
        ck_assert_int_eq(sample(&c, rand_below(&rand, STEP_US), rand_below(&rand, STEP_US)), 0);
    }
    ck_assert_int_eq(next_round(&c), 0);
    c.ahead_us += STEP_US;
    int64_t found_us = 0;
    for (int i = 0; i < 3 && found_us == 0; i++) {
        found_us = next_round(&c);
    }
    ck_assert_int_gt(found_us, STEP_US / 2);
}
END_TEST

START_TEST(N4_clocks_may_part_slowly_while_nobody_looks)
{
    struct clocks c = given_clocks();
    c.rate_ppm = 500; /* the fastest that NTP slews */
    ck_assert_int_eq(next_round(&c), 0);
    c.now_us += 3600 * US_PER_S;
    ck_assert_int_eq(next_round(&c), 0);
    ck_assert_int_eq(next_round(&c), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redlock_clockwatch");
    TCase *t = tcase_create("clockwatch");
    tcase_add_loop_test(t, N4_a_clock_that_stepped_is_found_by_the_second_sample, 0, 4);
    tcase_add_test(t, N4_a_clock_that_is_back_where_it_was_did_not_step);
    tcase_add_loop_test(t, N4_a_stalled_client_does_not_look_like_a_stepped_clock, 0, 50);
    tcase_add_loop_test(t, N4_a_step_is_found_among_stalls, 0, 50);
    tcase_add_test(t, N4_clocks_may_part_slowly_while_nobody_looks);
    suite_add_tcase(s, t);
    return suite_run(s);
}
