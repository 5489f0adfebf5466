/* SPDX-License-Identifier: Apache-2.0
 *
 * The child of a fork has copies of the client's descriptors and of its memory, in the state in
 * which another thread may have been changing it (lock.F1). So this code follows no pointer of
 * libuv's: it asks the kernel which sockets the loop polls. The epoll instance is shared with the
 * parent; the child never modifies it, and closes its own descriptor of it. */
#include "redlock/client/client.h"
#include "redlock/core/core.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define TEXT_MAX ((size_t)16 << 10)

/* Parses a line like "tfd: 7 events: 19 data: … pos:0 ino:1f2e sdev:8", one per descriptor. The
 * number is the parent's current one, so close it only if it names the same socket here. */
static void close_if_same(const char *line)
{
    int fd = -1;
    unsigned long inode = 0;
    struct stat st;
    const char *ino = strstr(line, "ino:");
    if (sscanf(line, "tfd: %d", &fd) == 1 && ino != NULL && sscanf(ino, "ino:%lx", &inode) == 1 &&
        fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == inode) {
        (void)close(fd);
    }
}

static void close_sockets(int epoll_fd)
{
    char path[64];
    char text[TEXT_MAX];
    size_t len = 0;
    ssize_t r = 0;
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll_fd);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && len < sizeof text - 1 &&
           (r = read(fd, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)r;
    }
    text[len] = '\0';
    for (const char *line = strstr(text, "tfd:"); line != NULL; line = strstr(line + 1, "tfd:")) {
        close_if_same(line);
    }
}

void fork_close_descriptors(struct redlock_client *c)
{
    int epoll_fd = uv_backend_fd(&c->loop);
    close_sockets(epoll_fd);
    (void)close(epoll_fd);
    (void)close(c->loop.async_io_watcher.fd); /* the bell's descriptor */
    if (c->core != NULL) {
        (void)close(c->core->timer_fd);
    }
}
