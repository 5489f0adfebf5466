/* SPDX-License-Identifier: Apache-2.0
 *
 * TCP ports for servers of tests. */
#include "cluster/servers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

int port_free(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof addr) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        return 0;
    }
    memcpy(&addr, &bound, sizeof addr);
    return ntohs(addr.sin_port);
}
