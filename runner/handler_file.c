/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/handler_file.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/parse.h"
#include "protocol/protocol.h"
#include "runner/handler_value.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((size_t)256 << 10)
#define START_MS_DEFAULT 30000
#define OPEN_FILES_MIN 16
#define OPEN_FILES_MAX 1048576
#define CPU_SECONDS_MAX 31536000
#define ATTEMPTS 3 /* default of max_attempts for worker.commands */

static const char *const FILE_KEYS[] = {"command",    "mode",          "kinds",       "env",
                                        "cwd",        "start_timeout", "memory",      "open_files",
                                        "exit_codes", "result",        "cpu_seconds", "$schema",
                                        NULL};
static const char *const KIND_KEYS[] = {"timeout",      "max_attempts", "max_crashes", "backoff",
                                        "at_most_once", "keep_log",     NULL};

/* ---- mistakes ---- */

/* If all mistakes are wanted, reports this one and clears it, so that reading continues. */
static enum status note(const struct handler_file *h, enum status st, struct err *err)
{
    if (st != STATUS_INVALID || h->mistakes == NULL) {
        return st;
    }
    h->mistakes->found(h->mistakes->ctx, err->msg);
    h->mistakes->count++;
    *err = (struct err){.status = STATUS_OK};
    return STATUS_OK;
}

/* ---- kinds ---- */

static enum status get_backoff(const json_t *value, const char *kind, const char **ret,
                               struct err *err)
{
    struct backoff backoff;
    enum status st = handler_get_text(value, "backoff", ret, err);
    if (st == STATUS_OK) {
        st = backoff_parse(*ret, &backoff, err);
    }
    if (st != STATUS_OK) {
        *ret = NULL;
        err_prefix(err, "kinds.%s", kind);
    }
    return st;
}

static enum status read_kind_member(struct claimd_kind *k, const char *key, const json_t *value,
                                    struct err *err)
{
    char place[JOB_NAME_MAX + 64];
    int64_t number = 0;
    enum status st = STATUS_OK;
    (void)snprintf(place, sizeof place, "kinds.%s.%s", k->name, key);
    if (strcmp(key, "timeout") == 0) {
        return handler_get_ms(value, place, JOB_KIND_TIMEOUT_MS_MAX, &k->timeout_ms, err);
    }
    if (strcmp(key, "backoff") == 0) {
        return get_backoff(value, k->name, &k->backoff, err);
    }
    if (strcmp(key, "at_most_once") == 0) {
        return handler_get_flag(value, place, &k->at_most_once, err);
    }
    if (strcmp(key, "keep_log") == 0) {
        return handler_get_flag(value, place, &k->keep_log, err);
    }
    st = handler_get_integer(value, place, 1, JOB_KIND_ATTEMPTS_MAX, &number, err);
    *(strcmp(key, "max_attempts") == 0 ? &k->max_attempts : &k->max_crashes) = (int32_t)number;
    return st;
}

