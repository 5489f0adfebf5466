/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/plugin_rules.h"

#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- files ---- */

enum status plugin_owners_parse(const char *text, struct plugin_owners *ret, struct err *err)
{
    struct plugin_owners owners = {.count = 0};
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        int64_t uid = 0;
        if (owners.count == PLUGIN_OWNERS_MAX) {
            return err_fail(err, STATUS_INVALID, "more than %d owners", PLUGIN_OWNERS_MAX);
        }
        enum status st = parse_i64(text, len, 0, UINT32_MAX - 1, &uid, err);
        if (st != STATUS_OK) {
            return st;
        }
        owners.list[owners.count++] = (uid_t)uid;
        text += len;
        text += *text == ',';
    }
    *ret = owners;
    return STATUS_OK;
}

static bool is_trusted(uid_t uid, const struct plugin_owners *owners)
{
    for (size_t i = 0; i < owners->count; i++) {
        if (owners->list[i] == uid) {
            return true;
        }
    }
    return owners->count == 0 && (uid == 0 || uid == geteuid());
}

static enum status refuse_owner(uid_t uid, const struct plugin_owners *owners, struct err *err)
{
    char wanted[PLUGIN_OWNERS_MAX * 12];
    size_t at = 0;
    (void)snprintf(wanted, sizeof wanted, "0 or %u", geteuid());
    for (size_t i = 0; i < owners->count; i++) {
        int n =
            snprintf(wanted + at, sizeof wanted - at, "%s%u", i > 0 ? " or " : "", owners->list[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    return err_fail(err, STATUS_INVALID,
                    "owned by user %u, expected %s: chown it, or set worker.plugin_owners", uid,
                    wanted);
}

static enum status check_owner(const struct stat *s, const struct plugin_owners *owners,
                               struct err *err)
{
    if (!is_trusted(s->st_uid, owners)) {
        return refuse_owner(s->st_uid, owners, err);
    }
    if ((s->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return err_fail(
            err, STATUS_INVALID,
            "writable by group or others (mode %04o), expected at most 0755: chmod go-w",
            s->st_mode & 07777U);
    }
    return STATUS_OK;
}

static enum status folder_check(int fd, const struct plugin_owners *owners, struct err *err)
{
    struct stat s;
    if (fstat(fd, &s) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fstat");
    }
    return check_owner(&s, owners, err);
}

enum status plugin_regular_check(int fd, const struct plugin_owners *owners, off_t *ret_size,
                                 struct err *err)
{
    struct stat s;
    if (fstat(fd, &s) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fstat");
    }
    if (!S_ISREG(s.st_mode)) {
        return err_fail(err, STATUS_INVALID, "not a regular file");
    }
    *ret_size = s.st_size;
    return check_owner(&s, owners, err);
}

enum status plugin_open(int directory, const char *file, int *ret_fd, struct err *err)
{
    *ret_fd = openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*ret_fd < 0 && errno == ELOOP) {
        return err_fail(err, STATUS_INVALID, "a symbolic link");
    }
    if (*ret_fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot open");
    }
    return STATUS_OK;
}

enum status plugin_open_folder(const char *path, const struct plugin_owners *owners, int *ret_fd,
                               struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot open the directory");
    }
    enum status st = folder_check(fd, owners, err);
    if (st != STATUS_OK) {
        (void)close(fd);
        return st;
    }
    *ret_fd = fd;
    return STATUS_OK;
}

/* ---- kinds ---- */

static enum status check_number(const char *kind, const char *field, int64_t value, int64_t max,
                                struct err *err)
{
    if (value < 0 || value > max) {
        return err_fail(err, STATUS_INVALID, "kind %s: %s %lld, expected 0…%lld", kind, field,
                        (long long)value, (long long)max);
    }
    return STATUS_OK;
}

/* Checks a kind and fills in its defaults. */
static enum status accept_kind(struct claimd_kind *k, struct err *err)
{
    enum status st = job_kind_check(k->name, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct {
        const char *field;
        int64_t value;
        int64_t max;
    } numbers[] = {
        {"timeout_ms", k->timeout_ms, JOB_KIND_TIMEOUT_MS_MAX},
        {"max_attempts", k->max_attempts, JOB_KIND_ATTEMPTS_MAX},
        {"max_crashes", k->max_crashes, JOB_KIND_ATTEMPTS_MAX},
        {"at_most_once", k->at_most_once, 1},
        {"reserved", k->reserved, 0},
        {"keep_log", k->keep_log, 1},
        {"grace_ms", k->grace_ms, JOB_KIND_GRACE_MS_MAX},
    };
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        st = check_number(k->name, numbers[i].field, numbers[i].value, numbers[i].max, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    struct backoff backoff;
    if (k->backoff != NULL && backoff_parse(k->backoff, &backoff, err) != STATUS_OK) {
        err_prefix(err, "kind %s", k->name);
        return STATUS_INVALID;
    }
    k->timeout_ms = k->timeout_ms == 0 ? JOB_TIMEOUT_US_DEFAULT / 1000 : k->timeout_ms;
    k->max_attempts = k->max_attempts == 0 ? JOB_MAX_ATTEMPTS_DEFAULT : k->max_attempts;
    k->max_crashes = k->max_crashes == 0 ? JOB_MAX_CRASHES_DEFAULT : k->max_crashes;
    return STATUS_OK;
}

enum status plugin_kinds_accept(struct claimd_kind *kinds, struct err *err)
{
    size_t count = 0;
    while (count < CLAIMD_KINDS_MAX && kinds[count].name != NULL) {
        enum status st = accept_kind(&kinds[count], err);
        if (st != STATUS_OK) {
            return st;
        }
        for (size_t i = 0; i < count; i++) {
            if (strcmp(kinds[i].name, kinds[count].name) == 0) {
                return err_fail(err, STATUS_INVALID, "kind %s twice", kinds[i].name);
            }
        }
        count++;
    }
    if (count == 0) {
        return err_fail(err, STATUS_INVALID, "no kinds");
    }
    memset(kinds + count, 0, (CLAIMD_KINDS_MAX - count) * sizeof kinds[0]);
    return STATUS_OK;
}

/* ---- names ---- */

enum status plugin_names_check(const struct plugin_names *names, const struct claimd_plugin *others,
                               size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(others[i].name, names->plugin) == 0) {
            return err_fail(err, STATUS_INVALID, "another file is plugin %s already",
                            names->plugin);
        }
    }
    for (size_t i = 0; i < CLAIMD_KINDS_MAX && names->kinds[i][0] != '\0'; i++) {
        for (size_t j = 0; j < count; j++) {
            for (size_t k = 0; k < CLAIMD_KINDS_MAX && others[j].kinds[k].name != NULL; k++) {
                if (strcmp(others[j].kinds[k].name, names->kinds[i]) == 0) {
                    return err_fail(err, STATUS_INVALID, "kind %s is served by plugin %s already",
                                    names->kinds[i], others[j].name);
                }
            }
        }
    }
    return STATUS_OK;
}
