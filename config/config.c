/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include "base/nearest.h"
#include "config/options.h"

#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX (1 << 20)
#define NAME_SIZE 80

static void load_defaults(struct config *c)
{
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < config_option_count; i++) {
        struct err err = {0};
        enum status st = option_parse(&config_options[i], c, config_options[i].default_text, &err);
        assert(st == STATUS_OK); /* a default outside its own range is a bug in the table */
    }
}

/* ---- the file ---- */

/* Returns a hint, or "", for a text that stands where a number or a list is required. */
static const char *quotes_hint(const json_t *value, const char *allowed)
{
    bool is_list = strstr(allowed, " texts ") != NULL;
    if (!json_is_string(value) || isdigit((unsigned char)allowed[0]) == 0) {
        return "";
    }
    return is_list ? ", in an array" : ", a number without quotes";
}

/* Refuses a value of the wrong type. The error shows the value, or just "an array" or "an
 * object". */
static enum status refuse_value(const char *name, const json_t *value, const char *allowed,
                                struct err *err)
{
    bool is_long = json_is_object(value) || json_is_array(value);
    autofree char *written =
        is_long ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    return err_fail(err, STATUS_INVALID, "%s%s%.80s is not allowed; allowed: %s%s", name,
                    name[0] == '\0' ? "" : ": ",
                    written != NULL         ? written
                    : json_is_array(value)  ? "an array"
                    : json_is_object(value) ? "an object"
                                            : "this",
                    allowed, quotes_hint(value, allowed));
}

static enum status refuse_type(const struct option_def *o, const json_t *value, struct err *err)
{
    char range[128];
    option_range_text(o, range, sizeof range);
    return refuse_value(o->name, value, range, err);
}

static enum status apply_list(const struct option_def *o, struct config *c, const json_t *value,
                              struct err *err)
{
    size_t i = 0;
    const json_t *item = NULL;
    option_list_clear(o, c);
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item)) {
            return refuse_type(o, item, err);
        }
        enum status st = option_list_add(o, c, json_string_value(item), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return option_list_check(o, c, err);
}

static enum status apply_value(const struct option_def *o, struct config *c, const json_t *value,
                               const char *folder, struct err *err)
{
    option_came_from(o, c, CONFIG_FILE);
    switch (o->type) {
    case OPTION_INT:
    case OPTION_TIME:
        if (json_is_integer(value)) {
            return option_set_number(o, c, json_integer_value(value), err);
        }
        break;
    case OPTION_REAL:
        if (json_is_number(value)) {
            return option_set_real(o, c, json_number_value(value), err);
        }
        break;
    case OPTION_LIST:
        if (json_is_array(value)) {
            return apply_list(o, c, value, err);
        }
        break;
    case OPTION_COMMANDS:
        return option_set_commands(o, c, value, err);
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_SECRET_FILE:
    case OPTION_CHOICE:
        if (json_is_string(value)) {
            return option_set_text(o, c, json_string_value(value), folder, err);
        }
        break;
    }
    return refuse_type(o, value, err);
}

/* Refuses an unknown key. The error lists the keys of its section (at the top level: the keys
 * without a section, and the sections), in case it was mistyped. */
static enum status refuse_unknown(const char *name, struct err *err)
{
    char known[400] = "";
    size_t at = 0;
    size_t section = strcspn(name, ".");
    section = name[section] == '.' ? section + 1 : 0;
    const char *last = "";
    struct nearest nearest = {.wanted = name + section};
    char hint[NEAREST_HINT_MAX];
    for (size_t i = 0; i < config_option_count; i++) {
        if (strncmp(config_options[i].name, name, section) != 0 || at >= sizeof known) {
            continue; /* belongs to another section; its name may be shorter than `section` */
        }
        const char *key = config_options[i].name + section;
        size_t len = strcspn(key, ".");
        if (strncmp(last, key, len) == 0 && last[len] == '.') {
            continue;
        }
        int n =
            snprintf(known + at, sizeof known - at, "%s%.*s", at > 0 ? ", " : "", (int)len, key);
        at += n > 0 ? (size_t)n : 0;
        last = key;
        if (key[len] == '\0') {
            nearest_try(&nearest, key);
        }
    }
    return err_fail(err, STATUS_INVALID, "%.80s: unknown key; known here: %s%s", name, known,
                    nearest_hint(&nearest, hint));
}

