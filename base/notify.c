/* SPDX-License-Identifier: Apache-2.0 */
#include "base/notify.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static void say(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path == NULL ? 0 : strlen(path);
    if (len == 0 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') {
        to.sun_path[0] = '\0'; /* the abstract namespace */
    }
    autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        (void)sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
                     size);
    }
}

void notify_ready(void)
{
    say("READY=1");
}

void notify_stopping(void)
{
    say("STOPPING=1");
}

void notify_reloading(void)
{
    char text[64];
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* compared with the time of systemd's SIGHUP */
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)(now.tv_sec * US_PER_S + now.tv_nsec / 1000));
    say(text);
}

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    int64_t number = 0;
    if (text == NULL || parse_i64(text, strlen(text), 1, INT64_MAX, &number, NULL) != STATUS_OK) {
        return 0;
    }
    return number;
}

int64_t notify_watchdog_us(void)
{
    int64_t pid = number_of("WATCHDOG_PID"); /* if set, the watchdog is for that process only */
    return pid == 0 || pid == getpid() ? number_of("WATCHDOG_USEC") : 0;
}

void notify_watchdog(void)
{
    say("WATCHDOG=1");
}
