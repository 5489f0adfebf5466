/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/plugin_set.h"

#include "base/build.h"
#include "base/parse.h"
#include "protocol/protocol.h"
#include "runner/host.h"
#include "runner/plugin_file.h"
#include "runner/plugin_probe.h"
#include "runner/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

static enum status refuse(struct plugin_set *set, const char *file, const char *reason,
                          struct err *err)
{
    char clean_file[PATH_MAX];
    char clean_reason[ERR_TEXT_MAX];
    (void)utf8_clean(file, strlen(file), clean_file, sizeof clean_file);
    (void)utf8_clean(reason, strlen(reason), clean_reason, sizeof clean_reason);
    json_t *entry = json_pack("{s:s, s:s}", "file", clean_file, "reason", clean_reason);
    if (entry == NULL || json_array_append_new(set->refused, entry) != 0) {
        return err_fail(err, STATUS_NOMEM, "no memory to refuse plugin '%s'", clean_file);
    }
    return STATUS_OK;
}

/* ---- one file ---- */

/* Keeps the descriptor open from now on: see plugin_file.h. */
static enum status load(struct plugin_set *set, int fd, struct err *err)
{
    struct claimd_plugin plugin;
    enum status st = plugin_file_load(fd, &plugin, err);
    if (st != STATUS_OK) {
        return st;
    }
    int rc = plugin.init == NULL ? 0 : plugin.init(&HOST);
    if (rc != 0) {
        return err_fail(err, STATUS_INVALID, "init returned %d, expected 0", rc);
    }
    set->plugins[set->count] = plugin;
    set->count++;
    return STATUS_OK;
}

static void say_loading(struct runner_page *page, const char *file)
{
    if (page != NULL) {
        (void)snprintf(page->loading, sizeof page->loading, "%s", file);
        atomic_fetch_add(&page->loaded, 1);
    }
}

