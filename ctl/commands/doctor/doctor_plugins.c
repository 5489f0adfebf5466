/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl doctor: the plugins of this host, as claimd-runner --list reports them. */
#include "base/buf.h"
#include "base/clock.h"
#include "ctl/commands/doctor/doctor.h"
#include "ctl/core/ctl.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#define LIST_TIMEOUT_US (10 * US_PER_S)
#define LIST_BYTES_MAX ((size_t)1 << 20)
#define CHUNK 4096

/* Reads until the end of the output or the deadline: plugins run their own code when they are
 * loaded, and may hang. */
static enum status read_all(int fd, struct buf *out, struct err *err)
{
    int64_t end_us = clock_boot_us() + LIST_TIMEOUT_US;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left_us = end_us - clock_boot_us();
        int n = left_us > 0 ? poll(&p, 1, (int)(left_us / US_PER_MS) + 1) : 0;
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_fail(err, STATUS_TIMEOUT, "did not end within 10 s");
        }
        enum status st = buf_reserve(out, CHUNK, err);
        if (st != STATUS_OK) {
            return st;
        }
        ssize_t got = read(fd, buf_at(out) + out->len, CHUNK);
        if (got <= 0) {
            return STATUS_OK;
        }
        buf_grew(out, (size_t)got);
    }
}

static enum status run_list(const char *runner, const struct config *config, struct buf *out,
                            struct err *err)
{
    char owners[CONFIG_UIDS_SIZE];
    enum status st = config_plugin_owners(config, owners, err);
    if (st != STATUS_OK) {
        return st;
    }
    int ends[2];
    pid_t pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    autoclose int read_fd = ends[0];
    autofree char *program = strdup(runner);
    autofree char *folder = strdup(config->worker.plugin_dir);
    char list[] = "--list";
    char option[] = "--plugins";
    char owners_option[] = "--owners";
    char handlers_option[] = "--handlers";
    autofree char *handlers = strdup(config->worker.handlers);
    char *const argv[] = {program,         list,     option, folder, owners_option, owners,
                          handlers_option, handlers, NULL};
    posix_spawn_file_actions_t actions;
    int rc = program == NULL || folder == NULL || handlers == NULL
                 ? ENOMEM
                 : posix_spawn_file_actions_init(&actions);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        rc = rc == 0 ? posix_spawn(&pid, program, &actions, NULL, argv, environ) : rc;
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(ends[1]);
    if (rc != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, rc, "cannot run '%s'", runner);
    }
    int status = 0;
    st = read_all(read_fd, out, err);
    if (st != STATUS_OK) {
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (st == STATUS_OK && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        st = err_fail(err, STATUS_INTERNAL, "'%s --list' failed", runner);
    }
    return st;
}

static void say_kinds(struct report *r, const struct config *config, const json_t *root)
{
    char names[512] = "";
    size_t at = 0;
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(root, "kinds"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        int n = name == NULL || at >= sizeof names
                    ? 0
                    : snprintf(names + at, sizeof names - at, "%s%s", at > 0 ? ", " : "", name);
        at += n > 0 ? (size_t)n : 0;
    }
    report_say(r, at > 0 ? HEALTH_OK : HEALTH_WARN, "plugins",
               "put plugins there: NAME.so, with a trusted owner", "%s: %s",
               config->worker.plugin_dir, at > 0 ? names : "serves nothing");
    json_array_foreach(json_object_get(root, "refused"), i, item)
    {
        const char *file = json_string_value(json_object_get(item, "file"));
        const char *reason = json_string_value(json_object_get(item, "reason"));
        report_say(r, HEALTH_FAIL, "plugins", "fix or remove the file; workers run without it",
                   "%s is not served: %s", file != NULL ? file : "?",
                   reason != NULL ? reason : "?");
    }
}

/* False in images and packages that contain only claimctl. */
static bool has_worker(void)
{
    char path[CONFIG_PATH_MAX];
    return ctl_program_path("claimd-worker", path, sizeof path, NULL) != STATUS_OK ||
           access(path, F_OK) == 0;
}

void doctor_plugins(struct report *r, const struct config *config)
{
    char path[CONFIG_PATH_MAX];
    struct err err = {0};
    autobuf struct buf out = BUF_INIT(LIST_BYTES_MAX);
    enum status st = STATUS_OK;
    if (access(config->worker.plugin_dir, F_OK) != 0) {
        if (!has_worker()) {
            report_say(r, HEALTH_OK, "plugins", "", "no worker is installed on this host");
            return;
        }
        report_say(r, HEALTH_WARN, "plugins",
                   "set worker.plugin_dir, or run doctor on a worker's host",
                   "%s: not on this host", config->worker.plugin_dir);
        return;
    }
    if (config->worker.runner[0] != '\0') {
        (void)snprintf(path, sizeof path, "%s", config->worker.runner);
    } else {
        st = ctl_program_path("claimd-runner", path, sizeof path, &err);
    }
    if (st == STATUS_OK) {
        st = run_list(path, config, &out, &err);
    }
    json_auto_t *root = st == STATUS_OK ? json_loadb(buf_at(&out), out.len, 0, NULL) : NULL;
    if (st == STATUS_OK && root == NULL) {
        st = err_fail(&err, STATUS_INTERNAL, "'%s --list' printed no JSON", path);
    }
    if (st != STATUS_OK) {
        report_say(
            r, HEALTH_FAIL, "plugins",
            "check worker.runner and worker.plugin_dir: workers on this host fail the same way",
            "%s", err.msg);
        return;
    }
    say_kinds(r, config, root);
}
