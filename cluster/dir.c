/* SPDX-License-Identifier: Apache-2.0
 *
 * The directories in which private servers live. */
#include "cluster/child.h"
#include "cluster/servers.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

/* A socket's path has 107 bytes; what the servers add to the directory needs about 40 of them. */
#define PARENT_MAX 60
#define OPEN_DIRS_MAX 16

enum status dir_make(char *ret_dir, size_t size, struct err *err)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] != '/' || strlen(parent) > PARENT_MAX) {
        parent = "/tmp";
    }
    int n = snprintf(ret_dir, size, "%s/claimd-XXXXXX", parent);
    if (n < 0 || (size_t)n >= size) {
        return err_fail(err, STATUS_LIMIT, "make a directory: its path is too long");
    }
    if (mkdtemp(ret_dir) == NULL || chmod(ret_dir, 0755) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", ret_dir);
    }
    return child_programs_stay_root() ? STATUS_OK : child_user_owns(ret_dir, err);
}

enum status dir_ensure(const char *dir, mode_t mode, struct err *err)
{
    if (mkdir(dir, mode) != 0 && errno != EEXIST) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", dir);
    }
    return child_user_owns(dir, err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    (void)remove(path); /* a dying server may still be at it: the caller's loop comes again */
    return 0;
}

static bool is_removed(const char *dir)
{
    (void)nftw(dir, remove_one, OPEN_DIRS_MAX, FTW_DEPTH | FTW_PHYS);
    return access(dir, F_OK) != 0;
}

void dir_remove(const char *dir)
{
    if (dir[0] == '\0') {
        return;
    }
    (void)WAIT_UNTIL(is_removed(dir), 2000000);
}

bool dir_is_ours(const char *dir)
{
    struct stat info;
    return lstat(dir, &info) == 0 && S_ISDIR(info.st_mode) && child_user_is(info.st_uid);
}