static enum status read_kind(const struct handler_file *h, const char *name, const json_t *object,
                             struct claimd_kind *ret, struct err *err)
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
        return err_fail(err, STATUS_INVALID, "%s: must be an object, {} for the defaults", place);
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        st = handler_key_is_one(KIND_KEYS, key) ? read_kind_member(ret, key, value, err)
                                                : handler_key_refuse(place, key, KIND_KEYS, err);
        st = note(h, st, err);
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
        return err_fail(err, STATUS_INVALID, "kinds: must be an object of 1…%d kinds",
                        CLAIMD_KINDS_MAX);
    }
    json_object_foreach((json_t *)(uintptr_t)kinds, name, object)
    {
        enum status st = note(h, read_kind(h, name, object, &h->kinds[n], err), err);
        if (st != STATUS_OK) {
            return st;
        }
        n += h->kinds[n].name != NULL;
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
                        "command: must be a list of the program and its arguments, 1…%d texts",
                        HANDLER_ARGS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        char place[32];
        (void)snprintf(place, sizeof place, "command[%zu]", i);
        enum status st = handler_get_text(json_array_get(command, i), place, &h->argv[i], err);
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
                        "exit_codes.%.64s: must be 0…255 and done, retry, fail, snooze or cancel",
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
        return err_fail(err, STATUS_INVALID, "exit_codes: must be an object");
    }
    json_object_foreach((json_t *)(uintptr_t)codes, key, value)
    {
        enum status st = note(h, read_exit_code(h, key, json_string_value(value), err), err);
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
    enum status st = note(h, read_exit_codes(h, err), err);
    if (st == STATUS_OK && seconds != NULL) {
        st = handler_get_integer(seconds, "cpu_seconds", 1, CPU_SECONDS_MAX, &h->cpu_seconds, err);
        st = note(h, st, err);
    }
    if (st == STATUS_OK && result != NULL) {
        st = handler_get_text(result, "result", &from, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    h->result_is_last_line = strcmp(from, "last_line") == 0;
    if (!h->result_is_last_line && strcmp(from, "descriptor_4") != 0) {
        return err_fail(err, STATUS_INVALID, "result: must be \"descriptor_4\" or \"last_line\"");
    }
    return STATUS_OK;
}

static enum status read_mode(struct handler_file *h, struct err *err)
{
    static const char *const only_once[] = {"exit_codes", "result", "cpu_seconds"};
    const json_t *mode = json_object_get(h->root, "mode");
    const char *name = "serve";
    if (mode != NULL && handler_get_text(mode, "mode", &name, err) != STATUS_OK) {
        return STATUS_INVALID;
    }
    h->is_once = strcmp(name, "once") == 0;
    if (h->is_once) {
        return read_once(h, err);
    }
    if (strcmp(name, "serve") != 0) {
        return err_fail(err, STATUS_INVALID, "mode: must be \"serve\" or \"once\"");
    }
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < ARRAY_COUNT(only_once); i++) {
        if (json_object_get(h->root, only_once[i]) != NULL) {
            st = err_fail(err, STATUS_INVALID, "%s: only with \"mode\": \"once\"", only_once[i]);
            st = note(h, st, err);
        }
    }
    return st;
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
        return err_fail(err, STATUS_INVALID, "env: must be an object of at most %d texts",
                        HANDLER_ENV_MAX);
    }
    enum status st = STATUS_OK;
    json_object_foreach((json_t *)(uintptr_t)env, name, value)
    {
        if (is_variable(name) && json_is_string(value)) {
            h->env[h->env_count][0] = name;
            h->env[h->env_count++][1] = json_string_value(value);
        } else if (st == STATUS_OK) {
            st = err_fail(err, STATUS_INVALID,
                          "env.%.64s: must be a variable's name, not CLAIMD_…, and a text", name);
            st = note(h, st, err);
        }
    }
    return st;
}

static enum status read_limits(struct handler_file *h, struct err *err)
{
    const json_t *start = json_object_get(h->root, "start_timeout");
    const json_t *memory = json_object_get(h->root, "memory");
    const json_t *files = json_object_get(h->root, "open_files");
    int64_t start_ms = START_MS_DEFAULT;
    enum status st = STATUS_OK;
    if (start != NULL) {
        st = handler_get_ms(start, "start_timeout", HANDLER_START_MS_MAX, &start_ms, err);
        st = note(h, st, err);
    }
    if (st == STATUS_OK && memory != NULL) {
        st = note(h, handler_get_octets(memory, "memory", &h->memory, err), err);
    }
    if (st == STATUS_OK && files != NULL) {
        st = handler_get_integer(files, "open_files", OPEN_FILES_MIN, OPEN_FILES_MAX,
                                 &h->open_files, err);
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
    enum status st = handler_get_text(cwd, "cwd", &h->cwd, err);
    if (st == STATUS_OK && h->cwd[0] != '/') {
        st = err_fail(err, STATUS_INVALID, "cwd: '%s' does not begin with /", h->cwd);
    }
    return st;
}

/* ---- static checks ---- */

static enum status check_executable(const char *path, struct err *err)
{
    struct stat s;
    if (stat(path, &s) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "%s", path);
    }
    if (!S_ISREG(s.st_mode) || access(path, X_OK) != 0) {
        return err_fail(err, STATUS_INVALID, "%s is not an executable file", path);
    }
    return STATUS_OK;
}