static bool is_section(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < config_option_count; i++) {
        const char *option = config_options[i].name;
        if (strncmp(option, name, len) == 0 && option[len] == '.') {
            return true;
        }
    }
    return false;
}

static enum status apply_object(struct config *c, const char *section, json_t *object,
                                const char *folder, struct err *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object, key, value)
    {
        char name[NAME_SIZE];
        (void)snprintf(name, sizeof name, "%s%s%s", section, section[0] != '\0' ? "." : "", key);
        const struct option_def *o = strchr(key, '.') == NULL ? option_find(name) : NULL;
        enum status st = STATUS_OK;
        if (o != NULL) {
            st = apply_value(o, c, value, folder, err);
        } else if (section[0] != '\0' || !is_section(key)) {
            st = refuse_unknown(name, err);
        } else if (json_is_object(value)) {
            st = apply_object(c, key, value, folder, err);
        } else {
            st = refuse_value(key, value, "an object", err);
        }
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* Returns the likely cause of a JSON syntax error, or "". */
static const char *json_hint(const char *text)
{
    static const struct {
        const char *found;
        const char *hint;
    } hints[] = {{"near '/", ": JSON has no comments"},
                 {"near '#", ": JSON has no comments"},
                 {"near '}'", ": is there a comma too many before it?"},
                 {"near ']'", ": is there a comma too many before it?"},
                 {"near '\xEF\xBB\xBF", ": save the file without a byte order mark"},
                 {"control character 0x9", ": a tab within a text is written \\t"}};
    for (size_t i = 0; i < ARRAY_COUNT(hints); i++) {
        if (strstr(text, hints[i].found) != NULL) {
            return hints[i].hint;
        }
    }
    return "";
}

static enum status load_file(const char *path, struct config *c, struct err *err)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return err_fail_sys(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_INVALID, errno,
                            "cannot read");
    }
    if (S_ISDIR(info.st_mode)) {
        return err_fail_sys(err, STATUS_INVALID, EISDIR, "cannot read");
    }
    if (info.st_size > FILE_BYTES_MAX) {
        return err_fail(err, STATUS_INVALID, "larger than %d bytes", FILE_BYTES_MAX);
    }
    if (info.st_size == 0 && S_ISREG(info.st_mode)) {
        return err_fail(err, STATUS_INVALID, "the file is empty; the smallest configuration is {}");
    }
    json_error_t where;
    json_auto_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL && where.line > 0) {
        return err_fail(err, STATUS_INVALID, "line %d: %s%s", where.line, where.text,
                        json_hint(where.text));
    }
    if (root == NULL) {
        return err_fail(err, STATUS_INVALID, "%s", where.text);
    }
    if (!json_is_object(root)) {
        return refuse_value("", root, "an object", err);
    }
    autofree char *name = strdup(path);
    char *slash = name == NULL ? NULL : strrchr(name, '/');
    if (slash != NULL) {
        slash[slash == name ? 1 : 0] = '\0';
    }
    autofree char *folder = name == NULL ? NULL : realpath(slash == NULL ? "." : name, NULL);
    if (folder == NULL) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot find its folder");
    }
    return apply_object(c, "", root, folder, err);
}

/* ---- derived values ---- */

static enum status read_secret(const char *path, char *ret_text, struct err *err)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot read '%s'", path);
    }
    char text[CONFIG_TEXT_MAX + 1];
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot read '%s'", path);
    }
    size_t len = (size_t)n;
    len -= len > 0 && text[len - 1] == '\n';
    len -= len > 0 && text[len - 1] == '\r';
    if (len == 0 || len >= CONFIG_TEXT_MAX || memchr(text, '\0', len) != NULL) {
        return err_fail(err, STATUS_INVALID,
                        "'%s' is not a secret; allowed: one line of 1 to %d bytes", path,
                        CONFIG_TEXT_MAX - 1);
    }
    memcpy(ret_text, text, len);
    ret_text[len] = '\0';
    return STATUS_OK;
}

/* If a secret has no path, uses systemd's credential, such as claimd_postgres_password, if there is
 * one: LoadCredential=claimd:FOLDER provides it from FOLDER/postgres_password. */
