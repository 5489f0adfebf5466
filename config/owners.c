/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates the users that may own a plugin into uids. */
#include "base/parse.h"
#include "config/config.h"

#include <pwd.h>
#include <stdio.h>

static enum status find_uid(const char *owner, int64_t *ret_uid, struct err *err)
{
    size_t len = strlen(owner);
    if (strspn(owner, "0123456789") == len) {
        return parse_i64(owner, len, 0, UINT32_MAX - 1, ret_uid, err);
    }
    char texts[4096];
    struct passwd entry;
    struct passwd *found = NULL;
    int failed = getpwnam_r(owner, &entry, texts, sizeof texts, &found);
    if (found == NULL) {
        return err_fail_sys(err, STATUS_INVALID, failed, "no user '%s' on this host", owner);
    }
    *ret_uid = found->pw_uid;
    return STATUS_OK;
}

enum status config_plugin_owners(const struct config *c, char ret[CONFIG_UIDS_SIZE],
                                 struct err *err)
{
    size_t at = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < c->worker.plugin_owner_count; i++) {
        int64_t uid = 0;
        enum status st = find_uid(c->worker.plugin_owners[i], &uid, err);
        if (st != STATUS_OK) {
            err_prefix(err, "worker.plugin_owners");
            return st;
        }
        int n =
            snprintf(ret + at, CONFIG_UIDS_SIZE - at, "%s%lld", i > 0 ? "," : "", (long long)uid);
        at += n > 0 ? (size_t)n : 0;
    }
    return STATUS_OK;
}
