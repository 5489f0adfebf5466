/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl handlers check: reports what the runner of a worker would report about handler files,
 * all of it at once, without starting anything. */
#include "base/parse.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "runner/handler_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>

static const struct table_column handler_columns[] = {
    {"file", CELL_TEXT}, {"kinds", CELL_JSON}, {"args", CELL_JSON}};
static const struct table_column finding_columns[] = {
    {"file", CELL_TEXT}, {"level", CELL_TEXT}, {"problem", CELL_TEXT}};

struct check {
    struct plugin_owners owners;
    /* The files that were read; used for their names, since their contents are in `files`. */
    struct claimd_plugin plugins[PLUGINS_MAX];
    struct handler_file files[PLUGINS_MAX];
    size_t count;
    struct handler_mistakes mistakes;
    char file[PATH_MAX];   /* the present file, as it is displayed */
    char folder[PATH_MAX]; /* the last folder found wrong */
    struct table handlers;
    struct table findings;
    bool is_wrong;
    struct err err; /* NOMEM */
};

/* ---- findings ---- */

static void find(struct check *c, const char *level, const char *problem)
{
    char clean[ERR_TEXT_MAX];
    const char *const values[] = {c->file, level, clean};
    (void)utf8_clean(problem, strlen(problem), clean, sizeof clean);
    enum status st = table_add(&c->findings, values, &c->err);
    c->is_wrong = c->is_wrong || st != STATUS_OK || strcmp(level, "error") == 0;
}

static void on_mistake(void *ctx, const char *text)
{
    find(ctx, "error", text);
}

static void set_file(struct check *c, const char *folder, const char *file)
{
    char path[PATH_MAX];
    bool is_here = strcmp(folder, ".") == 0;
    (void)snprintf(path, sizeof path, "%s%s%s", is_here ? "" : folder,
                   is_here || file[0] == '\0' ? "" : "/", file);
    (void)utf8_clean(path, strlen(path), c->file, sizeof c->file);
}

/* ---- a readable file ---- */

static const char *next_arg(const char *text, const char **ret_at, size_t *ret_size)
{
    enum command_piece piece = COMMAND_OCTET;
    size_t name = 0;
    for (const char *at = text; *at != '\0'; at += *ret_size) {
        *ret_size = command_piece(at, &piece, &name);
        if (piece == COMMAND_ARG || piece == COMMAND_JSON) {
            *ret_at = at;
            return at + *ret_size;
        }
    }
    return NULL;
}