/* Checks the program that the kernel runs for a script. A script that can't be read is not
 * checked. */
static enum status check_interpreter(const char *path, struct err *err)
{
    char line[256] = "";
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (n < 2 || strncmp(line, "#!", 2) != 0) {
        return STATUS_OK;
    }
    char *name = line + 2 + strspn(line + 2, " \t");
    name[strcspn(name, " \t\n")] = '\0';
    enum status st = check_executable(name, err);
    if (st != STATUS_OK) {
        err_prefix(err, "command: the interpreter of %s", path);
    }
    return st;
}

static enum status check_program(const char *path, struct err *err)
{
    if (path[0] != '/') {
        return err_fail(err, STATUS_INVALID, "command: '%s' does not begin with /", path);
    }
    enum status st = check_executable(path, err);
    if (st != STATUS_OK) {
        err_prefix(err, "command");
        return st;
    }
    return check_interpreter(path, err);
}

/* Also checks arguments, since a script is an argument of its interpreter. */
static enum status check_writable(const char *path, struct err *err)
{
    struct stat s;
    if (path[0] == '/' && stat(path, &s) == 0 && S_ISREG(s.st_mode) && (s.st_mode & S_IWOTH) != 0) {
        return err_fail(err, STATUS_INVALID, "command: anyone may write to %s: chmod o-w", path);
    }
    return STATUS_OK;
}

/* Refuses args in the path of the program itself. */
static enum status check_braces(const struct handler_file *h, struct err *err)
{
    enum command_piece piece = COMMAND_OCTET;
    size_t name = 0;
    for (const char *at = h->argv[0]; h->is_once && *at != '\0';) {
        size_t size = command_piece(at, &piece, &name);
        if (piece == COMMAND_ARG || piece == COMMAND_JSON) {
            return err_fail(err, STATUS_INVALID,
                            "command: %.*s is in the program's path; allowed only in its arguments",
                            (int)size, at);
        }
        at += size;
    }
    return STATUS_OK;
}

enum status handler_file_check_command(const struct handler_file *h, struct err *err)
{
    enum status st = check_braces(h, err);
    if (st == STATUS_OK) {
        st = note(h, check_program(h->argv[0], err), err);
    }
    for (size_t i = 0; st == STATUS_OK && h->argv[i] != NULL; i++) {
        st = note(h, check_writable(h->argv[i], err), err);
    }
    return st;
}

/* ---- the file ---- */

/* Sets a hash of the text and of the identity of the files that it names, so that a replaced
 * program changes the version too. */
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
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot read");
    }
    if (len == FILE_BYTES_MAX) {
        return err_fail(err, STATUS_INVALID, "longer than %zu bytes", FILE_BYTES_MAX - 1);
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
        return err_fail(err, STATUS_INVALID, "must be a JSON object");
    }
    return STATUS_OK;
}

static enum status check_keys(struct handler_file *h, struct err *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    const json_t *schema = json_object_get(h->root, "$schema");
    const char *name = NULL; /* not used: for editors only */
    enum status st = STATUS_OK;
    if (schema != NULL) {
        st = note(h, handler_get_text(schema, "$schema", &name, err), err);
    }
    json_object_foreach(h->root, key, value)
    {
        if (st == STATUS_OK && !handler_key_is_one(FILE_KEYS, key)) {
            st = note(h, handler_key_refuse("the file", key, FILE_KEYS, err), err);
        }
    }
    return st;
}

typedef enum status part(struct handler_file *h, struct err *err);

