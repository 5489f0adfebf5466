/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/script.h"

#include <stdio.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define SCRIPT_MAX ((size_t)1 << 20)

static enum status append_line(const char *line, const struct script_word *words, struct buf *out,
                               struct err *err)
{
    while (*line != '\0') {
        const struct script_word *w = words;
        while (w != NULL && w->name != NULL && strncmp(line, w->name, strlen(w->name)) != 0) {
            w++;
        }
        bool is_word = w != NULL && w->name != NULL;
        enum status st =
            is_word ? buf_append_text(out, w->value, err) : buf_append_byte(out, *line, err);
        if (st != STATUS_OK) {
            return st;
        }
        line += is_word ? strlen(w->name) : 1;
    }
    return STATUS_OK;
}

enum status script_read(const char *name, const struct script_word *words, struct buf *out,
                        struct err *err)
{
    char path[PATH_SIZE];
    autofree char *line = NULL;
    size_t size = 0;
    enum status st = STATUS_OK;
    (void)snprintf(path, sizeof path, "%s/%s", SOAK_SOURCE_DIR, name);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open %s", path);
    }
    while (st == STATUS_OK && getline(&line, &size, f) > 0) {
        st = append_line(line, words, out, err);
    }
    (void)fclose(f);
    return st;
}

enum status script_run(struct session *s, const char *name, const struct script_word *words,
                       struct err *err)
{
    autobuf struct buf sql = BUF_INIT(SCRIPT_MAX);
    enum status st = script_read(name, words, &sql, err);
    if (st == STATUS_OK) {
        st = session_run(s, buf_at(&sql), NULL, 0, NULL, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s", name);
    }
    return st;
}
