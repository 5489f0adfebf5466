/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock exec with faults: it is killed or stopped, or masters are stopped. A command never runs
 * after its lock has passed to another client. */
#include "redlock_cmd_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#define TTL_US (2 * US_PER_S)
/* The timeout keeps a busy machine from looking like a dead node. */
#define EXEC "exec", "k", "--trust-fresh", "--ttl", "2s", "--node-timeout", "200ms"
/* The command and a child of it run until they are killed; the child's pid is in
 * $DIR/NAME-child. */
#define HOLD(name) \
    "sh", "-c",    \
        "tail -f /dev/null & echo $! >$DIR/" name "-child; echo $$ >$DIR/" name "; wait; wait"
/* Reports whether that command was gone when the lock was won. */
#define LOOK(name)                                                                \
    "sh", "-c",                                                                   \
        "for f in " name " " name "-child; do kill -0 $(cat $DIR/$f) 2>/dev/null" \
        " && grep -q 'State:.[^Z]' /proc/$(cat $DIR/$f)/status && echo overlap; done; echo alone"

/* Returns the child of `parent` with that name; 0 = none. */
static pid_t find_child(pid_t parent, const char *name)
{
    char file[64];
    char text[128];
    pid_t found = 0;
    DIR *dir = opendir("/proc");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e = readdir(dir); e != NULL && found == 0; e = readdir(dir)) {
        char comm[32] = "";
        int its_parent = 0;
        long pid = strtol(e->d_name, NULL, 10);
        (void)snprintf(file, sizeof file, "/proc/%ld/stat", pid);
        FILE *f = pid > 0 ? fopen(file, "re") : NULL;
        if (f == NULL) {
            continue;
        }
        if (fgets(text, sizeof text, f) != NULL &&
            sscanf(text, "%*d (%31[^)]) %*c %d", comm, &its_parent) == 2 && its_parent == parent &&
            strcmp(comm, name) == 0) {
            found = (pid_t)pid;
        }
        (void)fclose(f);
    }
    (void)closedir(dir);
    return found;
}

/* The guard takes its name a moment after its parent has continued. */
static pid_t guard_of(pid_t parent)
{
    pid_t guard = 0;
    ck_assert(WAIT_UNTIL((guard = find_child(parent, "redlock-guard")) > 0, LIMIT_US));
    return guard;
}

static bool is_gone(const char *name)
{
    char child[64];
    (void)snprintf(child, sizeof child, "%s-child", name);
    return !world_runs(world_pid(name)) && !world_runs(world_pid(child));
}

START_TEST(the_group_of_a_killed_redlock_dies_and_the_next_is_served_within_the_lease)
{
    pid_t pid = start("exec.log", EXEC, "--", HOLD("held"));
    (void)world_pid("held");
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    int64_t began_us = wait_now_us();
    ck_assert(WAIT_UNTIL(is_gone("held"), LIMIT_US));
    ck_assert_int_eq(redlock(EXEC, "--wait", "10s", "--", LOOK("held")), 0);
    ck_assert(world_said("alone"));
    ck_assert(!world_said("overlap"));
    ck_assert_int_lt(wait_now_us() - began_us, TTL_US + 5 * US_PER_S);
    ck_assert_int_eq(world_wait(pid), 128 + SIGKILL);
}
END_TEST

START_TEST(the_command_of_a_killed_redlock_dies_without_its_guard_as_well)
{
    pid_t pid = start("exec.log", EXEC, "--", HOLD("held"));
    pid_t command = world_pid("held");
    ck_assert_int_eq(kill(guard_of(pid), SIGKILL), 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert(WAIT_UNTIL(!world_runs(command), LIMIT_US));
    ck_assert_int_eq(kill(world_pid("held-child"), SIGKILL), 0); /* nothing else kills it */
    (void)world_wait(pid);
}
END_TEST

START_TEST(F3_the_group_of_a_stopped_redlock_is_gone_before_the_lock_passes_on)
{
    pid_t pid = start("exec.log", EXEC, "--", HOLD("held"));
    (void)world_pid("held");
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(redlock(EXEC, "--wait", "10s", "--", LOOK("held")), 0);
    ck_assert(world_said("alone"));
    ck_assert(!world_said("overlap"));
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_int_eq(world_wait(pid), 74);
    ck_assert(world_has("exec.log", "the lock is lost"));
}
END_TEST

START_TEST(F3_a_redlock_without_its_guard_kills_the_group_first_when_it_goes_on)
{
    pid_t pid = start("exec.log", EXEC, "--", HOLD("held"));
    (void)world_pid("held");
    ck_assert_int_eq(kill(guard_of(pid), SIGKILL), 0);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(redlock(EXEC, "--wait", "10s", "--", "true"), 0);
    ck_assert(!is_gone("held")); /* that is the guard's task */
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_int_eq(world_wait(pid), 74);
    ck_assert(is_gone("held"));
}
END_TEST

START_TEST(a_stopped_command_is_killed_before_its_lock_passes_on)
{
    pid_t pid = start("exec.log", EXEC, "--", HOLD("held"));
    (void)world_pid("held");
    ck_assert_int_eq(kill(pid, SIGTSTP), 0); /* stops the command, and then redlock itself */
    ck_assert_int_eq(redlock(EXEC, "--wait", "10s", "--", LOOK("held")), 0);
    ck_assert(!world_said("overlap"));
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_int_eq(world_wait(pid), 74);
}
END_TEST

START_TEST(a_command_that_is_stopped_and_continued_in_time_goes_on)
{
    pid_t pid = start("exec.log", "exec", "k", "--trust-fresh", "-v", "--", "sh", "-c",
                      "mkfifo $DIR/fifo; echo $$ >$DIR/up; read x <$DIR/fifo; exit 6");
    (void)world_pid("up");
    ck_assert_int_eq(kill(pid, SIGTSTP), 0);
    ck_wait_file("exec.log", "stopped; the lease runs on");
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    /* Blocks until the command reads. */
    autoclose int fd = open(world_path("fifo"), O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "\n", 1), 1);
    ck_assert_int_eq(world_wait(pid), 6);
}
END_TEST