static enum status read_parts(struct handler_file *h, struct err *err)
{
    static part *const parts[] = {check_keys, read_mode, read_command, read_kinds,
                                  read_env,   read_cwd,  read_limits};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        enum status st = note(h, parts[i](h, err), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (h->kinds[0].name == NULL || h->argv[0] == NULL) {
        return STATUS_OK; /* note() has reported the mistake */
    }
    enum status st = plugin_kinds_accept(h->kinds, err);
    if (st != STATUS_OK) {
        return st;
    }
    return handler_file_check_command(h, err);
}

static enum status read_text(const struct handler_file *h, int fd,
                             const struct plugin_owners *owners, char *ret_text, size_t *ret_len,
                             struct err *err)
{
    off_t size = 0;
    enum status st = note(h, plugin_regular_check(fd, owners, &size, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    return load(fd, ret_text, ret_len, err);
}

static enum status read_all(struct handler_file *h, int fd, const char *file,
                            const struct plugin_owners *owners, struct err *err)
{
    autofree char *text = calloc(1, FILE_BYTES_MAX);
    size_t len = 0;
    if (text == NULL) {
        return err_fail(err, STATUS_NOMEM, "read");
    }
    enum status st = note(h, set_name(h, file, err), err);
    if (st == STATUS_OK) {
        st = read_text(h, fd, owners, text, &len, err);
    }
    if (st == STATUS_OK) {
        st = parse(h, text, len, err);
    }
    if (st == STATUS_OK) {
        st = read_parts(h, err);
    }
    if (st == STATUS_OK) {
        set_version(h, text, len);
    }
    return st;
}

enum status handler_file_read(int fd, const char *file, const struct plugin_owners *owners,
                              struct handler_mistakes *mistakes, struct handler_file *ret,
                              struct err *err)
{
    *ret = (struct handler_file){.mistakes = mistakes};
    enum status st = note(ret, read_all(ret, fd, file, owners, err), err);
    ret->mistakes = NULL;
    if (st == STATUS_OK && mistakes != NULL && mistakes->count > 0) {
        return STATUS_INVALID;
    }
    return st;
}

enum status handler_file_of_command(const char *name, json_t *command, struct handler_file *ret,
                                    struct err *err)
{
    *ret = (struct handler_file){.file = ""};
    (void)snprintf(ret->file, sizeof ret->file, "worker.commands.%s", name);
    (void)snprintf(ret->name, sizeof ret->name, JOB_COMMAND_PREFIX "%s", name);
    ret->root = json_pack("{s:O, s:s, s:s, s:{s:{s:i}}}", "command", command, "mode", "once",
                          "result", "last_line", "kinds", ret->name, "max_attempts", ATTEMPTS);
    autofree char *text = ret->root == NULL ? NULL : json_dumps(ret->root, JSON_COMPACT);
    if (text == NULL) {
        return err_fail(err, STATUS_NOMEM, "command");
    }
    enum status st = read_parts(ret, err);
    set_version(ret, text, strlen(text));
    return st;
}

enum status handler_file_check_names(const struct handler_file *h,
                                     const struct claimd_plugin *others, size_t count,
                                     struct err *err)
{
    struct plugin_names names = {.plugin = ""};
    if (count == PLUGINS_MAX) {
        return err_fail(err, STATUS_LIMIT, "more than %d plugins and programs", PLUGINS_MAX);
    }
    (void)snprintf(names.plugin, sizeof names.plugin, "%s", h->name);
    for (size_t i = 0; i < CLAIMD_KINDS_MAX && h->kinds[i].name != NULL; i++) {
        (void)snprintf(names.kinds[i], sizeof names.kinds[i], "%s", h->kinds[i].name);
    }
    return plugin_names_check(&names, others, count, err);
}

bool handler_file_is_one(const char *file)
{
    size_t len = strlen(file);
    size_t end = strlen(RUNNER_HANDLER_SUFFIX);
    return len > end && strcmp(file + len - end, RUNNER_HANDLER_SUFFIX) == 0;
}

void handler_file_release(struct handler_file *h)
{
    json_decref(h->root);
    h->root = NULL;
}
