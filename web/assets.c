/* SPDX-License-Identifier: Apache-2.0 */
#include "web/assets.h"

#include "base/hash.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_MAX ((off_t)4 << 20)

static const struct {
    const char *ending;
    const char *type;
} types[] = {{".html", "text/html; charset=utf-8"},
             {".css", "text/css; charset=utf-8"},
             {".js", "text/javascript; charset=utf-8"},
             {".mjs", "text/javascript; charset=utf-8"},
             {".svg", "image/svg+xml"},
             {".json", "application/json"},
             {".webmanifest", "application/manifest+json"},
             {".txt", "text/plain; charset=utf-8"},
             {".png", "image/png"},
             {".ico", "image/x-icon"},
             {".woff2", "font/woff2"}};

/* NULL: no file of this kind is served. */
static const char *type_of(const char *name)
{
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending != NULL && i < ARRAY_COUNT(types); i++) {
        if (strcmp(types[i].ending, ending) == 0) {
            return types[i].type;
        }
    }
    return NULL;
}

/* True for a relative path of plain names: none is empty or begins with a dot. */
static bool is_plain(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
    return name[0] != '\0' && name[0] != '.' && name[0] != '/' && strstr(name, "//") == NULL &&
           strstr(name, "/.") == NULL && name[strspn(name, letters)] == '\0';
}

static void not_found(struct web_reply *r, const char *name)
{
    reply_error(r, WEB_NOT_FOUND, NULL, "there is no file '%.80s'", name);
}

/* Sets the ETag; true if the browser has this version. */
static bool is_known(const struct web_request *q, struct web_reply *r, const char *hash)
{
    (void)snprintf(r->etag, sizeof r->etag, "\"%s\"", hash);
    r->is_page = true;
    bool is_same =
        q->heads.if_none_match != NULL && strstr(q->heads.if_none_match, r->etag) != NULL;
    r->status = is_same ? 304 : 200;
    return is_same;
}

static void reply_embedded(const char *name, const struct web_request *q, struct web_reply *r)
{
    const struct web_asset *a = web_assets;
    while (a->name != NULL && strcmp(a->name, name) != 0) {
        a++;
    }
    if (a->name == NULL) {
        not_found(r, name);
        return;
    }
    if (!is_known(q, r, a->hash)) {
        r->asset = a;
        r->is_gzip = q->heads.takes_gzip;
    }
}

static bool read_all(int fd, size_t size, struct text *out)
{
    char part[8192];
    ssize_t len = 1;
    while (out->buf.len < size && len > 0) {
        len = read(fd, part, sizeof part);
        if (len > 0) {
            text_put_bytes(out, part, (size_t)len);
        }
    }
    return out->err.status == STATUS_OK && out->buf.len == size;
}

static void reply_file(const char *folder, const char *name, const struct web_request *q,
                       struct web_reply *r)
{
    char path[PATH_MAX];
    char hash[32];
    struct stat info;
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    autoclose int fd = n > 0 && (size_t)n < sizeof path
                           ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                           : -1;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > FILE_MAX ||
        !read_all(fd, (size_t)info.st_size, &text)) {
        not_found(r, name);
        return;
    }
    (void)snprintf(hash, sizeof hash, "%08x-%zx", hash_bytes(text_str(&text), text.buf.len),
                   text.buf.len);
    if (!is_known(q, r, hash)) {
        r->text = text;
        text = (struct text)TEXT_INIT(WEB_ANSWER_MAX);
    }
}

void assets_reply(const char *folder, const char *name, const struct web_request *q,
                  struct web_reply *r)
{
    r->type = type_of(name);
    if (!is_plain(name) || r->type == NULL) {
        not_found(r, name);
        return;
    }
    if (folder[0] != '\0') {
        reply_file(folder, name, q, r);
    } else {
        reply_embedded(name, q, r);
    }
}