static bool has(const json_t *list, const char *text, size_t len)
{
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        if (json_string_length(item) == len && memcmp(json_string_value(item), text, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Lists the args that are filled in, each once. Warns of an arg that is not filled in because the
 * program serves, unless it looks like a shell's ${name}. */
static json_t *list_args(struct check *c, const struct handler_file *h)
{
    json_t *args = json_array();
    for (size_t i = 1; h->argv[0] != NULL && h->argv[i] != NULL; i++) {
        const char *at = NULL;
        size_t size = 0;
        for (const char *rest = h->argv[i]; (rest = next_arg(rest, &at, &size)) != NULL;) {
            if (h->is_once && !has(args, at + 1, size - 2)) {
                (void)json_array_append_new(args, json_stringn(at + 1, size - 2));
            } else if (!h->is_once && (at == h->argv[i] || at[-1] != '$')) {
                char problem[ERR_TEXT_MAX];
                (void)snprintf(problem, sizeof problem,
                               "command: %.*s is filled in only with \"mode\": \"once\"", (int)size,
                               at);
                find(c, "warning", problem);
            }
        }
    }
    return args;
}

static json_t *list_kinds(const struct handler_file *h)
{
    json_t *kinds = json_array();
    for (size_t i = 0; i < CLAIMD_KINDS_MAX && h->kinds[i].name != NULL; i++) {
        (void)json_array_append_new(kinds, json_string(h->kinds[i].name));
    }
    return kinds;
}

static void add_handler(struct check *c, const struct handler_file *h)
{
    json_auto_t *kinds = list_kinds(h);
    json_auto_t *args = list_args(c, h);
    autofree char *kinds_text = json_dumps(kinds, 0);
    autofree char *args_text = json_dumps(args, 0);
    const char *const values[] = {c->file, kinds_text, args_text};
    if (table_add(&c->handlers, values, &c->err) != STATUS_OK) {
        c->is_wrong = true;
    }
}

/* Keeps the names of the file, even if it has mistakes. */
static void keep(struct check *c, const struct handler_file *h)
{
    c->plugins[c->count] = (struct claimd_plugin){.name = c->files[c->count].name};
    memcpy(c->plugins[c->count].kinds, h->kinds, sizeof h->kinds);
    c->count++;
}

/* ---- files ---- */

static void read_file(struct check *c, int directory, const char *name)
{
    struct err err = {0};
    autoclose int fd = -1;
    if (plugin_open(directory, name, &fd, &err) != STATUS_OK) {
        find(c, "error", err.msg);
        return;
    }
    struct handler_file over; /* one more than a worker loads */
    struct handler_file *h = c->count < PLUGINS_MAX ? &c->files[c->count] : &over;
    enum status st = handler_file_read(fd, name, &c->owners, &c->mistakes, h, &err);
    enum status names = handler_file_check_names(h, c->plugins, c->count, &err);
    if (names != STATUS_OK || (st != STATUS_OK && err.msg[0] != '\0')) {
        find(c, "error", err.msg);
    }
    if (st == STATUS_OK && names == STATUS_OK) {
        add_handler(c, h);
    }
    if (h == &over) {
        handler_file_release(h);
        return;
    }
    keep(c, h);
}

/* Reports a wrong folder once, however many of its files are named. */
static bool open_folder(struct check *c, const char *folder, int *ret_fd)
{
    struct err err = {0};
    if (plugin_open_folder(folder, &c->owners, ret_fd, &err) == STATUS_OK) {
        return true;
    }
    if (strcmp(c->folder, folder) != 0) {
        (void)snprintf(c->folder, sizeof c->folder, "%s", folder);
        set_file(c, folder, "");
        find(c, "error", err.msg);
    }
    return false;
}

static void check_one(struct check *c, const char *path)
{
    char before[PATH_MAX];
    char name[PATH_MAX];
    autoclose int directory = -1;
    (void)snprintf(before, sizeof before, "%s", path);
    (void)snprintf(name, sizeof name, "%s", path);
    const char *folder = dirname(before);
    const char *file = basename(name);
    if (!open_folder(c, folder, &directory)) {
        return;
    }
    set_file(c, folder, file);
    if (!handler_file_is_one(file)) {
        find(c, "error", "workers read NAME" RUNNER_HANDLER_SUFFIX " alone");
        return;
    }
    read_file(c, directory, file);
}

static int is_handler_file(const struct dirent *entry)
{
    return handler_file_is_one(entry->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void check_folder(struct check *c, const char *folder)
{
    autoclose int directory = -1;
    struct dirent **entries = NULL;
    if (!open_folder(c, folder, &directory)) {
        return;
    }
    int count = scandirat(directory, ".", &entries, is_handler_file, by_name);
    if (count <= 0) {
        set_file(c, folder, "");
        find(c, "error", "no NAME" RUNNER_HANDLER_SUFFIX " is in this folder");
    }
    for (int i = 0; i < count; i++) {
        set_file(c, folder, entries[i]->d_name);
        read_file(c, directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

/* ---- output ---- */

static void put_list(FILE *out, const char *before, const char *json)
{
    json_auto_t *list = json_loads(json, 0, NULL);
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(list, i, item)
    {
        (void)fprintf(out, "%s%s", i == 0 ? before : ", ", json_string_value(item));
    }
}

static void print_lines(const struct check *c, FILE *out)
{
    for (size_t i = 0; i < c->findings.row_count; i++) {
        bool is_warning = strcmp(table_value(&c->findings, i, "level"), "warning") == 0;
        (void)fprintf(out, "%s: %s%s\n", table_value(&c->findings, i, "file"),
                      is_warning ? "warning: " : "", table_value(&c->findings, i, "problem"));
    }
    for (size_t i = 0; i < c->handlers.row_count; i++) {
        (void)fprintf(out, "%s: ok", table_value(&c->handlers, i, "file"));
        put_list(out, ", serves ", table_value(&c->handlers, i, "kinds"));
        put_list(out, "; takes args ", table_value(&c->handlers, i, "args"));
        (void)fprintf(out, "\n");
    }
}

static enum status print(const struct check *c, const struct ctl *ctl, struct err *err)
{
    const struct table *const tables[] = {&c->handlers, &c->findings};
    if (c->err.status != STATUS_OK) {
        return err_fail(err, c->err.status, "%s", c->err.msg);
    }
    if (ctl->is_json) {
        enum status st = tables_print(tables, ARRAY_COUNT(tables), true, ctl->out, err);
        if (st != STATUS_OK) {
            return st;
        }
    } else {
        print_lines(c, ctl->out);
    }
    return c->is_wrong ? STATUS_INVALID : STATUS_OK; /* the findings have been printed */
}

/* ---- the command ---- */

static enum status read_owners(const struct ctl *ctl, struct plugin_owners *ret, struct err *err)
{
    struct config config;
    char uids[CONFIG_UIDS_SIZE];
    enum status st = ctl_load_config(ctl, &config, err);
    if (st == STATUS_OK) {
        st = config_plugin_owners(&config, uids, err);
    }
    explicit_bzero(&config, sizeof config);
    if (st != STATUS_OK) {
        return st;
    }
    return plugin_owners_parse(uids, ret, err);
}

static void release(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        handler_file_release(&c->files[i]);
    }
    table_release(&c->handlers);
    table_release(&c->findings);
}

enum status handlers_check(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    autofree struct check *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the handler files");
    }
    enum status st = read_owners(ctl, &c->owners, err);
    if (st != STATUS_OK) {
        return st;
    }
    c->mistakes = (struct handler_mistakes){.found = on_mistake, .ctx = c};
    c->handlers = (struct table)TABLE("handlers", handler_columns);
    c->findings = (struct table)TABLE("findings", finding_columns);
    for (size_t i = 0; i < args->word_count; i++) {
        struct stat info;
        if (stat(args->words[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            check_folder(c, args->words[i]);
        } else {
            check_one(c, args->words[i]);
        }
    }
    st = print(c, ctl, err);
    release(c);
    return st;
}
