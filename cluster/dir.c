/* SPDX-License-Identifier: Apache-2.0
 *
 * The directories in which private servers live. Each holds a file that its run keeps locked. The
 * kernel releases the lock when the last process of the run ends, so a directory whose lock is free
 * belongs to a run that was killed, and the next run removes it. */
#include "cluster/child.h"
#include "cluster/servers.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

/* The path of a socket has at most 107 bytes, of which the servers need about 40 beyond the
 * directory. */
#define PARENT_MAX 60
#define DEPTH_MAX 32
#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define REMOVE_US 2000000
#define PREFIX "claimd-" /* six letters and digits follow */
#define RANDOM "XXXXXX"
#define LOCK "run.lock"
#define KEPT "run.kept" /* the new name of the lock of a kept directory, which no run removes */

/* Memory that one directory is assumed to need, and the limit for all of them together. */
#define MEMORY_EACH ((uint64_t)256 << 20)
#define MEMORY_ALL ((uint64_t)2 << 30)

/* ---- removing ---- */

/* Works on descriptors, and never follows a link: the owner of the directory may be another user,
 * who could replace a folder with a link while root empties it. Keeps the entry `but`, unless it is
 * NULL. */
static void empty(int fd, const char *but, int depth)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (dir == NULL) {
        if (copy >= 0) {
            (void)close(copy);
        }
        return;
    }
    rewinddir(dir);
    for (const struct dirent *e = NULL; (e = readdir(dir)) != NULL;) {
        const char *name = e->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            (but != NULL && strcmp(name, but) == 0) || unlinkat(fd, name, 0) == 0) {
            continue;
        }
        autoclose int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub >= 0 && depth > 0) {
            empty(sub, NULL, depth - 1);
        }
        (void)unlinkat(fd, name, AT_REMOVEDIR);
    }
    (void)closedir(dir);
}

/* Removes the lock last: if we are killed, the next run continues. */
static bool is_removed(const char *dir)
{
    autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        empty(fd, LOCK, DEPTH_MAX);
        empty(fd, NULL, DEPTH_MAX);
    }
    (void)rmdir(dir);
    return access(dir, F_OK) != 0;
}

void dir_remove(const char *dir)
{
    if (dir[0] == '\0') {
        return;
    }
    (void)WAIT_UNTIL(is_removed(dir), REMOVE_US); /* a dying server may still write to it */
}

bool dir_is_ours(const char *dir)
{
    struct stat info;
    return lstat(dir, &info) == 0 && S_ISDIR(info.st_mode) && child_user_is(info.st_uid);
}

/* ---- what killed runs have left ---- */

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* True if the process works below `dir`. Where root may not trace other users, as in a container,
 * it cannot read the working directory of another user's process. The command line is always
 * readable, and that of a PostgreSQL names its data directory. */
static bool works_below(const char *pid, const char *dir)
{
    char name[64];
    char text[PATH_SIZE * 4];
    (void)snprintf(name, sizeof name, "/proc/%.20s/cwd", pid);
    ssize_t n = readlink(name, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (is_below(text, dir)) {
        return true;
    }
    (void)snprintf(name, sizeof name, "/proc/%.20s/cmdline", pid);
    autoclose int fd = open(name, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    for (const char *word = text; word < text + n; word += strlen(word) + 1) {
        if (is_below(word, dir)) {
            return true;
        }
    }
    return false;
}

/* Continues stopped servers. If a server was stopped when its run was killed, the signal that ends
 * it is pending, but the server cannot handle it before it continues. */
static void wake_stopped(const char *dir)
{
    DIR *all = opendir("/proc");
    for (const struct dirent *e = NULL; all != NULL && (e = readdir(all)) != NULL;) {
        if (isdigit((unsigned char)e->d_name[0]) && works_below(e->d_name, dir)) {
            (void)kill((pid_t)strtol(e->d_name, NULL, 10), SIGCONT);
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
}

static bool is_run_name(const char *name)
{
    size_t prefix = sizeof PREFIX - 1;
    if (strncmp(name, PREFIX, prefix) != 0 || strlen(name) != prefix + sizeof RANDOM - 1) {
        return false;
    }
    for (const char *at = name + prefix; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at)) {
            return false;
        }
    }
    return true;
}

/* Returns whether the run of this directory lives. Removes the directory if the run is dead. A
 * directory without a lock is left alone: it is kept, or no run of ours made it. */
static bool sweep_one(const char *dir)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/" LOCK, dir);
    autoclose int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK;
    }
    wake_stopped(dir);
    dir_remove(dir);
    return false;
}

