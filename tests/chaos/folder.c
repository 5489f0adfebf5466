/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/folder.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)

void folder_at(const struct folder *f, const char *name, char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "%s/%s", f->path, name);
}

/* Programs that we start have other working directories. */
static enum status make_absolute(const char *wanted, char *ret, size_t size, struct err *err)
{
    char here[SERVER_PATH_MAX] = "";
    if (wanted[0] != '/' && getcwd(here, sizeof here) == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "where are we");
    }
    int n = snprintf(ret, size, "%s%s%s", here, here[0] != '\0' ? "/" : "", wanted);
    return n > 0 && (size_t)n < size ? STATUS_OK
                                     : err_fail(err, STATUS_LIMIT, "%s: too long", wanted);
}

static enum status make_top(const char *wanted, struct folder *f, struct err *err)
{
    if (wanted[0] == '\0') {
        return dir_make_on_disk(f->path, sizeof f->path, err);
    }
    enum status st = make_absolute(wanted, f->path, sizeof f->path, err);
    if (st != STATUS_OK) {
        return st;
    }
    return dir_ensure(f->path, 0755, err);
}

enum status folder_make(const char *wanted, struct folder *ret, struct err *err)
{
    static const char *const parts[] = {"history", "ledger", "logs"};
    struct folder f;
    enum status st = make_top(wanted, &f, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        char path[PATH_SIZE];
        folder_at(&f, parts[i], path, sizeof path);
        st = dir_ensure(path, 0755, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    *ret = f;
    return STATUS_OK;
}

enum status journal_open(const struct folder *f, const char *name, struct journal *ret,
                         struct err *err)
{
    char path[PATH_SIZE];
    folder_at(f, name, path, sizeof path);
    ret->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return ret->fd >= 0 ? STATUS_OK
                        : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}

void journal_close(struct journal *j)
{
    if (j->fd > 0) {
        (void)close(j->fd);
        j->fd = 0;
    }
}

void journal_write(struct journal *j, json_t *line)
{
    if (line != NULL && json_object_get(line, "t") == NULL) {
        (void)json_object_set_new(line, "t", json_integer(clock_boot_us() * NS_PER_US));
    }
    char *text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
    size_t len = text != NULL ? strlen(text) : 0;
    if (len > 0) {
        text[len] = '\n'; /* replaces its NUL */
        ssize_t written = write(j->fd, text, len + 1);
        (void)written;
    }
    free(text);
    json_decref(line);
}

enum status folder_read(const struct folder *f, const char *name, folder_line_fn *each, void *ctx,
                        struct err *err)
{
    char path[PATH_SIZE];
    char *line = NULL;
    size_t size = 0;
    int number = 0;
    enum status st = STATUS_OK;
    folder_at(f, name, path, sizeof path);
    FILE *file = fopen(path, "re");
    for (ssize_t n = 0; file != NULL && (n = getline(&line, &size, file)) > 0;) {
        json_t *object = json_loadb(line, (size_t)n, 0, NULL);
        number++;
        if (json_is_object(object)) {
            each(ctx, object);
        } else if (line[n - 1] == '\n') {
            st = err_fail(err, STATUS_INVALID, "%s:%d: no JSON object", path, number);
        }
        json_decref(object);
    }
    free(line);
    if (file != NULL) {
        (void)fclose(file);
    }
    return st;
}