static enum status open_file(const struct plugin_set *set, int directory, const char *file,
                             int *ret_fd, struct err *err)
{
    int fd = -1;
    enum status st = plugin_open(directory, file, &fd, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = plugin_file_check(fd, &set->owners, err);
    if (st != STATUS_OK) {
        (void)close(fd);
        return st;
    }
    *ret_fd = fd;
    return STATUS_OK;
}

/* ---- plugins ---- */

static int is_plugin_file(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 3 && strcmp(entry->d_name + len - 3, ".so") == 0;
}

static int is_handler_file(const struct dirent *entry)
{
    return handler_file_is_one(entry->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* by bytes, whatever the locale */
}

/* Files to try, sorted by name. */
struct trials {
    struct plugin_trial list[PLUGINS_MAX];
    char files[PLUGINS_MAX][NAME_MAX + 1];
    size_t count;
};

static enum status add_trial(const struct plugin_set *set, struct trials *trials, int directory,
                             const char *file, struct err *err)
{
    if (trials->count == PLUGINS_MAX) {
        return err_fail(err, STATUS_LIMIT, "more than %d plugins", PLUGINS_MAX);
    }
    struct plugin_trial t = {.fd = -1};
    enum status st = open_file(set, directory, file, &t.fd, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(trials->files[trials->count], sizeof trials->files[0], "%s", file);
    trials->list[trials->count++] = t;
    return STATUS_OK;
}

/* Returns the file's index in `without`; PLUGINS_MAX = it is not left out. */
static size_t left_out(const struct plugin_set_options *options, const char *file)
{
    size_t i = 0;
    while (i < options->without_count && strcmp(options->without[i], file) != 0) {
        i++;
    }
    return i < options->without_count ? i : PLUGINS_MAX;
}

static enum status take_entry(struct plugin_set *set, const struct plugin_set_options *options,
                              int directory, const char *file, struct trials *trials,
                              struct err *err)
{
    struct err reason = {0};
    size_t without = left_out(options, file);
    if (without < PLUGINS_MAX) {
        const char *why = options->reasons[without];
        return why == NULL ? STATUS_OK : refuse(set, file, why, err);
    }
    if (add_trial(set, trials, directory, file, &reason) != STATUS_OK) {
        return refuse(set, file, reason.msg, err);
    }
    return STATUS_OK;
}

static enum status list_directory(struct plugin_set *set, const struct plugin_set_options *options,
                                  int directory, struct trials *ret_trials, struct err *err)
{
    struct dirent **entries = NULL;
    int count = scandirat(directory, ".", &entries, is_plugin_file, by_name);
    if (count < 0) {
        struct err reason = {0};
        (void)err_fail_sys(&reason, STATUS_UNAVAILABLE, errno, "cannot read the directory");
        return refuse(set, options->directory, reason.msg, err);
    }
    enum status st = STATUS_OK;
    for (int i = 0; i < count && st == STATUS_OK; i++) {
        st = take_entry(set, options, directory, entries[i]->d_name, ret_trials, err);
    }
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
    return st;
}

static enum status judge(const struct plugin_set *set, const struct plugin_trial *t,
                         struct err *err)
{
    enum status st =
        t->has_names ? plugin_names_check(&t->names, set->plugins, set->count, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    if (t->status != STATUS_OK) {
        return err_fail(err, t->status, "%s", t->why.msg);
    }
    return STATUS_OK;
}

/* Loads the files one after the other: a kind belongs to the first file by name that has it, and a
 * file that ends this process can be named. */
static enum status load_trials(struct plugin_set *set, struct trials *trials,
                               struct runner_page *page, struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t i = 0; i < trials->count; i++) {
        struct err reason = {0};
        enum status verdict = judge(set, &trials->list[i], &reason);
        if (verdict != STATUS_OK) {
            (void)close(trials->list[i].fd);
        } else {
            say_loading(page, trials->files[i]);
            verdict = load(set, trials->list[i].fd, &reason);
        }
        if (st == STATUS_OK && verdict != STATUS_OK) {
            st = refuse(set, trials->files[i], reason.msg, err);
        }
    }
    say_loading(page, "");
    return st;
}

static enum status load_directory(struct plugin_set *set, const struct plugin_set_options *options,
                                  int directory, struct err *err)
{
    autofree struct trials *trials = calloc(1, sizeof *trials);
    if (trials == NULL) {
        return err_fail(err, STATUS_NOMEM, "plugins");
    }
    enum status st = list_directory(set, options, directory, trials, err);
    plugin_probe_all(trials->list, trials->count, &HOST, options->page);
    enum status loaded = load_trials(set, trials, options->page, err);
    return st != STATUS_OK ? st : loaded;
}

/* ---- programs ---- */

/* One that was read with this status; takes it over. */
static enum status add_program(struct plugin_set *set, enum status st, struct handler_file *h,
                               struct err *err)
{
    if (st == STATUS_OK) {
        st = handler_file_check_names(h, set->plugins, set->count, err);
    }
    if (st == STATUS_OK) {
        st = program_add(h, &set->plugins[set->count], err);
    }
    if (st != STATUS_OK) {
        handler_file_release(h);
        return st;
    }
    set->count++;
    return STATUS_OK;
}

static enum status load_handler(struct plugin_set *set, int directory, const char *file,
                                struct err *err)
{
    struct handler_file h;
    autoclose int fd = -1;
    enum status st = plugin_open(directory, file, &fd, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = handler_file_read(fd, file, &set->owners, NULL, &h, err);
    return add_program(set, st, &h, err);
}

static enum status load_commands(struct plugin_set *set, const char *commands, struct err *err)
{
    json_auto_t *root = json_loads(commands, 0, NULL);
    const char *name = NULL;
    json_t *command = NULL;
    json_object_foreach(root, name, command)
    {
        struct handler_file h;
        struct err reason = {0};
        enum status st = handler_file_of_command(name, command, &h, &reason);
        if (add_program(set, st, &h, &reason) == STATUS_OK) {
            continue;
        }
        st = refuse(set, h.file, reason.msg, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status load_handlers(struct plugin_set *set, int directory, struct err *err)
{
    struct dirent **entries = NULL;
    int count = scandirat(directory, ".", &entries, is_handler_file, by_name);
    enum status st = STATUS_OK;
    for (int i = 0; i < count; i++) {
        struct err reason = {0};
        if (st == STATUS_OK &&
            load_handler(set, directory, entries[i]->d_name, &reason) != STATUS_OK) {
            st = refuse(set, entries[i]->d_name, reason.msg, err);
        }
        free(entries[i]);
    }
    free(entries);
    return st;
}

static size_t plugin_index(const struct plugin_set *set, const struct claimd_kind *kind)
{
    size_t i = 0;
    while (i < set->count &&
           (kind < set->plugins[i].kinds || kind >= set->plugins[i].kinds + CLAIMD_KINDS_MAX)) {
        i++;
    }
    return i;
}

enum status plugin_set_withdraw(struct plugin_set *set, const struct claimd_kind *kind,
                                const char *reason, struct err *err)
{
    size_t i = plugin_index(set, kind);
    const char *file = program_file(kind);
    if (i < set->count) {
        memmove(set->plugins + i, set->plugins + i + 1,
                (set->count - i - 1) * sizeof set->plugins[0]);
        set->count--;
    }
    return refuse(set, file, reason, err);
}

const struct claimd_kind *plugin_set_doubtful(struct plugin_set *set)
{
    while (set->doubtful_next < set->options->doubtful_count) {
        const char *file = set->options->doubtful[set->doubtful_next++];
        for (size_t i = 0; i < set->count; i++) {
            const struct claimd_kind *kind = &set->plugins[i].kinds[0];
            if (program_serves(kind) && strcmp(program_file(kind), file) == 0) {
                return kind;
            }
        }
    }
    return NULL;
}

/* ---- plugins and programs ---- */

typedef enum status load_fn(struct plugin_set *set, int directory, struct err *err);

static enum status load_plugins(struct plugin_set *set, int directory, struct err *err)
{
    return load_directory(set, set->options, directory, err);
}

static enum status open_folder(struct plugin_set *set, const char *path, load_fn *load_all,
                               struct err *err)
{
    autoclose int fd = -1;
    struct err reason = {0};
    if (plugin_open_folder(path, &set->owners, &fd, &reason) != STATUS_OK) {
        return refuse(set, path, reason.msg, err);
    }
    return load_all(set, fd, err);
}

enum status plugin_set_open(struct plugin_set *set, const struct plugin_set_options *options,
                            struct err *err)
{
    *set = (struct plugin_set){.refused = json_array(),
                               .options = options,
                               .owners = options->owners,
                               .plugins = calloc(PLUGINS_MAX, sizeof *set->plugins)};
    if (set->refused == NULL || set->plugins == NULL) {
        plugin_set_close(set);
        return err_fail(err, STATUS_NOMEM, "plugins");
    }
    enum status st = open_folder(set, options->directory, load_plugins, err);
    if (st == STATUS_OK && options->handlers != NULL && options->handlers[0] != '\0') {
        st = open_folder(set, options->handlers, load_handlers, err);
    }
    if (st == STATUS_OK && options->commands != NULL) {
        st = load_commands(set, options->commands, err);
    }
    return st;
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
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:b, s:s, s:b, s:i}", "name", kind->name,
                     "plugin", plugin->name, "version", plugin->version, "max_attempts",
                     kind->max_attempts, "max_crashes", kind->max_crashes, "timeout_ms",
                     (json_int_t)kind->timeout_ms, "at_most_once", kind->at_most_once, "backoff",
                     kind->backoff != NULL ? kind->backoff : "", "keep_log", kind->keep_log,
                     "grace_ms", kind->grace_ms);
}

enum status plugin_set_describe(const struct plugin_set *set, char **ret_json, struct err *err)
{
    json_t *kinds = json_array();
    for (size_t i = 0; i < set->count; i++) {
        const struct claimd_plugin *plugin = &set->plugins[i];
        for (size_t k = 0; k < CLAIMD_KINDS_MAX && plugin->kinds[k].name != NULL; k++) {
            if (json_array_append_new(kinds, describe_kind(plugin, &plugin->kinds[k])) != 0) {
                json_decref(kinds);
                return err_fail(err, STATUS_NOMEM, "no memory to describe the plugins");
            }
        }
    }
    json_t *all = json_pack("{s:i, s:s, s:o, s:O}", "protocol", RUNNER_PROTOCOL_VERSION, "version",
                            CLAIMD_BUILD, "kinds", kinds, "refused", set->refused);
    char *json = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);
    json_decref(all);
    if (json == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to describe the plugins");
    }
    *ret_json = json;
    return STATUS_OK;
}
