/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock exec without faults: exit codes, holding, signals, and refusals. */
#include "redlock_cmd_world.h"

/* Fresh nodes are trusted, since they were just started. The timeout keeps a busy machine from
 * looking like a dead node. */
#define EXEC "exec", "k", "--trust-fresh", "--node-timeout", "1s"
/* A command that creates $DIR/NAME when it has its lock, and runs until it is killed. */
#define HOLD(name) "sh", "-c", "echo $$ >$DIR/" name "; exec tail -f /dev/null"

START_TEST(the_exit_code_of_the_command_is_passed)
{
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 0);
    ck_assert_int_eq(redlock(EXEC, "--", "sh", "-c", "exit 7"), 7);
    ck_assert_int_eq(redlock(EXEC, "--", "sh", "-c", "kill -KILL $$"), 128 + SIGKILL);
    ck_assert_int_eq(redlock(EXEC, "sh", "-c", "exit 9"), 9); /* without "--" */
    ck_assert_int_eq(redlock(EXEC, "--", "/no/such/program"), 127);
    ck_assert(world_said("/no/such/program: No such file or directory"));
    ck_assert_int_eq(redlock(EXEC, "--", "/dev/null"), 126);
}
END_TEST

START_TEST(standard_streams_pass_through_and_no_other_descriptor_does)
{
    ck_assert_int_eq(redlock(EXEC, "--", "sh", "-c", "echo to-out; echo to-err >&2"), 0);
    ck_assert(world_said("to-out"));
    ck_assert(world_said("to-err"));
    ck_assert_int_eq(redlock(EXEC, "--", "sh", "-c", "ls -l /proc/$$/fd"), 0);
    ck_assert(world_said(" 2 -> "));
    ck_assert(!world_said("socket:"));
    ck_assert(!world_said("anon_inode:"));
    ck_assert(!world_said(" 3 -> "));
}
END_TEST

START_TEST(a_lock_that_another_holds_is_refused_at_once_and_won_after_its_release)
{
    pid_t holder = start("holder.log", EXEC, "--", HOLD("held"));
    pid_t command = world_pid("held");
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 75);
    ck_assert(world_said("held by another"));
    ck_assert_int_eq(redlock(EXEC, "-E", "3", "--", "true"), 3);
    /* No output, which cron would mail. */
    ck_assert_int_eq(redlock(EXEC, "-E", "0", "--", "true"), 0);
    ck_assert_uint_eq(world.out.len, 0);
    ck_assert_int_eq(redlock(EXEC, "--quiet", "--", "true"), 75);
    ck_assert_uint_eq(world.out.len, 0);
    ck_assert_int_eq(redlock(EXEC, "--wait", "100ms", "--", "true"), 75);
    pid_t waiter = start("waiter.log", EXEC, "--wait", "10s", "--", "sh", "-c", "echo >$DIR/won");
    ck_assert_int_eq(kill(command, SIGKILL), 0);
    ck_assert_int_eq(world_wait(holder), 128 + SIGKILL);
    ck_assert_int_eq(world_wait(waiter), 0);
    ck_assert(world_has("won", "\n"));
}
END_TEST

START_TEST(L10_as_many_commands_as_there_are_slots_run_at_once)
{
    pid_t first = start("first.log", EXEC, "--slots", "2", "--", HOLD("first"));
    pid_t second = start("second.log", EXEC, "--slots", "2", "--", HOLD("second"));
    pid_t command = world_pid("first");
    pid_t other = world_pid("second");
    ck_assert_int_eq(redlock(EXEC, "--slots", "2", "--", "true"), 75);
    ck_assert_int_eq(redlock("status", "k#2", "--trust-fresh", "--node-timeout", "1s"), 0);
    ck_assert_int_eq(kill(command, SIGKILL), 0);
    ck_assert_int_eq(redlock(EXEC, "--slots", "2", "--wait", "10s", "--", "true"), 0);
    ck_assert_int_eq(kill(other, SIGKILL), 0);
    ck_assert_int_eq(world_wait(first), 128 + SIGKILL);
    ck_assert_int_eq(world_wait(second), 128 + SIGKILL);
}
END_TEST

START_TEST(L11_readers_run_at_once_and_a_writer_alone)
{
    pid_t first = start("first.log", EXEC, "--shared", "--", HOLD("first"));
    pid_t second = start("second.log", EXEC, "-s", "--", HOLD("second"));
    pid_t command = world_pid("first");
    pid_t other = world_pid("second");
    ck_assert_int_eq(redlock(EXEC, "--exclusive", "--", "true"), 75);
    pid_t writer = start("writer.log", EXEC, "-x", "--wait", "10s", "--", HOLD("writer"));
    ck_assert_int_eq(kill(command, SIGKILL), 0);
    ck_assert_int_eq(kill(other, SIGKILL), 0);
    ck_assert_int_eq(world_wait(first), 128 + SIGKILL);
    ck_assert_int_eq(world_wait(second), 128 + SIGKILL);
    pid_t third = world_pid("writer");
    ck_assert_int_eq(redlock(EXEC, "-s", "--", "true"), 75);
    ck_assert_int_eq(kill(third, SIGKILL), 0);
    ck_assert_int_eq(world_wait(writer), 128 + SIGKILL);
    ck_assert_int_eq(redlock(EXEC, "-s", "--", "true"), 0);
}
END_TEST

