/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/verdicts.h"

#include "base/clock.h"

#include <stdio.h>

#define OUTPUT_MAX ((size_t)256 << 20)
#define MD5SUM_US (600 * US_PER_S)

static const char *const texts[] = {"none", "match", "mismatch", "missing"};

static enum verdict verdict_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        if (strcmp(text, texts[i]) == 0) {
            return (enum verdict)i;
        }
    }
    return VERDICT_NONE;
}

/* Cuts the next line off *rest; NULL at the end. */
static char *next_line(char **rest)
{
    char *line = *rest;
    char *end = strchr(line, '\n');
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    *rest = end + 1;
    return line;
}

/* Ids increase in the order of the file, so the n-th row by id is the n-th entry. */
static enum status read_here(struct cluster *c, const struct list *l, unsigned char *ret_verdicts,
                             struct err *err)
{
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = cluster_sql(c,
                                 "SELECT coalesce(result->>'verdict', 'none') || (args->>'path')"
                                 " FROM claimd.job_history ORDER BY id",
                                 &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    char *rest = out.len > 0 ? buf_at(&out) : NULL;
    for (size_t i = 0; i < l->count; i++) {
        char *line = rest != NULL ? next_line(&rest) : NULL;
        char *path = line != NULL ? strchr(line, '/') : NULL;
        if (path == NULL || strcmp(path, l->entries[i].path) != 0) {
            return err_fail(err, STATUS_INTERNAL, "no result, or one of another file, for %s",
                            l->entries[i].path);
        }
        *path = '\0';
        ret_verdicts[i] = (unsigned char)verdict_of(line);
    }
    return STATUS_OK;
}

static enum verdict verdict_of_md5sum(const char *line)
{
    const char *colon = strrchr(line, ':');
    if (colon == NULL) {
        return VERDICT_NONE;
    }
    return strcmp(colon, ": OK") == 0       ? VERDICT_MATCH
           : strcmp(colon, ": FAILED") == 0 ? VERDICT_MISMATCH
                                            : VERDICT_MISSING; /* "FAILED open or read" */
}

static enum status read_there(const struct list *l, const char *sums_path,
                              unsigned char *ret_verdicts, struct err *err)
{
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    static const char *const env[] = {"LC_ALL=C", NULL};
    const char *const argv[] = {"/bin/sh", "-c", "exec md5sum -c \"$0\" 2>/dev/null", sums_path,
                                NULL};
    int code = 0; /* 1 if anything differs: only the lines count */
    enum status st = program_run(argv, env, MD5SUM_US, &out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    char *rest = out.len > 0 ? buf_at(&out) : NULL;
    for (size_t i = 0; i < l->count; i++) {
        char *line = rest != NULL ? next_line(&rest) : NULL;
        size_t len = strlen(l->entries[i].path);
        if (line == NULL || strncmp(line, l->entries[i].path, len) != 0) {
            return err_fail(err, STATUS_INTERNAL, "md5sum says nothing of %s", l->entries[i].path);
        }
        ret_verdicts[i] = (unsigned char)verdict_of_md5sum(line + len);
    }
    return STATUS_OK;
}

enum status verdicts_compare(struct cluster *c, const struct list *l, const char *sums_path,
                             struct verdicts *ret, struct err *err)
{
    struct verdicts v = {0};
    autofree unsigned char *here = calloc(l->count, 1);
    autofree unsigned char *there = calloc(l->count, 1);
    if (here == NULL || there == NULL) {
        return err_fail(err, STATUS_NOMEM, "compare: no memory");
    }
    enum status st = read_here(c, l, here, err);
    if (st == STATUS_OK) {
        st = read_there(l, sums_path, there, err);
    }
    for (size_t i = 0; i < l->count && st == STATUS_OK; i++) {
        v.here[here[i]]++;
        v.there[there[i]]++;
        v.different += here[i] != there[i] ? 1 : 0;
    }
    *ret = v;
    return st;
}
