/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimd-runner --list`: prints what the plugins of a folder serve and why files are refused, as a
 * runner would find it, including files that would end the runner. */
#include "base/clock.h"
#include "runner/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* The longest time without progress; trials of files end after 5 s by themselves. */
#define TRIAL_US (7 * US_PER_S)
#define LOAD_US (3 * US_PER_S)
#define LOOK_EVERY_MS 50

/* Files that ended a child, with the reasons. */
struct culprits {
    char files[PLUGINS_MAX][RUNNER_FILE_SIZE];
    char reasons[PLUGINS_MAX][96];
};

static enum status print(const struct plugin_set_options *options, struct err *err)
{
    struct plugin_set plugins;
    enum status st = plugin_set_open(&plugins, options, err);
    if (st != STATUS_OK) {
        return st;
    }
    autofree char *json = NULL;
    st = plugin_set_describe(&plugins, &json, err);
    if (st == STATUS_OK) {
        (void)puts(json);
    }
    plugin_set_close(&plugins);
    return st;
}

static _Noreturn void run_child(const struct plugin_set_options *options)
{
    struct err err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    enum status st = print(options, &err);
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "claimd-runner: %s\n", err.msg);
    }
    (void)fflush(stdout);
    _exit(st == STATUS_OK ? 0 : 1);
}

/* Returns the child's wait status. Kills a child that makes no progress for longer than a step may
 * take. */
static int wait_for(pid_t child, struct runner_page *page, bool *ret_late)
{
    autoclose int pidfd = pidfd_open(child, 0);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    int32_t loaded = atomic_load(&page->loaded);
    int64_t since_us = clock_boot_us();
    int wait_status = 0;
    *ret_late = false;
    while (!*ret_late && poll(&p, 1, LOOK_EVERY_MS) <= 0) {
        int64_t now_us = clock_boot_us();
        if (atomic_load(&page->loaded) != loaded) {
            loaded = atomic_load(&page->loaded);
            since_us = now_us;
        }
        *ret_late = now_us - since_us >= (page->loading[0] == '\0' ? TRIAL_US : LOAD_US);
    }
    if (*ret_late) {
        (void)kill(child, SIGKILL);
    }
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    return wait_status;
}

static void blame(struct culprits *c, struct plugin_set_options *options,
                  const struct runner_page *page, int wait_status, bool is_late)
{
    size_t n = options->without_count;
    char *reason = c->reasons[n];
    (void)snprintf(c->files[n], sizeof c->files[n], "%.*s", (int)sizeof page->loading - 1,
                   page->loading);
    if (is_late) {
        (void)snprintf(reason, sizeof c->reasons[n], "a runner hangs when it loads it");
    } else if (WIFSIGNALED(wait_status)) {
        (void)snprintf(reason, sizeof c->reasons[n], "a runner crashes when it loads it: SIG%s",
                       sigabbrev_np(WTERMSIG(wait_status)));
    } else {
        (void)snprintf(reason, sizeof c->reasons[n], "it ends a runner that loads it: exit code %d",
                       WEXITSTATUS(wait_status));
    }
    options->without[n] = c->files[n];
    options->reasons[n] = reason;
    options->without_count++;
}

/* Occupies descriptors 3 to 6 in this mode too, so that the layout is always the same. */
static enum status take_descriptors(struct err *err)
{
    for (int fd = RUNNER_FD_FRAMES; fd <= RUNNER_FD_LAST; fd++) {
        if (open("/dev/null", O_RDWR | O_CLOEXEC) < 0) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "/dev/null");
        }
    }
    return STATUS_OK;
}

static enum status try_again_without(struct plugin_set_options *options, struct culprits *culprits,
                                     struct err *err)
{
    struct runner_page *page = options->page;
    for (;;) {
        bool is_late = false;
        page->loading[0] = '\0';
        atomic_store(&page->loaded, 0);
        pid_t child = fork();
        if (child < 0) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork");
        }
        if (child == 0) {
            run_child(options);
        }
        int wait_status = wait_for(child, page, &is_late);
        if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
            return STATUS_OK;
        }
        if (page->loading[0] == '\0' || options->without_count == PLUGINS_MAX) {
            return err_fail(err, STATUS_INTERNAL, "the plugins can't be loaded");
        }
        blame(culprits, options, page, wait_status, is_late);
    }
}

enum status list_plugins(const struct plugin_set_options *options, struct err *err)
{
    static struct culprits culprits;
    struct plugin_set_options with = *options;
    enum status st = take_descriptors(err);
    if (st != STATUS_OK) {
        return st;
    }
    void *page =
        mmap(NULL, RUNNER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return err_fail_sys(err, STATUS_NOMEM, errno, "cannot map a page");
    }
    with.page = page;
    return try_again_without(&with, &culprits, err);
}
