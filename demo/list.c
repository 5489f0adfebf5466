/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/list.h"

#include "base/parse.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define SUMS "/var/lib/dpkg/info/*.md5sums"
#define MD5_HEX 32
#define GROW_FIRST 4096

/* True if the file exists, but the unprivileged user of the workers cannot read it. */
static bool is_hidden(const char *path)
{
    char dir[PATH_MAX];
    struct stat st;
    if (stat(path, &st) != 0) {
        return errno == EACCES;
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & S_IROTH) == 0 || realpath(path, dir) == NULL) {
        return true;
    }
    for (char *slash = strrchr(dir, '/'); slash != dir; slash = strrchr(dir, '/')) {
        *slash = '\0';
        if (stat(dir, &st) != 0 || (st.st_mode & S_IXOTH) == 0) {
            return true;
        }
    }
    return false;
}

static enum status add(struct list *l, const char *md5, const char *path, struct err *err)
{
    if (l->count % GROW_FIRST == 0) {
        void *p = realloc(l->entries, (l->count + GROW_FIRST) * sizeof *l->entries);
        if (p == NULL) {
            return err_fail(err, STATUS_NOMEM, "list of files: no memory");
        }
        l->entries = p;
    }
    struct list_entry *e = &l->entries[l->count];
    size_t len = strlen(path);
    e->path = malloc(len + 2);
    if (e->path == NULL) {
        return err_fail(err, STATUS_NOMEM, "list of files: no memory");
    }
    e->path[0] = '/';
    memcpy(e->path + 1, path, len + 1);
    memcpy(e->md5, md5, MD5_HEX);
    e->md5[MD5_HEX] = '\0';
    l->count++;
    return STATUS_OK;
}

/* Reads the lines "<md5>  usr/share/…" of one package. */
static enum status read_sums(struct list *l, const char *file, struct err *err)
{
    autofree char *line = NULL;
    size_t size = 0;
    ssize_t n = 0;
    enum status st = STATUS_OK;
    FILE *f = fopen(file, "re");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot open %s", file);
    }
    while (st == STATUS_OK && (n = getline(&line, &size, f)) > 0) {
        line[strcspn(line, "\n")] = '\0';
        const char *path = line + MD5_HEX + 2;
        if (n > MD5_HEX + 2 && strspn(line, "0123456789abcdef") == MD5_HEX) {
            st = add(l, line, path, err);
        }
    }
    (void)fclose(f);
    return st;
}

static bool is_plain(const char *path)
{
    return strchr(path, '\\') == NULL && utf8_is_clean(path, strlen(path));
}

/* Keeps every (count / max)th of the usable entries, in their order. */
static void thin_out(struct list *l, size_t max)
{
    size_t kept = 0;
    size_t usable = 0;
    for (size_t i = 0; i < l->count; i++) {
        struct list_entry *e = &l->entries[i];
        bool is_turn = max == 0 || l->count <= max || usable * l->count <= i * max;
        bool is_usable = is_turn && is_plain(e->path) && !is_hidden(e->path);
        usable += is_usable ? 1 : 0;
        l->left_out += is_turn && !is_usable ? 1 : 0;
        if (is_usable && (max == 0 || kept < max)) {
            l->entries[kept++] = *e;
        } else {
            free(e->path);
        }
    }
    l->count = kept;
}

enum status list_read(size_t max, struct list *ret, struct err *err)
{
    struct list l = {0};
    glob_t found = {0};
    enum status st = STATUS_OK;
    if (glob(SUMS, 0, NULL, &found) != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no " SUMS ": the demo needs a Debian system");
    }
    for (size_t i = 0; i < found.gl_pathc && st == STATUS_OK; i++) {
        st = read_sums(&l, found.gl_pathv[i], err);
    }
    globfree(&found);
    if (st != STATUS_OK) {
        list_release(&l);
        return st;
    }
    thin_out(&l, max);
    *ret = l;
    return STATUS_OK;
}

void list_release(struct list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->entries[i].path);
    }
    free(l->entries);
    *l = (struct list){0};
}

static void put_md5(FILE *f, const struct list_entry *e)
{
    (void)fprintf(f, "%s  %s\n", e->md5, e->path);
}

static void put_job(FILE *f, const struct list_entry *e)
{
    (void)fputs("{\"kind\": \"checksum\", \"args\": {\"path\": \"", f);
    for (const char *p = e->path; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"') {
            (void)fputs("\\\"", f);
        } else if (c < ' ') {
            (void)fprintf(f, "\\u%04x", c);
        } else {
            (void)fputc(c, f);
        }
    }
    (void)fprintf(f, "\", \"md5\": \"%s\"}}\n", e->md5);
}

static enum status write_lines(const struct list *l, const char *path,
                               void (*put)(FILE *, const struct list_entry *), struct err *err)
{
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot write %s", path);
    }
    for (size_t i = 0; i < l->count; i++) {
        put(f, &l->entries[i]);
    }
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot write %s", path);
    }
    return STATUS_OK;
}

enum status list_write_md5(const struct list *l, const char *path, struct err *err)
{
    return write_lines(l, path, put_md5, err);
}

enum status list_write_jobs(const struct list *l, const char *path, struct err *err)
{
    return write_lines(l, path, put_job, err);
}
