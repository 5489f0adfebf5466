/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/plugin_set.h"

#include "base/parse.h"
#include "worker/protocol.h"
#include "worker/runner/host.h"
#include "worker/runner/plugin_file.h"
#include "worker/runner/plugin_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>

#define SUFFIX ".so"

static enum status refuse(struct plugin_set *set, const char *file, const char *reason,
                          struct err *err)
{
    char clean_file[PATH_MAX];
    char clean_reason[ERR_TEXT_MAX];
    (void)utf8_clean(file, strlen(file), clean_file, sizeof clean_file);
    (void)utf8_clean(reason, strlen(reason), clean_reason, sizeof clean_reason);
    json_t *entry = json_pack("{s:s, s:s}", "file", clean_file, "reason", clean_reason);
    if (entry == NULL || json_array_append_new(set->refused, entry) != 0) {
        return err_fail(err, STATUS_NOMEM, "refuse plugin '%s'", clean_file);
    }
    return STATUS_OK;
}

struct attempt {
    const struct plugin_set *set;
    int fd;
    struct claimd_plugin plugin;
};

static enum status check_unique(const struct plugin_set *set, const struct claimd_plugin *plugin,
                                struct err *err)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->plugins[i].name, plugin->name) == 0) {
            return err_fail(err, STATUS_INVALID, "another file is plugin %s already", plugin->name);
        }
    }
    for (size_t i = 0; i < CLAIMD_KINDS_MAX && plugin->kinds[i].name != NULL; i++) {
        const char *kind = plugin->kinds[i].name;
        for (size_t j = 0; j < set->count; j++) {
            for (size_t k = 0; k < CLAIMD_KINDS_MAX && set->plugins[j].kinds[k].name != NULL; k++) {
                if (strcmp(set->plugins[j].kinds[k].name, kind) == 0) {
                    return err_fail(err, STATUS_INVALID, "kind %s is served by plugin %s already",
                                    kind, set->plugins[j].name);
                }
            }
        }
    }
    return STATUS_OK;
}

