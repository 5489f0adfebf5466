/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/process_state.h"

#include "base/proc.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#define LEAKED_FDS_MAX 16
#define END_ROUNDS_MAX 64

static mode_t current_mask(void)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return mask;
}

/* Returns the lowest free descriptor. Lower than before: a descriptor of the runner was closed;
 * much higher: descriptors leaked. */
static int first_free_fd(void)
{
    int fd = fcntl(3, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd;
}

static nlink_t task_links(void)
{
    struct stat s = {0};
    return stat("/proc/self/task", &s) == 0 ? s.st_nlink : 0; /* number of threads plus two */
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* `keeps` points to a function pointer: children that may exist; NULL = none. */
static bool is_stray(void *keeps, pid_t child)
{
    bool (*const *is_kept)(pid_t) = keeps;
    return *is_kept == NULL || !(*is_kept)(child);
}

static bool has_strays(bool (*keeps)(pid_t child))
{
    return has_children() && (keeps == NULL || proc_each_child(is_stray, &keeps) > 0);
}

static bool signals_changed(const struct process_state *clean)
{
    struct sigaction term;
    sigset_t blocked;
    struct itimerval timer;
    if (sigaction(SIGTERM, NULL, &term) != 0 || term.sa_handler != clean->on_term) {
        return true;
    }
    if (sigprocmask(SIG_SETMASK, NULL, &blocked) != 0 || sigisemptyset(&blocked) == 0) {
        return true;
    }
    return getitimer(ITIMER_REAL, &timer) != 0 || timer.it_value.tv_sec != 0 ||
           timer.it_value.tv_usec != 0;
}

static bool environment_changed(const struct process_state *clean)
{
    if (environ != clean->environment) {
        return true;
    }
    size_t i = 0;
    for (; i < PROCESS_VARIABLES_MAX - 1 && clean->variables[i] != NULL; i++) {
        if (environ[i] != clean->variables[i]) {
            return true;
        }
    }
    return environ != NULL && environ[i] != NULL;
}

void process_state_baseline(struct process_state *ret, bool (*keeps)(pid_t child))
{
    *ret = (struct process_state){.mask = current_mask(),
                                  .first_free_fd = first_free_fd(),
                                  .tasks = task_links(),
                                  .environment = environ,
                                  .keeps = keeps};
    (void)stat(".", &ret->directory);
    for (size_t i = 0; environ != NULL && i < PROCESS_VARIABLES_MAX - 1 && environ[i] != NULL;
         i++) {
        ret->variables[i] = environ[i];
    }
    struct sigaction term;
    if (sigaction(SIGTERM, NULL, &term) == 0) {
        ret->on_term = term.sa_handler;
    }
}

const char *process_state_change(const struct process_state *clean)
{
    struct stat directory;
    if (stat(".", &directory) != 0 || directory.st_ino != clean->directory.st_ino ||
        directory.st_dev != clean->directory.st_dev) {
        return "another working directory";
    }
    if (current_mask() != clean->mask) {
        return "another umask";
    }
    int fd = first_free_fd();
    if (fd < clean->first_free_fd) {
        return "a descriptor of the runner closed";
    }
    if (fd > clean->first_free_fd + LEAKED_FDS_MAX) {
        return "descriptors open";
    }
    if (task_links() != clean->tasks) {
        return "a thread";
    }
    if (has_strays(clean->keeps)) {
        return "a child process";
    }
    if (signals_changed(clean)) {
        return "changed signals or a timer";
    }
    if (environment_changed(clean)) {
        return "another environment";
    }
    const char *locale = setlocale(LC_ALL, NULL); /* NOLINT(concurrency-mt-unsafe) */
    if (locale == NULL || strcmp(locale, "C") != 0) {
        return "another locale";
    }
    return NULL;
}

static bool end_stray(void *keeps, pid_t child)
{
    if (!is_stray(keeps, child)) {
        return false;
    }
    if (kill(child, SIGKILL) == 0) {
        (void)waitpid(child, NULL, 0); /* not -1: a child adopted just now may live on */
    }
    return true;
}

void process_state_end_children(bool (*keeps)(pid_t child))
{
    /* This process adopts the grandchildren (PR_SET_CHILD_SUBREAPER), so each round ends one
     * generation. */
    for (int round = 0; round < END_ROUNDS_MAX && has_children(); round++) {
        if (proc_each_child(end_stray, &keeps) == 0) {
            return;
        }
    }
}