START_TEST(a_stopped_minority_of_masters_changes_nothing)
{
    world_signal_masters(0, 2, SIGSTOP);
    ck_assert_int_eq(redlock(EXEC, "--", "sh", "-c", "exit 7"), 7);
    world_signal_masters(0, 2, SIGCONT);
}
END_TEST

START_TEST(A6_a_stopped_majority_of_masters_is_told_as_69_in_bounded_time)
{
    world_signal_masters(0, 3, SIGSTOP);
    int64_t began_us = wait_now_us();
    ck_assert_int_eq(redlock(EXEC, "--", "sh", "-c", "echo >$DIR/ran"), 69);
    ck_assert_int_lt(wait_now_us() - began_us, 10 * US_PER_S); /* of which connecting takes 2 s */
    ck_assert(!world_has("ran", ""));
    ck_assert(world_said("too many nodes failed"));
    world_signal_masters(0, 3, SIGCONT);
}
END_TEST

START_TEST(W9_a_command_ends_in_time_when_a_majority_of_masters_stops)
{
    pid_t pid = start("exec.log", "exec", "k", "--trust-fresh", "--ttl", "10s", "--node-timeout",
                      "1s", "--kill-after", "3s", "--", "sh", "-c",
                      "trap 'echo >$DIR/termed' TERM; echo $$ >$DIR/held;"
                      "while :; do tail -f /dev/null & wait; done");
    pid_t command = world_pid("held");
    world_signal_masters(0, 3, SIGSTOP);
    int64_t began_us = wait_now_us();
    ck_assert(WAIT_UNTIL(!world_runs(command), LIMIT_US));
    ck_assert_int_lt(wait_now_us() - began_us, 10 * US_PER_S);
    ck_assert(world_has("termed", "\n")); /* SIGTERM came first, and did not end it */
    ck_assert_int_eq(world_wait(pid), 74);
    ck_assert(world_has("exec.log", "the lock can't be kept: ending the command"));
    world_signal_masters(0, 3, SIGCONT);
}
END_TEST

START_TEST(E3_a_command_whose_lock_was_deleted_everywhere_is_killed_at_the_next_extension)
{
    pid_t pid = start("exec.log", EXEC, "--", HOLD("held"));
    (void)world_pid("held");
    /* Otherwise it would heal one copy before the next is deleted. */
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    for (size_t i = 0; i < MASTERS; i++) {
        struct err err = {0};
        const char *const words[] = {"DEL", "k", NULL};
        ck_assert_int_eq(redis_server_ask(&world.servers[i], words, &world.out, &err), STATUS_OK);
    }
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_int_eq(world_wait(pid), 74);
    ck_assert(is_gone("held"));
    ck_assert(world_has("exec.log", "the lock is lost"));
}
END_TEST

START_TEST(a_command_that_is_only_warned_goes_on_and_its_code_is_passed)
{
    pid_t pid = start("exec.log", EXEC, "--on-lost", "warn", "--", "sh", "-c",
                      "trap 'kill $!; exit 8' USR1; echo $$ >$DIR/held;"
                      "while :; do tail -f /dev/null & wait; done");
    (void)world_pid("held");
    world_signal_masters(0, 3, SIGSTOP);
    ck_wait_file("exec.log", "the lock is lost, the command continues without it");
    world_signal_masters(0, 3, SIGCONT);
    ck_assert(world_runs(world_pid("held")));
    ck_assert_int_eq(kill(pid, SIGUSR1), 0);
    ck_assert_int_eq(world_wait(pid), 8);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, the_group_of_a_killed_redlock_dies_and_the_next_is_served_within_the_lease);
    tcase_add_test(t, the_command_of_a_killed_redlock_dies_without_its_guard_as_well);
    tcase_add_test(t, F3_the_group_of_a_stopped_redlock_is_gone_before_the_lock_passes_on);
    tcase_add_test(t, F3_a_redlock_without_its_guard_kills_the_group_first_when_it_goes_on);
    tcase_add_test(t, a_stopped_command_is_killed_before_its_lock_passes_on);
    tcase_add_test(t, a_command_that_is_stopped_and_continued_in_time_goes_on);
    tcase_add_test(t, a_stopped_minority_of_masters_changes_nothing);
    tcase_add_test(t, A6_a_stopped_majority_of_masters_is_told_as_69_in_bounded_time);
    tcase_add_test(t, W9_a_command_ends_in_time_when_a_majority_of_masters_stops);
    tcase_add_test(t,
                   E3_a_command_whose_lock_was_deleted_everywhere_is_killed_at_the_next_extension);
    tcase_add_test(t, a_command_that_is_only_warned_goes_on_and_its_code_is_passed);
}

int main(void)
{
    return world_main("redlock_exec_faults", NULL, add_tests);
}
