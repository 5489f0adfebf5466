/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/plugin_probe.h"

#include "base/clock.h"
#include "runner/plugin_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROBE_TIMEOUT_US (5 * US_PER_S)
#define RUNNING_MAX 16

/* The message of a child: its names, then one of these; a refusal is followed by its text. The pipe
 * has room for all of it. */
#define SAYS_OK 'y'
#define SAYS_NO 'n'
#define SAYING_MAX (sizeof(struct plugin_names) + 1 + ERR_TEXT_MAX)

/* ---- in the child ---- */

static bool say(int out, const void *bytes, size_t len)
{
    return write(out, bytes, len) == (ssize_t)len;
}

static void copy_name(char ret_name[JOB_NAME_MAX + 1], const char *name)
{
    (void)snprintf(ret_name, JOB_NAME_MAX + 1, "%s", name);
}

static bool say_names(const struct claimd_plugin *plugin, int out)
{
    struct plugin_names names = {0};
    copy_name(names.plugin, plugin->name);
    for (size_t i = 0; i < CLAIMD_KINDS_MAX && plugin->kinds[i].name != NULL; i++) {
        copy_name(names.kinds[i], plugin->kinds[i].name);
    }
    return say(out, &names, sizeof names);
}

static enum status try_out(int fd, const struct claimd_host *host, int out, struct err *err)
{
    struct claimd_plugin plugin;
    enum status st = plugin_file_load(fd, &plugin, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!say_names(&plugin, out)) {
        return err_fail(err, STATUS_INTERNAL, "cannot send its names");
    }
    int rc = plugin.init == NULL ? 0 : plugin.init(host);
    if (rc != 0) {
        return err_fail(err, STATUS_INVALID, "init returned %d, expected 0", rc);
    }
    if (plugin.fini != NULL) {
        plugin.fini();
    }
    return STATUS_OK;
}

static _Noreturn void run_child(int fd, const struct claimd_host *host, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Keeps constructors from writing to the worker. */
    (void)close_range(RUNNER_FD_FRAMES, RUNNER_FD_LAST, 0);
    struct err err = {0};
    enum status st = try_out(fd, host, out, &err);
    char message[1 + ERR_TEXT_MAX];
    int len = snprintf(message, sizeof message, "%c%s", st == STATUS_OK ? SAYS_OK : SAYS_NO,
                       st == STATUS_OK ? "" : err.msg);
    _exit(len > 0 && say(out, message, (size_t)len) ? 0 : 1);
}

/* ---- in the parent ---- */

static enum status start(struct plugin_trial *t, const struct claimd_host *host, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    autoclose int out = ends[1];
    pid_t child = fork();
    if (child < 0) {
        (void)close(ends[0]);
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork");
    }
    if (child == 0) {
        run_child(t->fd, host, out);
    }
    t->pid = child;
    t->pidfd = pidfd_open(child, 0);
    t->in = ends[0];
    t->deadline_us = clock_boot_us() + (t->pidfd < 0 ? 0 : PROBE_TIMEOUT_US);
    t->is_running = true;
    return STATUS_OK;
}

static void take_names(struct plugin_trial *t, const char *said)
{
    memcpy(&t->names, said, sizeof t->names);
    t->names.plugin[JOB_NAME_MAX] = '\0';
    for (size_t i = 0; i < CLAIMD_KINDS_MAX; i++) {
        t->names.kinds[i][JOB_NAME_MAX] = '\0';
    }
    t->has_names = true;
}

static enum status judge(struct plugin_trial *t, int wait_status, struct err *err)
{
    char said[SAYING_MAX + 1] = "";
    ssize_t n = read(t->in, said, SAYING_MAX);
    size_t at = 0;
    if (n >= (ssize_t)sizeof t->names) {
        take_names(t, said);
        at = sizeof t->names;
    }
    if (WIFSIGNALED(wait_status)) {
        const char *name = sigabbrev_np(WTERMSIG(wait_status));
        return err_fail(err, STATUS_INVALID, "crashed while loading: SIG%s",
                        name == NULL ? "?" : name);
    }
    if (n <= (ssize_t)at || (said[at] != SAYS_OK && said[at] != SAYS_NO)) {
        return err_fail(err, STATUS_INVALID, "ended its process while loading, exit status %d",
                        WEXITSTATUS(wait_status));
    }
    if (said[at] == SAYS_NO) {
        return err_fail(err, STATUS_INVALID, "%s", said + at + 1);
    }
    return STATUS_OK;
}

static void finish(struct plugin_trial *t, bool is_late)
{
    int wait_status = 0;
    if (is_late) {
        (void)kill(t->pid, SIGKILL);
    }
    while (waitpid(t->pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    t->status = judge(t, wait_status, &t->why);
    if (is_late) {
        t->why = (struct err){0};
        t->status = err_fail(&t->why, STATUS_INVALID, "not loaded after %d s",
                             (int)(PROBE_TIMEOUT_US / US_PER_S));
    }
    close_slot(&t->pidfd);
    close_slot(&t->in);
    t->is_running = false;
}

/* Waits until one of them has ended, or for the first deadline. Returns how many are over. */
static size_t finish_some(struct plugin_trial *trials, size_t count)
{
    struct pollfd polled[RUNNING_MAX];
    struct plugin_trial *running[RUNNING_MAX];
    size_t n = 0;
    int64_t now_us = clock_boot_us();
    int64_t wait_us = PROBE_TIMEOUT_US;
    for (size_t i = 0; i < count; i++) {
        if (trials[i].is_running) {
            int64_t left_us = trials[i].deadline_us - now_us;
            wait_us = left_us < wait_us ? left_us : wait_us;
            polled[n] = (struct pollfd){.fd = trials[i].pidfd, .events = POLLIN};
            running[n++] = &trials[i];
        }
    }
    int wait_ms = wait_us <= 0 ? 0 : (int)(wait_us / US_PER_MS) + 1;
    if (poll(polled, n, wait_ms) < 0) {
        return 0; /* EINTR; if poll() keeps failing, the deadlines end the trials */
    }
    size_t over = 0;
    now_us = clock_boot_us();
    for (size_t i = 0; i < n; i++) {
        bool has_ended = polled[i].revents != 0;
        if (has_ended || now_us >= running[i]->deadline_us) {
            finish(running[i], !has_ended);
            over++;
        }
    }
    return over;
}

void plugin_probe_all(struct plugin_trial *trials, size_t count, const struct claimd_host *host,
                      struct runner_page *page)
{
    size_t started = 0;
    size_t running = 0;
    while (started < count || running > 0) {
        while (started < count && running < RUNNING_MAX) {
            struct plugin_trial *t = &trials[started++];
            t->status = start(t, host, &t->why);
            running += t->is_running ? 1U : 0U;
        }
        size_t over = running > 0 ? finish_some(trials, started) : 0;
        running -= over;
        if (page != NULL && over > 0) {
            atomic_fetch_add(&page->loaded, (int32_t)over);
        }
    }
}