START_TEST(a_signal_ends_the_wait_and_leaves_the_lock_alone)
{
    pid_t holder = start("holder.log", EXEC, "--", HOLD("held"));
    pid_t command = world_pid("held");
    pid_t waiter =
        start("waiter.log", EXEC, "--wait", "forever", "--", "sh", "-c", "echo >$DIR/won");
    /* In this time, the waiter has begun to wait. */
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 75);
    ck_assert_int_eq(kill(waiter, SIGTERM), 0);
    ck_assert_int_eq(world_wait(waiter), 128 + SIGTERM);
    ck_assert(!world_has("won", ""));
    ck_assert_int_eq(kill(command, SIGKILL), 0);
    (void)world_wait(holder);
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 0);
}
END_TEST

START_TEST(signals_are_passed_on_to_the_command)
{
    static const struct {
        int number;
        const char *name;
    } cases[] = {{SIGUSR1, "USR1"},   {SIGUSR2, "USR2"}, {SIGHUP, "HUP"},
                 {SIGWINCH, "WINCH"}, {SIGINT, "INT"},   {SIGQUIT, "QUIT"}};
    pid_t pid =
        start("exec.log", EXEC, "--", "sh", "-c",
              "for s in USR1 USR2 HUP WINCH INT QUIT; do trap \"echo $s >>$DIR/got\" $s; done;"
              /* Contains nothing that blocks: a shell may miss a signal that arrives just before a
               * blocking call. */
              "trap 'exit 5' TERM; echo $$ >$DIR/up; while :; do :; done");
    (void)world_pid("up");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        ck_assert_int_eq(kill(pid, cases[i].number), 0);
        ck_wait_file("got", cases[i].name);
    }
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(world_wait(pid), 5);
}
END_TEST

START_TEST(what_the_command_leaves_in_its_group_keeps_the_lock)
{
    pid_t pid =
        start("exec.log", EXEC, "--", "sh", "-c", "tail -f /dev/null & echo $! >$DIR/rest; exit 4");
    pid_t rest = world_pid("rest");
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 75);
    ck_assert_int_eq(kill(rest, SIGKILL), 0);
    ck_assert_int_eq(world_wait(pid), 4);
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 0);
}
END_TEST

START_TEST(a_lock_is_kept_as_long_as_was_asked_for_and_a_signal_cuts_that_short)
{
    int64_t began_us = wait_now_us();
    ck_assert_int_eq(redlock(EXEC, "--min-hold", "600ms", "--", "sh", "-c", "exit 3"), 3);
    ck_assert_int_ge(wait_now_us() - began_us, 600 * US_PER_MS);
    pid_t pid = start("exec.log", EXEC, "--min-hold", "1h", "--", "sh", "-c", "echo >$DIR/done");
    ck_wait_file("done", "\n");
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 75);
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(world_wait(pid), 0);
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 0);
}
END_TEST

/* The lease is half an hour, so --max-hold ends the command, not the lease. */
START_TEST(E9_a_command_is_ended_before_its_longest_hold_is_over)
{
    int64_t began_us = wait_now_us();
    int code = redlock(EXEC, "--ttl", "30m", "--max-hold", "2s", "--", "tail", "-f", "/dev/null");
    ck_assert_int_eq(code, 74);
    ck_assert_int_lt(wait_now_us() - began_us, 10 * US_PER_S);
    ck_assert(world_said("--max-hold has passed: ending the command"));
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 0);
}
END_TEST

/* The command ignores SIGTERM: the lock is released when it has ended, not before. */
START_TEST(E9_the_lock_is_released_only_after_the_command_has_ended)
{
    int code =
        redlock(EXEC, "--ttl", "30m", "--max-hold", "2s", "--kill-after", "500ms", "--", "sh", "-c",
                "trap '' TERM; until /proc/$PPID/exe status k >/dev/null; [ $? = 1 ]; do "
                ":; done; echo >$DIR/ran-unlocked");
    ck_assert_int_eq(code, 74);
    ck_assert(!world_has("ran-unlocked", ""));
}
END_TEST

START_TEST(a_command_gets_a_fence_that_rises_when_it_was_asked_for)
{
    static const char command[] = "echo fence=$REDLOCK_FENCE.";
    ck_assert_int_eq(redlock(EXEC, "--fence", "--", "sh", "-c", command), 0);
    ck_assert(world_said("fence=1."));
    ck_assert_int_eq(redlock(EXEC, "--fence", "--", "sh", "-c", command), 0);
    ck_assert(world_said("fence=2."));
    ck_assert_int_eq(redlock(EXEC, "--", "sh", "-c", command), 0);
    ck_assert(world_said("fence=."));
}
END_TEST

/* ---- bad input ---- */

