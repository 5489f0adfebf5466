/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock exec as a job of a shell on a terminal. A process of the test plays the shell: it runs a
 * job in a process group of its own in the foreground, which may stop and continue. */
#include "redlock_cmd_world.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CTRL_C "\x03"
#define CTRL_Z "\x1a"
/* Reads a line from the terminal. */
#define READ_LINE "echo $$ >$DIR/up; read x && echo $x >$DIR/line; exit 4"

/* Contains nothing that blocks: a shell may miss a signal that arrives just before a blocking
 * call. */
#define WAIT_FOR_INTERRUPT \
    "trap 'echo int >$DIR/got; exit 3' INT; echo $$ >$DIR/up; while :; do :; done"

static int terminal_fd;
static pid_t shell;

static void note(const char *file, const char *text)
{
    autoclose int fd = open(world_path(file), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    (void)!write(fd, text, strlen(text));
}

static bool owns_terminal(pid_t group)
{
    return tcgetpgrp(STDIN_FILENO) == group;
}

/* Runs in the shell. */
static _Noreturn void run_job(const char *command, bool is_in_pipeline)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGTTOU, SIG_IGN);
    (void)putenv(world.nodes);
    (void)putenv(world.dir_env);
    pid_t job = fork();
    if (job == 0) {
        (void)setpgid(0, 0);
        (void)tcsetpgrp(STDIN_FILENO, getpid());
        (void)signal(SIGTTOU, SIG_DFL);
        if (is_in_pipeline) {
            (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
        }
        (void)execl(world.program, "redlock", "exec", "k", "--trust-fresh", "--node-timeout", "1s",
                    "--", "sh", "-c", command, (char *)NULL);
        _exit(99);
    }
    (void)setpgid(job, job);
    (void)tcsetpgrp(STDIN_FILENO, job);
    for (;;) {
        char text[32];
        int status = 0;
        (void)waitpid(job, &status, WUNTRACED);
        if (!WIFSTOPPED(status)) {
            (void)snprintf(text, sizeof text, "%d %s\n", WEXITSTATUS(status),
                           owns_terminal(job) ? "foreground" : "lost");
            note("end", text);
            _exit(0);
        }
        note("stopped", owns_terminal(job) ? "foreground\n" : "lost\n");
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
        (void)WAIT_UNTIL(access(world_path("resume"), F_OK) == 0, LIMIT_US);
        (void)tcsetpgrp(STDIN_FILENO, job);
        (void)kill(-job, SIGCONT);
    }
}

static void start_job(const char *command, bool is_in_pipeline)
{
    shell = forkpty(&terminal_fd, NULL, NULL, NULL);
    ck_assert_int_ge(shell, 0);
    if (shell == 0) {
        run_job(command, is_in_pipeline);
    }
}

static void type(const char *text)
{
    ck_assert_int_eq(write(terminal_fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void end_job(const char *expected)
{
    ck_wait_file("end", "\n");
    ck_assert_msg(world_has("end", expected), "not %s", expected);
    (void)waitpid(shell, NULL, 0);
    (void)close(terminal_fd);
}

START_TEST(a_command_reads_from_the_terminal_and_gives_it_back)
{
    start_job(READ_LINE, false);
    (void)world_pid("up");
    type("hello\n");
    end_job("4 foreground");
    ck_assert(world_has("line", "hello"));
}
END_TEST

START_TEST(a_command_gets_the_terminals_interrupt)
{
    start_job(WAIT_FOR_INTERRUPT, false);
    (void)world_pid("up");
    type(CTRL_C);
    end_job("3 foreground");
    ck_assert(world_has("got", "int"));
}
END_TEST

START_TEST(a_stopped_command_gives_the_shell_its_prompt_and_goes_on_in_the_foreground)
{
    start_job(READ_LINE, false);
    (void)world_pid("up");
    type(CTRL_Z);
    ck_wait_file("stopped", "foreground");
    note("resume", "\n");
    type("again\n");
    end_job("4 foreground");
    ck_assert(world_has("line", "again"));
}
END_TEST

START_TEST(a_command_whose_output_is_no_terminal_gets_the_terminal_when_it_reads_from_it)
{
    start_job(READ_LINE, true);
    (void)world_pid("up");
    type("late\n");
    end_job("4 foreground");
    ck_assert(world_has("line", "late"));
}
END_TEST

START_TEST(a_command_in_the_background_of_a_pipeline_is_interrupted_through_redlock)
{
    start_job(WAIT_FOR_INTERRUPT, true);
    (void)world_pid("up");
    type(CTRL_C);
    end_job("3 foreground");
    ck_assert(world_has("got", "int"));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, a_command_reads_from_the_terminal_and_gives_it_back);
    tcase_add_test(t, a_command_gets_the_terminals_interrupt);
    tcase_add_test(t, a_stopped_command_gives_the_shell_its_prompt_and_goes_on_in_the_foreground);
    tcase_add_test(t,
                   a_command_whose_output_is_no_terminal_gets_the_terminal_when_it_reads_from_it);
    tcase_add_test(t, a_command_in_the_background_of_a_pipeline_is_interrupted_through_redlock);
}

int main(void)
{
    return world_main("redlock_exec_tty", NULL, add_tests);
}
