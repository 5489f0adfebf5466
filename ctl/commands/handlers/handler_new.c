/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl handler new: makes a project with a handler, completely or not at all. It is made beside
 * its final place, and moved there at the end. */
#include "base/build.h"
#include "base/parse.h"
#include "base/text.h"
#include "cluster/servers.h"
#include "ctl/commands/handlers/templates.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "model/job.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define TEXT_MAX ((size_t)1 << 20)

/* The values to fill in. */
struct project {
    const char *language;
    const char *name;
    char dir[PATH_MAX];     /* absolute */
    char quoted[PATH_MAX];  /* the same, escaped as the inside of a JSON string */
    char unready[PATH_MAX]; /* where it is being made; "" = nowhere */
    struct text files;      /* a list in JSON */
};

/* ---- the request ---- */

static bool is_first(const struct handler_template *t)
{
    return t == handler_templates || strcmp(t[-1].language, t->language) != 0;
}

static enum status find_language(const char *language, struct err *err)
{
    char known[64] = "";
    size_t at = 0;
    for (const struct handler_template *t = handler_templates; t->language != NULL; t++) {
        if (language != NULL && strcmp(t->language, language) == 0) {
            return STATUS_OK;
        }
        if (is_first(t) && at < sizeof known) {
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at > 0 ? ", " : "",
                                   t->language);
        }
    }
    if (language == NULL) {
        return err_fail(err, STATUS_INVALID, "--lang is missing; allowed: %s", known);
    }
    return err_fail(err, STATUS_INVALID, "--lang: '%.40s' is not allowed; allowed: %s", language,
                    known);
}

/* Finds the folder. Refuses a path with {, which could be taken for an arg of a job in a
 * command. */
static enum status find_dir(struct project *p, struct err *err)
{
    char cwd[PATH_MAX];
    struct stat info;
    if (getcwd(cwd, sizeof cwd) == NULL) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot find the current folder");
    }
    if (!utf8_is_clean(cwd, strlen(cwd)) || strchr(cwd, '{') != NULL) {
        return err_fail(err, STATUS_INVALID, "the path of this folder has a '{' or is not UTF-8");
    }
    int n = snprintf(p->dir, sizeof p->dir, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, p->name);
    json_auto_t *path = json_string(p->dir);
    autofree char *json = json_dumps(path, JSON_ENCODE_ANY);
    size_t len = json == NULL ? 0 : strlen(json);
    if (n >= (int)sizeof p->dir || len < 2 || len > sizeof p->quoted) {
        return err_fail(err, STATUS_INVALID, "the path of this folder is too long");
    }
    (void)snprintf(p->quoted, sizeof p->quoted, "%.*s", (int)len - 2, json + 1);
    if (lstat(p->name, &info) == 0) {
        return err_fail(err, STATUS_CONFLICT, "'%s' already exists", p->name);
    }
    return STATUS_OK;
}

static enum status plan(struct project *p, const struct ctl_args *args, struct err *err)
{
    p->name = args->words[0];
    p->language = ctl_value(args, "lang");
    enum status st = job_kind_check(p->name, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = find_language(p->language, err);
    if (st != STATUS_OK) {
        return st;
    }
    return find_dir(p, err);
}

/* ---- its files ---- */

/* Returns the value of the "@NAME@" that the text begins with, and its length there; NULL: it
 * begins with none. */
static const char *value_at(const struct project *p, const char *text, size_t *ret_len)
{
    const struct {
        const char *name;
        const char *value;
    } values[] = {{"@NAME@", p->name}, {"@DIR@", p->quoted}, {"@VERSION@", CLAIMD_RELEASE}};
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        *ret_len = strlen(values[i].name);
        if (strncmp(text, values[i].name, *ret_len) == 0) {
            return values[i].value;
        }
    }
    return NULL;
}

static void fill_in(const struct project *p, const char *text, struct text *out)
{
    while (*text != '\0') {
        size_t len = 0;
        const char *value = value_at(p, text, &len);
        if (value != NULL) {
            text_put(out, "%s", value);
        } else {
            len = 1 + strcspn(text + 1, "@");
            text_put_bytes(out, text, len);
        }
        text += len;
    }
}

/* Replaces NAME in "handlers/NAME.json", and puts the folder before it. */
static void path_of(const struct project *p, const char *path, char ret[PATH_MAX])
{
    const char *name = strstr(path, "NAME");
    if (name == NULL) {
        (void)snprintf(ret, PATH_MAX, "%s", path);
    } else {
        (void)snprintf(ret, PATH_MAX, "%.*s%s%s", (int)(name - path), path, p->name,
                       name + strlen("NAME"));
    }
}

