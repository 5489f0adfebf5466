/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl dev` as root: servers, daemons and handlers run as the servers' user. Programs and
 * plugins that this user cannot read, as in a checkout below /root, are copied into the cluster's
 * folder. */
#include "ctl/commands/dev/dev.h"
#include "ctl/core/ctl.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define COPY_BYTES 65536

static enum status copy_file(const char *from, int folder, const char *name, mode_t mode,
                             struct err *err)
{
    char bytes[COPY_BYTES];
    (void)unlinkat(folder, name, 0); /* left by an earlier run */
    autoclose int in = open(from, O_RDONLY | O_CLOEXEC);
    autoclose int out = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (in < 0 || out < 0 || fchmod(out, mode) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot copy %s", from);
    }
    for (;;) {
        ssize_t got = read(in, bytes, sizeof bytes);
        if (got == 0) {
            return STATUS_OK;
        }
        if (got < 0 || write(out, bytes, (size_t)got) != got) {
            return err_fail_sys(err, STATUS_INVALID, errno, "cannot copy %s", from);
        }
    }
}

/* Opens a folder of root's and holds it by its descriptor: the folder around it belongs to another
 * user, who could put a link in its place. The caller closes *ret_fd, whatever the status. */
static enum status open_folder(const char *path, int *ret_fd, struct err *err)
{
    struct stat info;
    (void)mkdir(path, 0755);
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot make '%s'", path);
    }
    if (fstat(*ret_fd, &info) != 0 || info.st_uid != geteuid() || fchmod(*ret_fd, 0755) != 0) {
        return err_fail(err, STATUS_INVALID, "'%s' is not a folder of root's", path);
    }
    return STATUS_OK;
}

static enum status copy_programs(struct dev_cluster *d, struct err *err)
{
    static const char *const names[] = {"claimd-scheduler", "claimd-worker", "claimd-runner",
                                        "claimd-web"};
    char bin[sizeof d->bin];
    (void)snprintf(bin, sizeof bin, "%s/bin", d->dir);
    autoclose int folder = -1;
    enum status st = open_folder(bin, &folder, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char from[SERVER_PATH_MAX];
        st = ctl_program_path(names[i], from, sizeof from, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (access(from, F_OK) != 0 && strcmp(names[i], "claimd-web") == 0) {
            continue; /* it is a package of its own */
        }
        st = copy_file(from, folder, names[i], 0755, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    (void)snprintf(d->bin, sizeof d->bin, "%s", bin);
    return STATUS_OK;
}

static bool is_plugin(const char *name)
{
    size_t len = strlen(name);
    return len > 3 && strcmp(name + len - 3, ".so") == 0;
}

static enum status copy_plugins(struct dev_cluster *d, struct err *err)
{
    char own[DEV_DIR_MAX + 16];
    (void)snprintf(own, sizeof own, "%s/plugins", d->dir);
    autoclose int folder = -1;
    enum status st = open_folder(own, &folder, err);
    DIR *dir = st == STATUS_OK ? opendir(d->plugins) : NULL;
    for (struct dirent *e = NULL; st == STATUS_OK && dir != NULL && (e = readdir(dir)) != NULL;) {
        char from[CONFIG_PATH_MAX + 260];
        (void)snprintf(from, sizeof from, "%s/%s", d->plugins, e->d_name);
        st = is_plugin(e->d_name) ? copy_file(from, folder, e->d_name, 0644, err) : STATUS_OK;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(d->plugins, sizeof d->plugins, "%s", own);
    return STATUS_OK;
}

enum status dev_lower(struct dev_cluster *d, struct err *err)
{
    char worker[SERVER_PATH_MAX];
    if (!program_user_reaches(d->dir)) {
        return err_fail(err, STATUS_INVALID,
                        "'%s' can't be reached by the unprivileged user that root's clusters run "
                        "as: choose another folder with --dir",
                        d->dir);
    }
    if (d->handlers[0] != '\0' && !program_user_reaches(d->handlers)) {
        return err_fail(err, STATUS_INVALID,
                        "--handlers: '%s' can't be reached by the unprivileged user that root's "
                        "clusters run as: it must be below folders that all may enter",
                        d->handlers);
    }
    enum status st = ctl_program_path("claimd-worker", worker, sizeof worker, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!program_user_reaches(worker)) {
        st = copy_programs(d, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (!program_user_reaches(d->plugins)) {
        return copy_plugins(d, err);
    }
    return STATUS_OK;
}
