/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/cmd/group.h"

#include "redlock/cmd/cli.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Runs between fork and exec: nothing here allocates or locks. */
static _Noreturn void become(char *const *argv, const sigset_t *mask, pid_t parent, int terminal_fd)
{
    (void)setpgid(0, 0);
    if (terminal_fd >= 0) {
        (void)tcsetpgrp(terminal_fd, getpid());
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(CLI_LOST);
    }
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvp(argv[0], argv);
    int error = errno;
    cli_tell("%s: %s", argv[0], strerrordesc_np(error));
    _exit(error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

static bool is_foreground(const struct group *g)
{
    return g->terminal_fd >= 0 && tcgetpgrp(g->terminal_fd) == getpgrp();
}

int group_start(struct group *g, char *const *argv, const sigset_t *mask)
{
    *g = (struct group){.code = -1, .terminal_fd = open("/dev/tty", O_RDWR | O_CLOEXEC)};
    /* As a part of a pipeline we leave the terminal to the others until the command asks for it. */
    g->has_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && is_foreground(g);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        return -errno;
    }
    if (pid == 0) {
        become(argv, mask, parent, g->has_terminal ? g->terminal_fd : -1);
    }
    (void)setpgid(pid, pid); /* parent and child both call it, so that neither is too late */
    if (g->has_terminal) {
        (void)tcsetpgrp(g->terminal_fd, pid);
    }
    g->id = pid;
    return 0;
}

void group_signal(const struct group *g, int number)
{
    if (g->id > 0 && !g->is_over) {
        (void)kill(-g->id, number);
    }
}

static void take_terminal(const struct group *g)
{
    if (g->has_terminal && tcgetpgrp(g->terminal_fd) == g->id) {
        (void)tcsetpgrp(g->terminal_fd, getpgrp());
    }
}

/* Gives the terminal to the group if it asks for it and it is ours. */
static bool lend_terminal(struct group *g, int number)
{
    if ((number != SIGTTIN && number != SIGTTOU) || !is_foreground(g)) {
        return false;
    }
    g->has_terminal = true;
    (void)tcsetpgrp(g->terminal_fd, g->id);
    group_signal(g, SIGCONT);
    return true;
}

static bool is_job_control(int number)
{
    return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

int group_reap(struct group *g)
{
    int status = 0;
    int stopped_by = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid != g->id) {
            continue;
        }
        if (WIFSTOPPED(status)) {
            stopped_by = WSTOPSIG(status);
        } else {
            stopped_by = 0;
            g->code = WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
    g->is_over = g->id > 0 && g->code >= 0 && kill(-g->id, 0) != 0 && errno == ESRCH;
    if (g->is_over) {
        take_terminal(g);
    }
    if (!is_job_control(stopped_by) || lend_terminal(g, stopped_by)) {
        return 0;
    }
    take_terminal(g);
    return stopped_by;
}

void group_resume(struct group *g)
{
    if (g->has_terminal && is_foreground(g)) {
        (void)tcsetpgrp(g->terminal_fd, g->id);
    }
    group_signal(g, SIGCONT);
}

void group_release(struct group *g)
{
    if (g->id <= 0) {
        return;
    }
    take_terminal(g);
    if (g->terminal_fd >= 0) {
        (void)close(g->terminal_fd);
    }
    *g = (struct group){.terminal_fd = -1};
}