static enum status make_folder_of(int root, const char *path, struct err *err)
{
    char folder[PATH_MAX];
    const char *slash = strchr(path, '/');
    if (slash == NULL) {
        return STATUS_OK;
    }
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (mkdirat(root, folder, 0755) != 0 && errno != EEXIST) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot make %s", folder);
    }
    return STATUS_OK;
}

static enum status write_file(int root, const char *path, const struct text *text, struct err *err)
{
    const char *bytes = text_str(text);
    bool is_program = strncmp(bytes, "#!", 2) == 0;
    autoclose int fd =
        openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_program ? 0755 : 0644);
    size_t at = 0;
    ssize_t n = 0;
    while (fd >= 0 && at < text->buf.len && (n = write(fd, bytes + at, text->buf.len - at)) > 0) {
        at += (size_t)n;
    }
    if (fd < 0 || at < text->buf.len || fsync(fd) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write %s", path);
    }
    return STATUS_OK;
}

static enum status make_file(struct project *p, int root, const struct handler_template *t,
                             struct err *err)
{
    char path[PATH_MAX];
    autotext struct text text = TEXT_INIT(TEXT_MAX);
    path_of(p, t->path, path);
    fill_in(p, t->text, &text);
    text_put(&p->files, "%s\"%s\"", p->files.buf.len > 0 ? ", " : "[", path);
    enum status st = text_end(&text, err);
    if (st == STATUS_OK) {
        st = make_folder_of(root, path, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return write_file(root, path, &text, err);
}

static enum status make_files(struct project *p, struct err *err)
{
    autoclose int root = open(p->unready, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status st = STATUS_OK;
    if (root < 0 || fchmod(root, 0755) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot open %s", p->unready);
    }
    for (const struct handler_template *t = handler_templates;
         st == STATUS_OK && t->language != NULL; t++) {
        if (strcmp(t->language, p->language) == 0) {
            st = make_file(p, root, t, err);
        }
    }
    return st;
}

/* ---- the project ---- */

/* Some file systems do not support RENAME_NOREPLACE; rename() there could replace only an empty
 * folder. */
static enum status move(struct project *p, struct err *err)
{
    int rc = renameat2(AT_FDCWD, p->unready, AT_FDCWD, p->name, RENAME_NOREPLACE);
    if (rc != 0 && errno == EINVAL) {
        rc = rename(p->unready, p->name);
    }
    if (rc != 0) {
        enum status st = errno == EEXIST ? STATUS_CONFLICT : STATUS_INTERNAL;
        return err_fail_sys(err, st, errno, "cannot make '%s'", p->name);
    }
    p->unready[0] = '\0';
    return STATUS_OK;
}

static enum status make(struct project *p, struct err *err)
{
    (void)snprintf(p->unready, sizeof p->unready, ".%s.XXXXXX", p->name);
    if (mkdtemp(p->unready) == NULL) {
        p->unready[0] = '\0';
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot write to this folder");
    }
    enum status st = make_files(p, err);
    if (st == STATUS_OK) {
        st = move(p, err);
    }
    dir_remove(p->unready);
    return st;
}

static enum status say(const struct project *p, const struct ctl *ctl, struct err *err)
{
    static const struct table_column columns[] = {
        {"name", CELL_TEXT}, {"lang", CELL_TEXT}, {"dir", CELL_TEXT}, {"files", CELL_JSON}};
    if (!ctl->is_json) {
        (void)fprintf(ctl->out, "made %s; %s/README.md says how to run it, %s/test tries it\n",
                      p->name, p->name, p->name);
        return STATUS_OK;
    }
    return PRINT_RECORD(ctl, "project", columns,
                        ((const char *const[]){p->name, p->language, p->dir, text_str(&p->files)}),
                        err);
}

enum status handler_new(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct project p = {.files = TEXT_INIT(TEXT_MAX)};
    enum status st = plan(&p, args, err);
    if (st == STATUS_OK) {
        st = make(&p, err);
    }
    if (st == STATUS_OK) {
        text_put(&p.files, "]");
        st = text_end(&p.files, err);
    }
    if (st == STATUS_OK) {
        st = say(&p, ctl, err);
    }
    text_release(&p.files);
    return st;
}
