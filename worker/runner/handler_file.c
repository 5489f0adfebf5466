/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/handler_file.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/parse.h"
#include "worker/protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((size_t)256 << 10)
#define START_MS_DEFAULT 30000
#define MEMORY_MIN ((int64_t)16 << 20)
#define MEMORY_MAX ((int64_t)1 << 50)
#define OPEN_FILES_MIN 16
#define OPEN_FILES_MAX 1048576
#define CPU_SECONDS_MAX 31536000

static const char *const FILE_KEYS[] = {"command",    "mode",          "kinds",       "env",
                                        "cwd",        "start_timeout", "memory",      "open_files",
                                        "exit_codes", "result",        "cpu_seconds", "$schema",
                                        NULL};
static const char *const KIND_KEYS[] = {"timeout",      "max_attempts", "max_crashes", "backoff",
                                        "at_most_once", "keep_log",     NULL};

/* ---- members ---- */

static bool is_listed(const char *const *list, const char *word)
{
    while (*list != NULL && strcmp(*list, word) != 0) {
        list++;
    }
    return *list != NULL;
}

static enum status check_keys(const json_t *object, const char *place, const char *const *allowed,
                              struct err *err)
{
    char names[256] = "";
    size_t at = 0;
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (is_listed(allowed, key)) {
            continue;
        }
        for (size_t i = 0; allowed[i] != NULL && at < sizeof names; i++) {
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i > 0 ? ", " : "",
                                   allowed[i]);
        }
        return err_fail(err, STATUS_INVALID, "%s has no key '%.64s': allowed are %s", place, key,
                        names);
    }
    return STATUS_OK;
}

static enum status get_integer(const json_t *value, const char *place, int64_t min, int64_t max,
                               int64_t *ret, struct err *err)
{
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < min || number > max) {
        return err_fail(err, STATUS_INVALID, "%s: wanted a whole number, %" PRId64 "…%" PRId64,
                        place, min, max);
    }
    *ret = number;
    return STATUS_OK;
}

/* Seconds, or a text such as "500ms", "90s", "10m". */
static enum status get_duration_ms(const json_t *value, const char *place, int64_t max_ms,
                                   int64_t *ret_ms, struct err *err)
{
    int64_t us = 0;
    enum status st = STATUS_OK;
    if (json_is_string(value)) {
        st = parse_duration_us(json_string_value(value), &us, NULL);
    } else if (json_is_integer(value) && json_integer_value(value) <= max_ms / 1000) {
        us = json_integer_value(value) * US_PER_S;
    }
    if (st != STATUS_OK || us < US_PER_MS || us / US_PER_MS > max_ms) {
        return err_fail(err, STATUS_INVALID,
                        "%s: wanted a time up to %" PRId64 " s, as \"90s\", \"10m\", or seconds",
                        place, max_ms / 1000);
    }
    *ret_ms = us / US_PER_MS;
    return STATUS_OK;
}

/* Octets, or a text such as "512M", "2G". */
static enum status get_octets(const json_t *value, const char *place, int64_t *ret, struct err *err)
{
    int64_t octets = json_integer_value(value);
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        size_t len = strlen(text);
        const char *units = "KMG";
        const char *unit = len > 0 ? strchr(units, text[len - 1]) : NULL;
        int64_t number = 0;
        if (unit != NULL && *unit != '\0' &&
            parse_i64(text, len - 1, 0, MEMORY_MAX >> 30, &number, NULL) == STATUS_OK) {
            octets = number << (10 * (unit - units + 1));
        }
    }
    if (octets < MEMORY_MIN || octets > MEMORY_MAX) {
        return err_fail(err, STATUS_INVALID, "%s: wanted octets, or as \"512M\", at least 16M",
                        place);
    }
    *ret = octets;
    return STATUS_OK;
}

static enum status get_flag(const json_t *value, const char *place, int32_t *ret, struct err *err)
{
    if (!json_is_boolean(value)) {
        return err_fail(err, STATUS_INVALID, "%s: wanted true or false", place);
    }
    *ret = json_is_true(value) ? 1 : 0;
    return STATUS_OK;
}

static enum status get_text(const json_t *value, const char *place, const char **ret,
                            struct err *err)
{
    if (!json_is_string(value)) {
        return err_fail(err, STATUS_INVALID, "%s: wanted a text", place);
    }
    *ret = json_string_value(value);
    return STATUS_OK;
}

/* ---- kinds ---- */