static enum status load(struct attempt *a, struct err *err)
{
    enum status st = plugin_file_load(a->fd, &a->plugin, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_unique(a->set, &a->plugin, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (a->plugin.init != NULL) {
        int rc = a->plugin.init(&HOST);
        if (rc != 0) {
            return err_fail(err, STATUS_INVALID, "init returned %d, wanted 0", rc);
        }
    }
    return STATUS_OK;
}

static enum status try_out(void *ctx, struct err *err)
{
    struct attempt *a = (struct attempt *)ctx;
    enum status st = load(a, err);
    if (st == STATUS_OK && a->plugin.fini != NULL) {
        a->plugin.fini();
    }
    return st;
}

static enum status open_file(const struct plugin_set *set, int directory, const char *file,
                             int *ret_fd, struct err *err)
{
    int fd = openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return errno == ELOOP ? err_fail(err, STATUS_INVALID, "a symbolic link")
                              : err_fail_sys(err, STATUS_INVALID, errno, "open");
    }
    enum status st = plugin_file_check(fd, &set->owners, err);
    if (st != STATUS_OK) {
        (void)close(fd);
        return st;
    }
    *ret_fd = fd;
    return STATUS_OK;
}

static enum status load_file(struct plugin_set *set, int directory, const char *file,
                             struct err *err)
{
    if (set->count == PLUGINS_MAX) {
        return err_fail(err, STATUS_LIMIT, "more than %d plugins", PLUGINS_MAX);
    }
    struct attempt a = {.set = set};
    enum status st = open_file(set, directory, file, &a.fd, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = plugin_probe(try_out, &a, err);
    if (st != STATUS_OK) {
        (void)close(a.fd);
        return st;
    }
    st = load(&a, err); /* from here on the descriptor stays open: see plugin_file.h */
    if (st != STATUS_OK) {
        return st;
    }
    set->plugins[set->count] = a.plugin;
    set->count++;
    return STATUS_OK;
}

static int is_plugin_file(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    size_t suffix = strlen(SUFFIX);
    return len > suffix && strcmp(entry->d_name + len - suffix, SUFFIX) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* bytes, whatever the locale */
}

static enum status load_directory(struct plugin_set *set, int directory, struct err *err)
{
    struct dirent **entries = NULL;
    int count = scandirat(directory, ".", &entries, is_plugin_file, by_name);
    enum status st = STATUS_OK;
    if (count < 0) {
        st = err_fail_sys(err, STATUS_UNAVAILABLE, errno, "read the directory");
    }
    for (int i = 0; i < count; i++) {
        struct err reason = {0};
        if (st == STATUS_OK &&
            load_file(set, directory, entries[i]->d_name, &reason) != STATUS_OK) {
            st = refuse(set, entries[i]->d_name, reason.msg, err);
        }
        free(entries[i]);
    }
    free(entries);
    return st;
}

static enum status open_directory(const char *path, const struct plugin_owners *owners, int *ret_fd,
                                  struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open the directory");
    }
    enum status st = plugin_directory_check(fd, owners, err);
    if (st != STATUS_OK) {
        (void)close(fd);
        return st;
    }
    *ret_fd = fd;
    return STATUS_OK;
}

enum status plugin_set_open(struct plugin_set *set, const char *directory,
                            const struct plugin_owners *owners, struct err *err)
{
    *set = (struct plugin_set){.refused = json_array(),
                               .owners = *owners,
                               .plugins = calloc(PLUGINS_MAX, sizeof *set->plugins)};
    if (set->refused == NULL || set->plugins == NULL) {
        plugin_set_close(set);
        return err_fail(err, STATUS_NOMEM, "plugins");
    }
    autoclose int fd = -1;
    struct err reason = {0};
    if (open_directory(directory, owners, &fd, &reason) != STATUS_OK ||
        load_directory(set, fd, &reason) != STATUS_OK) {
        return refuse(set, directory, reason.msg, err);
    }
    return STATUS_OK;
}

void plugin_set_close(struct plugin_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->plugins[i].fini != NULL) {
            set->plugins[i].fini();
        }
    }
    free(set->plugins);
    json_decref(set->refused);
    *set = (struct plugin_set){0};
}

const struct claimd_kind *plugin_set_find(const struct plugin_set *set, const char *kind,
                                          size_t len)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct claimd_kind *kinds = set->plugins[i].kinds;
        for (size_t k = 0; k < CLAIMD_KINDS_MAX && kinds[k].name != NULL; k++) {
            if (strncmp(kinds[k].name, kind, len) == 0 && kinds[k].name[len] == '\0') {
                return &kinds[k];
            }
        }
    }
    return NULL;
}

static json_t *describe_kind(const struct claimd_plugin *plugin, const struct claimd_kind *kind)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:b}", "name", kind->name, "plugin",
                     plugin->name, "version", plugin->version, "max_attempts", kind->max_attempts,
                     "max_crashes", kind->max_crashes, "timeout_ms", (json_int_t)kind->timeout_ms,
                     "at_most_once", kind->at_most_once);
}

enum status plugin_set_describe(const struct plugin_set *set, char **ret_json, struct err *err)
{
    json_t *kinds = json_array();
    for (size_t i = 0; i < set->count; i++) {
        const struct claimd_plugin *plugin = &set->plugins[i];
        for (size_t k = 0; k < CLAIMD_KINDS_MAX && plugin->kinds[k].name != NULL; k++) {
            if (json_array_append_new(kinds, describe_kind(plugin, &plugin->kinds[k])) != 0) {
                json_decref(kinds);
                return err_fail(err, STATUS_NOMEM, "describe the plugins");
            }
        }
    }
    json_t *all = json_pack("{s:i, s:s, s:o, s:O}", "protocol", RUNNER_PROTOCOL_VERSION, "version",
                            CLAIMD_VERSION, "kinds", kinds, "refused", set->refused);
    char *json = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);
    json_decref(all);
    if (json == NULL) {
        return err_fail(err, STATUS_NOMEM, "describe the plugins");
    }
    *ret_json = json;
    return STATUS_OK;
}