static void find_credential(const struct option_def *o, char *ret_path)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    if (folder == NULL || ret_path[0] != '\0') {
        return;
    }
    int len = (int)(strlen(o->name) - strlen("_file"));
    int n = snprintf(ret_path, o->size, "%s/claimd_%.*s", folder, len, o->name);
    char *dot = strchr(strrchr(ret_path, '/'), '.');
    if (dot != NULL) {
        *dot = '_';
    }
    if (n < 0 || (size_t)n >= o->size || access(ret_path, F_OK) != 0) {
        ret_path[0] = '\0';
    }
}

static enum status load_secrets(struct config *c, struct err *err)
{
    for (size_t i = 0; i < config_option_count; i++) {
        const struct option_def *o = &config_options[i];
        bool is_secret = o->type == OPTION_SECRET_FILE;
        if (!is_secret && !o->is_credential) {
            continue;
        }
        char *path = option_field(o, c);
        find_credential(o, path);
        if (path[0] == '\0' || !is_secret) {
            continue;
        }
        enum status st = read_secret(path, (char *)c + o->aux, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s", o->name);
            return st;
        }
    }
    return STATUS_OK;
}

static void scale_times(struct config *c)
{
    for (size_t i = 0; i < config_option_count; i++) {
        const struct option_def *o = &config_options[i];
        if (o->type == OPTION_TIME && !o->is_real_time) {
            int64_t *field = option_field(o, c);
            double scaled = (double)*field * c->time_scale;
            *field = *field > 0 && scaled < 1 ? 1 : (int64_t)scaled;
        }
    }
}

/* Finds the plugins relative to the program, since an installation may have any PREFIX:
 * PREFIX/bin/claimd-worker uses PREFIX/lib/claimd/plugins. */
static enum status find_plugins(struct config *c, struct err *err)
{
    static const char below[] = "/lib/claimd/plugins";
    char *path = c->worker.plugin_dir;
    size_t size = sizeof c->worker.plugin_dir;
    if (path[0] != '\0') {
        return STATUS_OK;
    }
    ssize_t n = readlink("/proc/self/exe", path, size);
    if (n < 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "worker.plugin_dir: /proc/self/exe");
    }
    size_t len = (size_t)n;
    for (int up = 0; up < 2 && len > 0; up++) {
        do {
            len--;
        } while (len > 0 && path[len] != '/');
    }
    if (len + sizeof below > size) {
        return err_fail(err, STATUS_INVALID, "worker.plugin_dir: longer than %zu bytes", size - 1);
    }
    memcpy(path + len, below, sizeof below);
    return STATUS_OK;
}

/* Loads the secrets, checks the values together, and fills in what depends on them. */
static enum status complete(struct config *c, struct err *err)
{
    enum status st = load_secrets(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = config_check_relations(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    return find_plugins(c, err);
}

static enum status blame_file(enum status st, const char *path, struct err *err)
{
    err_prefix(err, path == NULL ? "configuration" : "configuration '%s'", path);
    return st;
}

enum status config_read(const char *path, struct config *ret, struct err *err)
{
    struct config c;
    assert(config_option_count <= CONFIG_KEYS_MAX);
    load_defaults(&c);
    enum status st = path == NULL ? STATUS_OK : load_file(path, &c, err);
    if (st != STATUS_OK) {
        return blame_file(st, path, err);
    }
    st = config_environment(&c, err);
    if (st != STATUS_OK) {
        return st; /* the file is not to blame */
    }
    st = complete(&c, err);
    if (st != STATUS_OK) {
        return blame_file(st, path, err);
    }
    *ret = c;
    return STATUS_OK;
}

void config_finish(struct config *c)
{
    scale_times(c);
    if (c->hints.node_count == 0) {
        memcpy(c->hints.nodes, c->lock.nodes, sizeof c->hints.nodes);
        c->hints.node_count = c->lock.node_count;
    }
}

enum status config_load(const char *path, struct config *ret, struct err *err)
{
    struct config c;
    enum status st = config_read(path, &c, err);
    if (st != STATUS_OK) {
        return st;
    }
    config_finish(&c);
    *ret = c;
    return STATUS_OK;
}

int64_t config_scaled(const struct config *c, int64_t us)
{
    return (int64_t)((double)us * c->time_scale);
}
