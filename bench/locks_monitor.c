/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts a node's commands by MONITOR. Its lines look like +1339518083.107412 [0 127.0.0.1:60866]
 * "evalsha" …, with [0 lua] for commands run by a script. */
#include "bench/locks_contest.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CHUNK 65536

enum status contest_monitor_open(struct contest_monitor *m, const char *path, struct err *err)
{
    static const char command[] = "MONITOR\r\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *m = (struct contest_monitor){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (m->fd < 0 || strlen(path) >= sizeof address.sun_path) {
        return err_fail(err, STATUS_UNAVAILABLE, "no socket to %s", path);
    }
    memcpy(address.sun_path, path, strlen(path));
    if (connect(m->fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        write(m->fd, command, sizeof command - 1) != sizeof command - 1 ||
        fcntl(m->fd, F_SETFL, O_NONBLOCK) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "monitor %s", path);
    }
    return STATUS_OK;
}

static void end_line(struct contest_monitor *m)
{
    m->head[m->head_len] = '\0';
    m->commands += strchr(m->head, '[') != NULL && strstr(m->head, " lua]") == NULL;
    m->head_len = 0;
}

void contest_monitor_read(struct contest_monitor *m)
{
    static char chunk[CHUNK];
    ssize_t n = 0;
    while (m->fd >= 0 && (n = read(m->fd, chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (chunk[i] == '\n') {
                end_line(m);
            } else if (m->head_len < sizeof m->head - 1) {
                m->head[m->head_len++] = chunk[i];
            }
        }
    }
}

void contest_monitor_close(struct contest_monitor *m)
{
    if (m->fd >= 0) {
        (void)close(m->fd);
    }
    m->fd = -1;
}