static const struct refusal {
    const char *words[10]; /* NULL-ended */
    int code;
    const char *text;
} refusals[] = {
    {{"exec"}, 64, "no key"},
    {{"exec", ""}, 64, "no key"},
    {{"exec", "k"}, 64, "no command"},
    {{"exec", "k", "--"}, 64, "no command"},
    {{"exec", "k", "--nosuch", "--", "true"}, 64, "--nosuch"},
    {{"exec", "k", "--ttl", "soon", "--", "true"}, 64, "--ttl: 'soon' is not a duration"},
    {{"exec", "k", "--ttl", "0", "--", "true"}, 64, "--ttl: 0 is not within 1000ms and"},
    {{"exec", "k", "--ttl", "25h", "--", "true"}, 64, "--ttl: 25h is not within"},
    {{"exec", "k", "--ttl", "-5", "--", "true"}, 64, "--ttl"},
    {{"exec", "k", "--ttl", "9s", "--kill-after", "4s", "--", "true"}, 64, "at most a third"},
    {{"exec", "k", "--max-hold", "2s", "--kill-after", "1s", "--", "true"}, 64, "here 666ms"},
    {{"exec", "k", "--max-hold", "2s", "--min-hold", "3s", "--", "true"}, 64, "at most --max-hold"},
    {{"exec", "k", "--slots", "0", "--", "true"}, 64, "--slots"},
    {{"exec", "k", "--slots", "65", "--", "true"}, 64, "allowed: 1 to 64"},
    {{"exec", "k", "--on-lost", "cry", "--", "true"}, 64, "neither kill nor warn"},
    {{"exec", "k", "-E", "256", "--", "true"}, 64, "allowed: 0 to 255"},
    {{"exec", "k", "--nodes", "a,,b", "--", "true"}, 64, "node 2 of the list is empty"},
    {{"exec", "k", "--nodes", "1,2,3,4,5,6,7,8,9,10", "--", "true"},
     64,
     "10 nodes, allowed are 1 to 9"},
    {{"exec", "k", "--nodes", "a:99999999", "--", "true"}, 78, "99999999"},
    {{"exec", "k", "--nodes", "a,a", "--", "true"}, 78, "a:6379"},
    {{"exec", "k", "--password-file", "/nonexistent", "--", "true"},
     64,
     "/nonexistent: No such file"},
    {{"exec", "k", "--ttl", "1s", "--node-timeout", "500ms", "--", "true"},
     64,
     "node_timeout_ms is 500, allowed are 1 to 100: a tenth of ttl_ms at most"},
    {{"dance"}, 64, "'dance' is not a verb"},
    {{NULL}, 64, "'' is not a verb"},
};

START_TEST(wrong_input_is_refused_with_what_to_change)
{
    const struct refusal *r = &refusals[_i];
    int code = world_run(r->words);
    ck_assert_msg(code == r->code && world_said(r->text), "%d: %s", code,
                  world.out.len > 0 ? buf_at(&world.out) : "");
}
END_TEST

START_TEST(a_key_longer_than_a_kibibyte_is_refused)
{
    static char key[1026];
    memset(key, 'x', sizeof key - 1);
    ck_assert_int_eq(redlock("exec", key, "--", "true"), 64);
    ck_assert(world_said("at most 1024 bytes"));
}
END_TEST

START_TEST(help_and_version_are_told_on_standard_output)
{
    ck_assert_int_eq(redlock("--help"), 0);
    ck_assert(world_said("redlock VERB"));
    ck_assert_int_eq(redlock("help", "exec"), 0);
    ck_assert(world_said("--conflict-exit-code"));
    ck_assert_int_eq(redlock("exec", "--help"), 0);
    ck_assert(world_said("--on-lost"));
    ck_assert_int_eq(redlock("--version"), 0);
    ck_assert(world_said("redlock 0."));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, the_exit_code_of_the_command_is_passed);
    tcase_add_test(t, standard_streams_pass_through_and_no_other_descriptor_does);
    tcase_add_test(t, a_lock_that_another_holds_is_refused_at_once_and_won_after_its_release);
    tcase_add_test(t, L10_as_many_commands_as_there_are_slots_run_at_once);
    tcase_add_test(t, L11_readers_run_at_once_and_a_writer_alone);
    tcase_add_test(t, a_signal_ends_the_wait_and_leaves_the_lock_alone);
    tcase_add_test(t, signals_are_passed_on_to_the_command);
    tcase_add_test(t, what_the_command_leaves_in_its_group_keeps_the_lock);
    tcase_add_test(t, a_lock_is_kept_as_long_as_was_asked_for_and_a_signal_cuts_that_short);
    tcase_add_test(t, E9_a_command_is_ended_before_its_longest_hold_is_over);
    tcase_add_test(t, E9_the_lock_is_released_only_after_the_command_has_ended);
    tcase_add_test(t, a_command_gets_a_fence_that_rises_when_it_was_asked_for);
    tcase_add_loop_test(t, wrong_input_is_refused_with_what_to_change, 0, ARRAY_COUNT(refusals));
    tcase_add_test(t, a_key_longer_than_a_kibibyte_is_refused);
    tcase_add_test(t, help_and_version_are_told_on_standard_output);
}

int main(void)
{
    return world_main("redlock_exec", NULL, add_tests);
}
