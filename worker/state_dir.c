/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/state_dir.h"

#include "config/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FILE_PATH_MAX (CONFIG_PATH_MAX + 32)

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

enum status state_dir_open(const char *dir, int *ret_lock_fd, char ret_predecessor[WORKER_ID_SIZE],
                           struct err *err)
{
    char path[FILE_PATH_MAX];
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_fail_sys(err, STATUS_INVALID, errno, "worker.state_dir %s", dir);
    }
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "worker.state_dir: %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return err_fail(err, STATUS_CONFLICT,
                        "worker.state_dir %s: another worker lives in it; give each its own", dir);
    }
    read_predecessor(dir, ret_predecessor);
    *ret_lock_fd = take_fd(&fd);
    return STATUS_OK;
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
