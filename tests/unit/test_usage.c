/* SPDX-License-Identifier: Apache-2.0
 *
 * The resources used by runners, measured on this process and a child. */
#include "support/suite.h"
#include "worker/slots/usage.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct usage u;

static void setup(void)
{
    u = (struct usage){.cpu_us = 0};
}

START_TEST(memory_is_of_those_that_live)
{
    const pid_t pids[] = {getpid(), 0, getpid()};
    usage_collect(&u, pids, 1);
    int64_t one = u.bytes;
    ck_assert_int_gt(one, 100000);
    usage_collect(&u, pids, 3);
    ck_assert_int_gt(u.bytes, one * 3 / 2);
    usage_collect(&u, (const pid_t[]){0, 0, 0}, 3);
    ck_assert_int_eq(u.bytes, 0);
    usage_collect(&u, pids, 0);
    ck_assert_int_eq(u.bytes, 0);
}
END_TEST

/* Works until it has used a tenth of a second, then waits to be killed. */
static pid_t child_that_works(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        while (clock() < CLOCKS_PER_SEC / 10) {
        }
        (void)raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    return pid;
}

START_TEST(cpu_time_of_a_runner_that_ended_is_kept_and_counted_once)
{
    pid_t pid = child_that_works();
    usage_collect(&u, &pid, 1);
    int64_t alive_us = u.cpu_us;
    ck_assert_int_ge(alive_us, 80000);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    usage_collect(&u, (const pid_t[]){0}, 1);
    ck_assert_int_ge(u.cpu_us, alive_us);
    ck_assert_int_lt(u.cpu_us, 2 * alive_us);
}
END_TEST

START_TEST(of_many_runners_some_are_looked_at_each_time_and_all_in_turn)
{
    static pid_t pids[USAGE_RUNNERS_MAX];
    for (size_t i = 0; i < USAGE_RUNNERS_MAX; i++) {
        pids[i] = getpid();
    }
    usage_collect(&u, pids, USAGE_RUNNERS_MAX);
    int64_t some = u.bytes;
    for (int i = 1; i < USAGE_RUNNERS_MAX / USAGE_LOOKS_MAX; i++) {
        usage_collect(&u, pids, USAGE_RUNNERS_MAX);
    }
    ck_assert_int_gt(u.bytes, some * (USAGE_RUNNERS_MAX / USAGE_LOOKS_MAX - 2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("usage");
    TCase *c = tcase_create("runners");
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, memory_is_of_those_that_live);
    tcase_add_test(c, cpu_time_of_a_runner_that_ended_is_kept_and_counted_once);
    tcase_add_test(c, of_many_runners_some_are_looked_at_each_time_and_all_in_turn);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
