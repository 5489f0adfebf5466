/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a listening TCP socket. */
#include "daemon/http.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#define BACKLOG 64

static int try_address(const struct addrinfo *a)
{
    int on = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    /* A restart must not wait for old connections in TIME_WAIT. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    close_slot(&fd); /* keeps errno */
    return -1;
}

static void address_text(int fd, char ret_text[LISTENER_TEXT_MAX])
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof address;
    char host[64];
    char port[8];
    (void)snprintf(ret_text, LISTENER_TEXT_MAX, "?");
    if (getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
        getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        bool is_v6 = address.ss_family == AF_INET6;
        (void)snprintf(ret_text, LISTENER_TEXT_MAX, "%s%s%s:%s", is_v6 ? "[" : "", host,
                       is_v6 ? "]" : "", port);
    }
}

enum status listener_open(const struct config_listen *where, int *ret_fd,
                          char ret_text[LISTENER_TEXT_MAX], struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int failed = getaddrinfo(where->host, where->port, &hints, &list);
    if (failed != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "%.80s: %s", where->host, gai_strerror(failed));
    }
    *ret_fd = -1;
    for (const struct addrinfo *a = list; a != NULL && *ret_fd < 0; a = a->ai_next) {
        *ret_fd = try_address(a);
    }
    int sys = errno;
    freeaddrinfo(list);
    if (*ret_fd < 0 && sys == EADDRINUSE) {
        return err_fail(err, STATUS_UNAVAILABLE,
                        "port %s of %.80s is in use; give another one, 0 for any free one, or "
                        "\"\" for none",
                        where->port, where->host);
    }
    if (*ret_fd < 0 && sys == EADDRNOTAVAIL) {
        return err_fail(err, STATUS_UNAVAILABLE,
                        "%.80s is not an address of this host; 0.0.0.0 means all of its addresses",
                        where->host);
    }
    if (*ret_fd < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, sys, "can't listen on port %s of %.80s",
                            where->port, where->host);
    }
    address_text(*ret_fd, ret_text);
    return STATUS_OK;
}
