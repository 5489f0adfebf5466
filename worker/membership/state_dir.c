/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/state_dir.h"

#include "config/config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_PATH_MAX (CONFIG_PATH_MAX + 32)
#define TRIES 3

static bool is_uuid(const char *text)
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        bool is_hex = text[i] != '\0' && strchr("0123456789abcdef", text[i]) != NULL;
        if (shape[i] == 'x' ? !is_hex : text[i] != shape[i]) {
            return false;
        }
    }
    return true;
}

static void read_predecessor(const char *dir, char ret_id[WORKER_ID_SIZE])
{
    char path[FILE_PATH_MAX];
    char text[WORKER_ID_SIZE] = "";
    (void)snprintf(path, sizeof path, "%s/worker_id", dir);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    ret_id[0] = '\0';
    if (n == WORKER_ID_SIZE - 1 && is_uuid(text)) {
        memcpy(ret_id, text, WORKER_ID_SIZE);
    }
}

static int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* ---- the lock ---- */

/* True if the path still names the locked file. A worker that prunes the folder holds this lock
 * too. */
static bool is_there(int fd, const char *path)
{
    struct stat ours;
    struct stat now;
    return fstat(fd, &ours) == 0 && stat(path, &now) == 0 && ours.st_dev == now.st_dev &&
           ours.st_ino == now.st_ino;
}

/* NOT_FOUND: the folder was removed in between. */
static enum status lock_take(const char *dir, int *ret_fd, struct err *err)
{
    char path[FILE_PATH_MAX];
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_fail_sys(err, STATUS_INVALID, errno, "worker.state_dir %s", dir);
    }
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT) {
        return STATUS_NOT_FOUND;
    }
    if (fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "worker.state_dir: %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return err_fail(err, STATUS_CONFLICT,
                        "worker.state_dir %s: another worker uses it; give each worker its own",
                        dir);
    }
    if (!is_there(fd, path)) {
        return STATUS_NOT_FOUND;
    }
    *ret_fd = take_fd(&fd);
    return STATUS_OK;
}

enum status state_dir_open(const char *dir, int *ret_lock_fd, char ret_predecessor[WORKER_ID_SIZE],
                           struct err *err)
{
    enum status st = STATUS_NOT_FOUND;
    for (int i = 0; i < TRIES && st == STATUS_NOT_FOUND; i++) {
        st = lock_take(dir, ret_lock_fd, err);
    }
    if (st == STATUS_NOT_FOUND) {
        return err_fail(err, STATUS_INVALID, "worker.state_dir %s: it keeps being removed", dir);
    }
    if (st != STATUS_OK) {
        return st;
    }
    read_predecessor(dir, ret_predecessor);
    return STATUS_OK;
}

/* ---- abandoned folders ---- */

static const char *const our_files[] = {"lock", "worker_id", "worker_id.new"};

static bool is_ours(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(our_files); i++) {
        if (strcmp(name, our_files[i]) == 0) {
            return true;
        }
    }
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* True if the folder has no files except those that a worker writes. */
static bool has_ours_alone(int folder)
{
    int copy = dup(folder);
    DIR *files = copy < 0 ? NULL : fdopendir(copy);
    if (files == NULL) {
        if (copy >= 0) {
            (void)close(copy);
        }
        return false;
    }
    bool is_all = true;
    for (const struct dirent *e = readdir(files); e != NULL; e = readdir(files)) {
        is_all = is_all && is_ours(e->d_name);
    }
    (void)closedir(files);
    return is_all;
}

static bool is_old(int folder, time_t now)
{
    struct stat id;
    return fstatat(folder, "worker_id", &id, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(id.st_mode) &&
           id.st_uid == geteuid() && now - id.st_mtime >= STATE_DIR_KEPT_S;
}

/* Removes the folder under its lock. The lock file goes last: a worker that opened it then finds
 * that the path names another file or none. */
static bool remove_left(int parent, const char *name, time_t now)
{
    autoclose int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || !is_old(folder, now) || !has_ours_alone(folder)) {
        return false;
    }
    autoclose int lock = openat(folder, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0 || !is_old(folder, now)) {
        return false;
    }
    (void)unlinkat(folder, "worker_id.new", 0);
    return unlinkat(folder, "worker_id", 0) == 0 && unlinkat(folder, "lock", 0) == 0 &&
           unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

size_t state_dir_prune(const char *dir)
{
    char parent[FILE_PATH_MAX];
    (void)snprintf(parent, sizeof parent, "%s/..", dir);
    size_t count = 0;
    time_t now = time(NULL);
    DIR *folders = opendir(parent);
    if (folders == NULL) {
        return 0;
    }
    for (const struct dirent *e = readdir(folders); e != NULL; e = readdir(folders)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            count += remove_left(dirfd(folders), e->d_name, now) ? 1U : 0U;
        }
    }
    (void)closedir(folders);
    return count;
}

void state_dir_write(const char *dir, const char *worker_id)
{
    char path[FILE_PATH_MAX];
    char temporary[FILE_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/worker_id", dir);
    (void)snprintf(temporary, sizeof temporary, "%s/worker_id.new", dir);
    autoclose int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t len = strlen(worker_id);
    if (fd >= 0 && write(fd, worker_id, len) == (ssize_t)len) {
        (void)rename(temporary, path);
    }
}