/* Sweeps the directories below `parent`; returns how many of their runs live. */
static size_t sweep(const char *parent)
{
    size_t living = 0;
    DIR *all = opendir(parent);
    for (const struct dirent *e = NULL; all != NULL && (e = readdir(all)) != NULL;) {
        char dir[SERVER_PATH_MAX];
        int n = snprintf(dir, sizeof dir, "%s/%s", parent, e->d_name);
        if (is_run_name(e->d_name) && n > 0 && (size_t)n < sizeof dir && dir_is_ours(dir)) {
            living += sweep_one(dir) ? 1 : 0;
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return living;
}

/* If TMPDIR is set, sweeps only that folder: the variable was set to keep this run apart from
 * others. */
void dir_sweep(void)
{
    static const char *const usual[] = {"/dev/shm", "/tmp", "/var/tmp"};
    const char *own = getenv("TMPDIR");
    const char *kept = getenv(DIR_KEPT_ENV);
    if (kept != NULL && kept[0] == '/') {
        (void)sweep(kept);
    }
    if (own != NULL && own[0] == '/') {
        (void)sweep(own);
        return;
    }
    for (size_t i = 0; i < ARRAY_COUNT(usual); i++) {
        (void)sweep(usual[i]);
    }
}

/* ---- making ---- */

static bool is_in_memory(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static bool is_usable(const char *parent)
{
    return parent != NULL && parent[0] == '/' && strlen(parent) <= PARENT_MAX;
}

/* ./dev test names a folder in memory. It is used only as long as it has room: a full tmpfs uses up
 * the memory of the machine. */
static bool has_room(const char *memory)
{
    struct statvfs fs;
    if (!is_usable(memory) || statvfs(memory, &fs) != 0) {
        return false;
    }
    uint64_t used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
    return used + MEMORY_EACH <= MEMORY_ALL && (sweep(memory) + 1) * MEMORY_EACH <= MEMORY_ALL;
}

static const char *usual_parent(void)
{
    const char *own = getenv("TMPDIR");
    return is_usable(own) ? own : "/tmp";
}

/* The lock file never exists unlocked, because another run would take the directory for that of a
 * dead run. The descriptor stays open until this process and its forks have ended. */
static enum status hold(const char *dir, struct err *err)
{
    char making[PATH_SIZE];
    char path[PATH_SIZE];
    (void)snprintf(making, sizeof making, "%s/" LOCK ".new", dir);
    (void)snprintf(path, sizeof path, "%s/" LOCK, dir);
    int fd = open(making, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || rename(making, path) != 0) {
        int sys = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return err_fail_sys(err, STATUS_UNAVAILABLE, sys, "lock %s", path);
    }
    return STATUS_OK;
}

static enum status make_in(const char *parent, char *ret_dir, size_t size, struct err *err)
{
    int n = snprintf(ret_dir, size, "%s/" PREFIX RANDOM, parent);
    if (n < 0 || (size_t)n >= size) {
        return err_fail(err, STATUS_LIMIT, "make a directory: its path is too long");
    }
    if (mkdtemp(ret_dir) == NULL || chmod(ret_dir, 0755) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", ret_dir);
    }
    enum status st = hold(ret_dir, err);
    if (st != STATUS_OK) {
        return st;
    }
    return child_programs_stay_root() ? STATUS_OK : child_user_owns(ret_dir, err);
}

enum status dir_make(char *ret_dir, size_t size, struct err *err)
{
    const char *memory = getenv(DIR_MEMORY_ENV);
    dir_sweep();
    return make_in(has_room(memory) ? memory : usual_parent(), ret_dir, size, err);
}

enum status dir_make_on_disk(char *ret_dir, size_t size, struct err *err)
{
    const char *kept = getenv(DIR_KEPT_ENV);
    const char *parent = usual_parent();
    dir_sweep();
    if (kept != NULL && kept[0] == '/') { /* of any length: ctest keeps no sockets there */
        return make_in(kept, ret_dir, size, err);
    }
    if (is_in_memory(parent)) {
        parent = "/var/tmp";
        (void)sweep(parent);
    }
    return make_in(parent, ret_dir, size, err);
}

enum status dir_ensure(const char *dir, mode_t mode, struct err *err)
{
    if (mkdir(dir, mode) != 0 && errno != EEXIST) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", dir);
    }
    return child_user_owns(dir, err);
}

void dir_keep(const char *dir)
{
    char path[PATH_SIZE];
    char kept[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/" LOCK, dir);
    (void)snprintf(kept, sizeof kept, "%s/" KEPT, dir);
    (void)rename(path, kept); /* the file is missing if the user named the folder */
}
