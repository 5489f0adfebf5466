/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/args_file.h"

#include "model/job.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)
#define BYTES_MAX (JOB_ARGS_MAX + 4096) /* includes trailing spaces, which do not count */

/* Reads up to one piece more than is allowed. */
static enum status read_all(int fd, struct buf *room, struct err *err)
{
    while (room->len <= BYTES_MAX) {
        enum status st = buf_reserve(room, READ_BYTES, err);
        if (st != STATUS_OK) {
            return st;
        }
        ssize_t n = read(fd, buf_at(room) + room->len, READ_BYTES);
        if (n < 0 && errno != EINTR) {
            return err_fail_sys(err, STATUS_INVALID, errno, "cannot read");
        }
        if (n == 0) {
            return STATUS_OK;
        }
        buf_grew(room, n > 0 ? (size_t)n : 0);
    }
    return err_fail(err, STATUS_INVALID, "longer than %zu bytes", JOB_ARGS_MAX);
}

/* Removes the newline with which editors end a file, since it does not belong to the args. */
static enum status finish(struct buf *room, struct err *err)
{
    if (room->len == 0) {
        return err_fail(err, STATUS_INVALID, "is empty; allowed: one JSON value");
    }
    char *text = buf_at(room);
    if (memchr(text, '\0', room->len) != NULL) {
        return err_fail(err, STATUS_INVALID, "not JSON: it contains a NUL byte");
    }
    while (room->len > 0 && strchr(" \t\r\n", text[room->len - 1]) != NULL) {
        text[--room->len] = '\0';
    }
    return STATUS_OK;
}

enum status args_file_read(const char *option, const char *given, struct buf *room,
                           const char **ret_json, struct err *err)
{
    if (given == NULL || given[0] != '@') {
        *ret_json = given;
        return STATUS_OK;
    }
    const char *path = given + 1;
    bool is_stdin = strcmp(path, "-") == 0;
    buf_init(room, BYTES_MAX + 2 * READ_BYTES);
    autoclose int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "--%s: cannot read '%s'", option, path);
    }
    enum status st = read_all(fd, room, err);
    if (st == STATUS_OK) {
        st = finish(room, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "--%s: %s", option, is_stdin ? "standard input" : path);
        return st;
    }
    *ret_json = buf_at(room);
    return STATUS_OK;
}
