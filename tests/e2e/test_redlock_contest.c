/* SPDX-License-Identifier: Apache-2.0
 *
 * There are never two clients in the section, whatever happens to masters and clients. */
#include "contest.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define CLIENTS 3

static char program[SERVER_PATH_MAX];
static struct contest c;

static void signal_masters(size_t first, size_t count, int number)
{
    for (size_t i = 0; i < count; i++) {
        pid_t pid = c.servers[(first + i) % CONTEST_MASTERS].pid;
        ck_assert_int_eq(kill(pid, number), 0);
    }
}

static void pause_masters(size_t count, int64_t us)
{
    size_t first = (size_t)rand_below(&c.rand, CONTEST_MASTERS);
    signal_masters(first, count, SIGSTOP);
    contest_pause(&c, us);
    signal_masters(first, count, SIGCONT);
}

static void restart_master(void)
{
    struct err err = {0};
    struct redis_server *s = &c.servers[rand_below(&c.rand, CONTEST_MASTERS)];
    redis_server_kill(s);
    ck_assert_msg(redis_server_restart(s, &err) == STATUS_OK, "%s", err.msg);
}

/* The pause is shorter than the rest of a lease when it is won. */
static void pause_client(int64_t us)
{
    pid_t pid = c.contenders[rand_below(&c.rand, CLIENTS)].pid;
    if (pid > 0) {
        ck_assert_int_eq(kill(pid, SIGSTOP), 0);
        contest_pause(&c, us);
        ck_assert_int_eq(kill(pid, SIGCONT), 0);
    }
}

static void next_fault(size_t *counts)
{
    int64_t us = 20 * US_PER_MS + rand_below(&c.rand, 300 * US_PER_MS);
    int64_t kind = rand_below(&c.rand, 6);
    counts[kind]++;
    switch (kind) {
    case 0:
        pause_masters(1, 2 * us);
        break;
    case 1:
        pause_masters(2, 2 * us);
        break;
    case 2:
        pause_masters(3, us);
        break;
    case 3:
        restart_master();
        break;
    case 4:
        contest_kill(&c, (size_t)rand_below(&c.rand, CLIENTS));
        break;
    default:
        pause_client(us);
        break;
    }
}

START_TEST(T3_T4_random_faults_make_no_two_owners)
{
    size_t counts[6] = {0};
    struct contest_result result;
    contest_start(&c, contest_seconds(12, 180));
    contest_add(&c, program, "first");
    contest_add(&c, program, "second");
    contest_add(&c, program, "third");
    contest_pause(&c, 3 * US_PER_S); /* the masters are young, and not trusted before (lock.N1) */
    while (!contest_is_over(&c)) {
        contest_pause(&c, rand_below(&c.rand, 500 * US_PER_MS));
        if (!contest_is_over(&c)) {
            next_fault(counts);
        }
    }
    printf("one, two, three masters paused: %zu, %zu, %zu times; masters restarted: %zu; clients "
           "killed: %zu, paused: %zu\n",
           counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]);
    contest_end(&c, &result);
}
END_TEST

int main(void)
{
    const char *bin = getenv("CLAIMD_BIN_DIR"); /* NOLINT(concurrency-mt-unsafe) */
    (void)snprintf(program, sizeof program, "%s/redlock-contender", bin != NULL ? bin : "bin");
    Suite *s = suite_create("redlock_contest");
    TCase *t = tcase_create("redlock_contest");
    tcase_set_timeout(t, 400);
    tcase_add_test(t, T3_T4_random_faults_make_no_two_owners);
    suite_add_tcase(s, t);
    return suite_run(s);
}
