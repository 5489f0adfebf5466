/* SPDX-License-Identifier: Apache-2.0
 *
 * The claimd-web of a private cluster: its port, and the token of its operator. */
#include "base/rand.h"
#include "cluster/child.h"
#include "ctl/commands/dev/dev.h"
#include "ctl/core/ctl.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#define USUAL_PORT 8420
#define TOKEN_BYTES 24

/* Returns a port that is free now; 0 = none. */
static int find_port(int wanted)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)wanted),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)(const void *)&address, len) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&address, &len) != 0) {
        return 0;
    }
    return ntohs(address.sin_port);
}

static enum status make_token(char ret[DEV_TOKEN_SIZE], struct err *err)
{
    unsigned char bytes[TOKEN_BYTES];
    enum status st = rand_bytes(bytes, sizeof bytes, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < TOKEN_BYTES; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
    return STATUS_OK;
}

static enum status write_token(const char *path, const char *token, struct err *err)
{
    char line[DEV_TOKEN_SIZE + 32];
    int len = snprintf(line, sizeof line, "operator dev %s\n", token);
    (void)unlink(path); /* of an earlier run */
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || write(fd, line, (size_t)len) != len) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot write '%s'", path);
    }
    return child_user_owns(path, err);
}

/* Only the usual folder gets the usual port, so that clusters that start at the same time do not
 * find the same one free. */
enum status dev_prepare_web(struct dev_cluster *d, bool is_usual, struct err *err)
{
    char program[SERVER_PATH_MAX];
    char path[DEV_DIR_MAX + 16];
    enum status st = ctl_program_path("claimd-web", program, sizeof program, err);
    if (st != STATUS_OK || access(program, X_OK) != 0) {
        return st; /* it is a package of its own */
    }
    int port = is_usual ? find_port(USUAL_PORT) : 0;
    port = port != 0 ? port : find_port(0);
    if (port == 0) {
        return err_fail(err, STATUS_INVALID, "no port is free for claimd-web");
    }
    st = make_token(d->web_token, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(path, sizeof path, "%s/tokens", d->dir);
    st = write_token(path, d->web_token, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(d->web_listen, sizeof d->web_listen, "127.0.0.1:%d", port);
    return STATUS_OK;
}