static enum status read_kind_member(struct claimd_kind *k, const char *key, const json_t *value,
                                    struct err *err)
{
    char place[JOB_NAME_MAX + 64];
    int64_t number = 0;
    enum status st = STATUS_OK;
    (void)snprintf(place, sizeof place, "kinds.%s.%s", k->name, key);
    if (strcmp(key, "timeout") == 0) {
        return get_duration_ms(value, place, JOB_KIND_TIMEOUT_MS_MAX, &k->timeout_ms, err);
    }
    if (strcmp(key, "backoff") == 0) {
        return get_text(value, place, &k->backoff, err);
    }
    if (strcmp(key, "at_most_once") == 0) {
        return get_flag(value, place, &k->at_most_once, err);
    }
    if (strcmp(key, "keep_log") == 0) {
        return get_flag(value, place, &k->keep_log, err);
    }
    st = get_integer(value, place, 1, JOB_KIND_ATTEMPTS_MAX, &number, err);
    *(strcmp(key, "max_attempts") == 0 ? &k->max_attempts : &k->max_crashes) = (int32_t)number;
    return st;
}

static enum status read_kind(const char *name, const json_t *object, struct claimd_kind *ret,
                             struct err *err)
{
    char place[JOB_NAME_MAX + 16];
    const char *key = NULL;
    json_t *value = NULL;
    enum status st = job_kind_check(name, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct claimd_kind){.name = name};
    (void)snprintf(place, sizeof place, "kinds.%s", name);
    if (!json_is_object(object)) {
        return err_fail(err, STATUS_INVALID, "%s: wanted an object, {} for the defaults", place);
    }
    st = check_keys(object, place, KIND_KEYS, err);
    if (st != STATUS_OK) {
        return st;
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        st = read_kind_member(ret, key, value, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status read_kinds(struct handler_file *h, struct err *err)
{
    const json_t *kinds = json_object_get(h->root, "kinds");
    size_t count = json_object_size(kinds);
    const char *name = NULL;
    json_t *object = NULL;
    size_t n = 0;
    if (count == 0 || count > CLAIMD_KINDS_MAX) {
        return err_fail(err, STATUS_INVALID, "kinds: wanted an object of 1…%d kinds",
                        CLAIMD_KINDS_MAX);
    }
    json_object_foreach((json_t *)(uintptr_t)kinds, name, object)
    {
        enum status st = read_kind(name, object, &h->kinds[n++], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* ---- the program ---- */

static enum status read_command(struct handler_file *h, struct err *err)
{
    const json_t *command = json_object_get(h->root, "command");
    size_t count = json_array_size(command);
    if (count == 0 || count > HANDLER_ARGS_MAX) {
        return err_fail(err, STATUS_INVALID,
                        "command: wanted a list of the program and its arguments, 1…%d texts",
                        HANDLER_ARGS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        enum status st = get_text(json_array_get(command, i), "command", &h->argv[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status read_exit_code(struct handler_file *h, const char *key, const char *outcome,
                                  struct err *err)
{
    int64_t code = 0;
    int named = outcome == NULL ? 0 : outcome_named(outcome, strlen(outcome));
    if (named == 0 || parse_i64(key, strlen(key), 0, 255, &code, NULL) != STATUS_OK) {
        return err_fail(err, STATUS_INVALID,
                        "exit_codes.%.64s: wanted 0…255 and done, retry, fail, snooze or cancel",
                        key);
    }
    h->exit_codes[code] = (enum claimd_outcome)named;
    return STATUS_OK;
}

static enum status read_exit_codes(struct handler_file *h, struct err *err)
{
    const json_t *codes = json_object_get(h->root, "exit_codes");
    const char *key = NULL;
    json_t *value = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(h->exit_codes); i++) {
        h->exit_codes[i] = i == 0 ? CLAIMD_DONE : CLAIMD_RETRY;
    }
    if (codes != NULL && !json_is_object(codes)) {
        return err_fail(err, STATUS_INVALID, "exit_codes: wanted an object");
    }
    json_object_foreach((json_t *)(uintptr_t)codes, key, value)
    {
        enum status st = read_exit_code(h, key, json_string_value(value), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status read_once(struct handler_file *h, struct err *err)
{
    const json_t *result = json_object_get(h->root, "result");
    const json_t *seconds = json_object_get(h->root, "cpu_seconds");
    const char *from = "descriptor_4";
    enum status st = read_exit_codes(h, err);
    if (st == STATUS_OK && result != NULL) {
        st = get_text(result, "result", &from, err);
    }
    if (st == STATUS_OK && seconds != NULL) {
        st = get_integer(seconds, "cpu_seconds", 1, CPU_SECONDS_MAX, &h->cpu_seconds, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    h->result_is_last_line = strcmp(from, "last_line") == 0;
    if (!h->result_is_last_line && strcmp(from, "descriptor_4") != 0) {
        return err_fail(err, STATUS_INVALID, "result: wanted \"descriptor_4\" or \"last_line\"");
    }
    return STATUS_OK;
}

static enum status read_mode(struct handler_file *h, struct err *err)
{
    static const char *const only_once[] = {"exit_codes", "result", "cpu_seconds"};
    const json_t *mode = json_object_get(h->root, "mode");
    const char *name = "serve";
    if (mode != NULL && get_text(mode, "mode", &name, err) != STATUS_OK) {
        return STATUS_INVALID;
    }
    h->is_once = strcmp(name, "once") == 0;
    if (h->is_once) {
        return read_once(h, err);
    }
    if (strcmp(name, "serve") != 0) {
        return err_fail(err, STATUS_INVALID, "mode: wanted \"serve\" or \"once\"");
    }
    for (size_t i = 0; i < ARRAY_COUNT(only_once); i++) {
        if (json_object_get(h->root, only_once[i]) != NULL) {
            return err_fail(err, STATUS_INVALID, "%s: only with \"mode\": \"once\"", only_once[i]);
        }
    }
    return STATUS_OK;
}

static bool is_variable(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return len > 0 && name[len] == '\0' && (name[0] < '0' || name[0] > '9') &&
           strncmp(name, "CLAIMD_", strlen("CLAIMD_")) != 0;
}

static enum status read_env(struct handler_file *h, struct err *err)
{
    const json_t *env = json_object_get(h->root, "env");
    const char *name = NULL;
    json_t *value = NULL;
    if (env != NULL && (!json_is_object(env) || json_object_size(env) > HANDLER_ENV_MAX)) {
        return err_fail(err, STATUS_INVALID, "env: wanted an object of at most %d texts",
                        HANDLER_ENV_MAX);
    }
    json_object_foreach((json_t *)(uintptr_t)env, name, value)
    {
        if (!is_variable(name) || !json_is_string(value)) {
            return err_fail(err, STATUS_INVALID,
                            "env.%.64s: wanted a variable's name, not CLAIMD_…, and a text", name);
        }
        h->env[h->env_count][0] = name;
        h->env[h->env_count++][1] = json_string_value(value);
    }
    return STATUS_OK;
}

static enum status read_limits(struct handler_file *h, struct err *err)
{
    const json_t *start = json_object_get(h->root, "start_timeout");
    const json_t *memory = json_object_get(h->root, "memory");
    const json_t *files = json_object_get(h->root, "open_files");
    int64_t start_ms = START_MS_DEFAULT;
    enum status st = STATUS_OK;
    if (start != NULL) {
        st = get_duration_ms(start, "start_timeout", HANDLER_START_MS_MAX, &start_ms, err);
    }
    if (st == STATUS_OK && memory != NULL) {
        st = get_octets(memory, "memory", &h->memory, err);
    }
    if (st == STATUS_OK && files != NULL) {
        st = get_integer(files, "open_files", OPEN_FILES_MIN, OPEN_FILES_MAX, &h->open_files, err);
    }
    h->start_timeout_us = start_ms * US_PER_MS;
    return st;
}

static enum status read_cwd(struct handler_file *h, struct err *err)
{
    const json_t *cwd = json_object_get(h->root, "cwd");
    h->cwd = "/";
    if (cwd == NULL) {
        return STATUS_OK;
    }
    enum status st = get_text(cwd, "cwd", &h->cwd, err);
    if (st == STATUS_OK && h->cwd[0] != '/') {
        st = err_fail(err, STATUS_INVALID, "cwd: '%s' does not begin with /", h->cwd);
    }
    return st;
}

/* ---- static checks ---- */

static enum status check_program(const char *path, struct err *err)
{
    struct stat s;
    if (path[0] != '/') {
        return err_fail(err, STATUS_INVALID, "command: '%s' does not begin with /", path);
    }
    if (stat(path, &s) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "command: %s", path);
    }
    if (!S_ISREG(s.st_mode) || access(path, X_OK) != 0) {
        return err_fail(err, STATUS_INVALID, "command: %s is no file that may be executed", path);
    }
    return STATUS_OK;
}

/* A script is an argument of its interpreter. */
static enum status check_writable(const char *path, struct err *err)
{
    struct stat s;
    if (path[0] == '/' && stat(path, &s) == 0 && S_ISREG(s.st_mode) && (s.st_mode & S_IWOTH) != 0) {
        return err_fail(err, STATUS_INVALID, "command: anybody may write to %s: chmod o-w", path);
    }
    return STATUS_OK;
}

enum status handler_file_check_command(const struct handler_file *h, struct err *err)
{
    enum status st = check_program(h->argv[0], err);
    for (size_t i = 0; st == STATUS_OK && h->argv[i] != NULL; i++) {
        st = check_writable(h->argv[i], err);
    }
    return st;
}

/* ---- the file ---- */

/* Of the text, and of the files that it names: another one in their place is another version. */
static void set_version(struct handler_file *h, const char *text, size_t len)
{
    uint32_t of_text = hash_bytes(text, len);
    uint32_t of_files = 0;
    for (size_t i = 0; h->argv[i] != NULL; i++) {
        struct stat s;
        if (h->argv[i][0] == '/' && stat(h->argv[i], &s) == 0 && S_ISREG(s.st_mode)) {
            char marks[128];
            int size =
                snprintf(marks, sizeof marks, "%x %ju %ju %jd.%09ld", of_files, (uintmax_t)s.st_dev,
                         (uintmax_t)s.st_ino, (intmax_t)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
            of_files = hash_bytes(marks, (size_t)size);
        }
    }
    (void)snprintf(h->version, sizeof h->version, "%08x-%08x", of_text, of_files);
}

static enum status set_name(struct handler_file *h, const char *file, struct err *err)
{
    size_t len = strlen(file) - strlen(RUNNER_HANDLER_SUFFIX);
    (void)snprintf(h->file, sizeof h->file, "%s", file);
    if (len > JOB_NAME_MAX) {
        return err_fail(err, STATUS_INVALID, "its name is longer than %d characters", JOB_NAME_MAX);
    }
    (void)snprintf(h->name, sizeof h->name, "%.*s", (int)len, file);
    if (job_kind_check(h->name, err) != STATUS_OK) {
        err_prefix(err, "the file's name");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status load(int fd, char ret_text[FILE_BYTES_MAX], size_t *ret_len, struct err *err)
{
    size_t len = 0;
    ssize_t n = 0;
    while (len < FILE_BYTES_MAX && (n = read(fd, ret_text + len, FILE_BYTES_MAX - len)) > 0) {
        len += (size_t)n;
    }
    if (n < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "read");
    }
    if (len == FILE_BYTES_MAX) {
        return err_fail(err, STATUS_INVALID, "longer than %zu octets", FILE_BYTES_MAX - 1);
    }
    *ret_len = len;
    return STATUS_OK;
}

static enum status parse(struct handler_file *h, const char *text, size_t len, struct err *err)
{
    json_error_t why;
    h->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (h->root == NULL) {
        return err_fail(err, STATUS_INVALID, "line %d: %s", why.line, why.text);
    }
    if (!json_is_object(h->root)) {
        return err_fail(err, STATUS_INVALID, "wanted a JSON object");
    }
    return check_keys(h->root, "the file", FILE_KEYS, err);
}

typedef enum status part(struct handler_file *h, struct err *err);

static enum status read_parts(struct handler_file *h, struct err *err)
{
    static part *const parts[] = {read_mode, read_command, read_kinds,
                                  read_env,  read_cwd,     read_limits};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        enum status st = parts[i](h, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return plugin_kinds_accept(h->kinds, err);
}

enum status handler_file_read(int fd, const char *file, const struct plugin_owners *owners,
                              struct handler_file *ret, struct err *err)
{
    autofree char *text = calloc(1, FILE_BYTES_MAX);
    size_t len = 0;
    *ret = (struct handler_file){.root = NULL};
    enum status st = set_name(ret, file, err);
    if (st != STATUS_OK) {
        return st;
    }
    off_t size = 0;
    st = plugin_regular_check(fd, owners, &size, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (text == NULL) {
        return err_fail(err, STATUS_NOMEM, "read");
    }
    st = load(fd, text, &len, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = parse(ret, text, len, err);
    if (st == STATUS_OK) {
        st = read_parts(ret, err);
    }
    if (st == STATUS_OK) {
        st = handler_file_check_command(ret, err);
    }
    if (st != STATUS_OK) {
        handler_file_release(ret);
        return st;
    }
    set_version(ret, text, len);
    return STATUS_OK;
}

void handler_file_release(struct handler_file *h)
{
    json_decref(h->root);
    h->root = NULL;
}
