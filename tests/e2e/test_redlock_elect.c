/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock elect: one of several candidates runs the command, and another one if that one cannot. */
#include "redlock_cmd_world.h"

/* The timeout keeps a busy machine from looking like a dead node. */
#define ELECT "elect", "k", "--trust-fresh", "--ttl", "2s", "--node-timeout", "200ms"
/* Fails if another leader is still active; then reports itself, once SIGTERM can end it. */
#define LEAD(name)                                                           \
    "sh", "-c",                                                              \
        "mkdir $DIR/leads || exit 99; trap 'rmdir $DIR/leads; exit 0' TERM;" \
        "echo $$ >$DIR/" name "; echo " name " >>$DIR/terms; while :; do sleep 1 & wait; done"

START_TEST(another_candidate_is_elected_when_the_leader_is_killed)
{
    pid_t first = start("first.log", ELECT, "--", "sh", "-c", "echo $$ >$DIR/up; exec sleep 9999");
    pid_t command = world_pid("up");
    ck_wait_file("first.log", "k: elected");
    pid_t second = start("second.log", ELECT, "--", "sh", "-c",
                         "kill -0 $(cat $DIR/up) && exit 99; echo $$ >$DIR/next; exit 7");
    ck_assert_int_eq(kill(first, SIGKILL), 0);
    /* The exit code of its own command; the first command is gone. */
    ck_assert_int_eq(world_wait(second), 7);
    ck_assert(!world_runs(command));
    ck_assert_int_eq(world_wait(first), 128 + SIGKILL);
}
END_TEST

START_TEST(a_leader_without_a_quorum_ends_its_command_and_stands_again)
{
    pid_t pid = start("elect.log", ELECT, "--", LEAD("a"));
    pid_t command = world_pid("a");
    world_signal_masters(0, 3, SIGSTOP);
    ck_wait_file("elect.log", "k: no longer elected: standing again");
    ck_assert(!world_runs(command));
    world_signal_masters(0, 3, SIGCONT);
    ck_wait_file("terms", "a\na\n");
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(world_wait(pid), 0);
    ck_assert(!world_has("terms", "a\na\na\n"));
}
END_TEST

START_TEST(a_signal_ends_a_candidate_that_waits)
{
    pid_t leader = start("leader.log", ELECT, "--", LEAD("a"));
    (void)world_pid("a");
    pid_t waiter = start("waiter.log", ELECT, "-v", "--", LEAD("b"));
    ck_assert_int_eq(redlock("exec", "k", "--trust-fresh", "--ttl", "2s", "--", "true"), 75);
    ck_assert_int_eq(kill(waiter, SIGTERM), 0);
    ck_assert_int_eq(world_wait(waiter), 128 + SIGTERM);
    ck_assert_int_eq(kill(leader, SIGTERM), 0);
    ck_assert_int_eq(world_wait(leader), 0);
    ck_assert(!world_has("terms", "b"));
}
END_TEST

START_TEST(E9_turns_of_a_bounded_length_go_round)
{
    pid_t a = start("a.log", ELECT, "--max-hold", "1s", "--", LEAD("a"));
    pid_t b = start("b.log", ELECT, "--max-hold", "1s", "--", LEAD("b"));
    ck_wait_file("a.log", "--max-hold has passed: ending the command");
    ck_wait_file("b.log", "--max-hold has passed: ending the command");
    ck_wait_file("a.log", "k: no longer elected: standing again");
    ck_assert_int_eq(kill(a, SIGTERM), 0);
    ck_assert_int_eq(kill(b, SIGTERM), 0);
    ck_assert_int_ne(world_wait(a), 99);
    ck_assert_int_ne(world_wait(b), 99);
}
END_TEST

START_TEST(an_election_refuses_the_options_of_a_single_run)
{
    ck_assert_int_eq(redlock("elect", "k", "--wait", "1s", "--", "true"), 64);
    ck_assert(world_said("--wait: no such option, or its value is missing (redlock help elect)"));
    ck_assert_int_eq(redlock("elect", "k", "-E", "0", "--", "true"), 64);
    ck_assert_int_eq(redlock("elect", "k"), 64);
    ck_assert(world_said("redlock: elect: no command after the key"));
    ck_assert_int_eq(redlock("help", "elect"), 0);
    ck_assert(world_said("Usage: redlock elect KEY"));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, another_candidate_is_elected_when_the_leader_is_killed);
    tcase_add_test(t, a_leader_without_a_quorum_ends_its_command_and_stands_again);
    tcase_add_test(t, a_signal_ends_a_candidate_that_waits);
    tcase_add_test(t, E9_turns_of_a_bounded_length_go_round);
    tcase_add_test(t, an_election_refuses_the_options_of_a_single_run);
}

int main(void)
{
    return world_main("redlock_elect", NULL, add_tests);
}
