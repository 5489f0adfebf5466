/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/redis_line.h"

#include "base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define REQUEST_MAX 4096
#define REPLY_MAX 512

static int connect_to(const char *socket_path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof addr.sun_path) {
        return -1;
    }
    memcpy(addr.sun_path, socket_path, strlen(socket_path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static size_t write_request(char *request, size_t size, const char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    int len = snprintf(request, size, "*%zu\r\n", count);
    for (size_t i = 0; i < count && len > 0 && (size_t)len < size; i++) {
        int n = snprintf(request + len, size - (size_t)len, "$%zu\r\n%s\r\n", strlen(words[i]),
                         words[i]);
        len = n < 0 ? n : len + n;
    }
    return len > 0 && (size_t)len < size ? (size_t)len : 0;
}

/* Reads one line of the reply, without its end. */
static enum status read_line(int fd, int64_t end_us, char *line, size_t size, struct err *err)
{
    for (size_t len = 0; len + 1 < size;) {
        int64_t left_ms = (end_us - clock_boot_us() + US_PER_MS - 1) / US_PER_MS;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0) {
            return err_fail(err, STATUS_TIMEOUT, "Redis: no reply");
        }
        if (recv(fd, line + len, 1, 0) != 1) {
            return err_fail(err, STATUS_UNAVAILABLE, "Redis: the connection ended");
        }
        if (line[len] == '\n') {
            line[len > 0 ? len - 1 : 0] = '\0';
            return STATUS_OK;
        }
        len++;
    }
    return err_fail(err, STATUS_LIMIT, "Redis: a long line");
}

static enum status ask(int fd, int64_t end_us, const char *const *words, char *line, size_t size,
                       struct err *err)
{
    char request[REQUEST_MAX];
    size_t len = write_request(request, sizeof request, words);
    if (len == 0 || send(fd, request, len, MSG_NOSIGNAL) != (ssize_t)len) {
        return err_fail(err, STATUS_UNAVAILABLE, "Redis: send %s", words[0]);
    }
    enum status st = read_line(fd, end_us, line, size, err);
    if (st == STATUS_OK && line[0] == '-') {
        st = err_fail(err, STATUS_INVALID, "Redis: %s: %s", words[0], line + 1);
    }
    return st;
}

enum status redis_say(const char *socket_path, const char *password, int64_t timeout_us,
                      const char *const *words, char *ret_reply, size_t size, struct err *err)
{
    char line[REPLY_MAX];
    int64_t end_us = clock_boot_us() + timeout_us;
    autoclose int fd = connect_to(socket_path);
    if (fd < 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "Redis: connect to %s", socket_path);
    }
    if (password != NULL && password[0] != '\0') {
        const char *const auth[] = {"AUTH", password, NULL};
        enum status st = ask(fd, end_us, auth, line, sizeof line, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    enum status st = ask(fd, end_us, words, line, sizeof line, err);
    if (st == STATUS_OK && ret_reply != NULL) {
        (void)snprintf(ret_reply, size, "%s", line);
    }
    return st;
}
