/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses Redis endpoints as they are written in the configuration. */
#include "base/parse.h"
#include "redis/redis.h"

#include <stdio.h>
#include <stdlib.h>

#define URL_SCHEME "redis://"
#define TLS_SCHEME "rediss://"
#define UNIX_SCHEME "unix:"
#define DB_MAX 1023
#define LIST_MAX 16

static enum status copy_part(const char *what, const char *text, size_t len, char *out, size_t size,
                             struct err *err)
{
    if (len >= size) {
        return err_fail(err, STATUS_INVALID, "redis endpoint: %s is longer than %zu characters",
                        what, size - 1);
    }
    memcpy(out, text, len);
    out[len] = '\0';
    return STATUS_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes %XX in place; NUL can't be part of a name or a password. */
static enum status percent_decode(const char *what, char *text, struct err *err)
{
    char *out = text;
    for (const char *p = text; *p != '\0'; p++) {
        char c = *p;
        if (c == '%') {
            int high = hex_digit(p[1]);
            int low = high < 0 ? -1 : hex_digit(p[2]);
            if (low < 0 || high + low == 0) {
                return err_fail(err, STATUS_INVALID, "redis endpoint: bad %%XX in the %s", what);
            }
            c = (char)(high * 16 + low);
            p += 2;
        }
        *out++ = c;
    }
    *out = '\0';
    return STATUS_OK;
}

static enum status parse_port(const char *text, size_t len, struct redis_endpoint *e,
                              struct err *err)
{
    int64_t port = 0;
    enum status st = parse_i64(text, len, 1, 65535, &port, err);
    if (st != STATUS_OK) {
        err_prefix(err, "redis endpoint: port");
        return st;
    }
    e->port = (int)port;
    return STATUS_OK;
}

/* "host", "host:port", "[v6]", "[v6]:port" */
static enum status parse_host_port(const char *text, size_t len, struct redis_endpoint *e,
                                   struct err *err)
{
    const char *host = text;
    size_t host_len = len;
    const char *rest = NULL; /* what follows the host: "" or ":port" */
    if (len > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', len);
        if (close == NULL) {
            return err_fail(err, STATUS_INVALID, "redis endpoint: '[' without ']'");
        }
        host = text + 1;
        host_len = (size_t)(close - host);
        rest = close + 1;
    } else {
        const char *colon = memchr(text, ':', len);
        rest = colon != NULL ? colon : text + len;
        host_len = (size_t)(rest - text);
    }
    size_t rest_len = (size_t)(text + len - rest);
    if (host_len == 0) {
        return err_fail(err, STATUS_INVALID, "redis endpoint: the host is empty");
    }
    if (rest_len > 0 && rest[0] != ':') {
        return err_fail(err, STATUS_INVALID, "redis endpoint: expected ':port' after ']'");
    }
    enum status st = copy_part("host", host, host_len, e->host, sizeof e->host, err);
    if (st != STATUS_OK || rest_len == 0) {
        return st;
    }
    return parse_port(rest + 1, rest_len - 1, e, err);
}

/* "user", "user:password", ":password" */
static enum status parse_credentials(const char *text, size_t len, struct redis_endpoint *e,
                                     struct err *err)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon != NULL ? (size_t)(colon - text) : len;
    enum status st = copy_part("user", text, user_len, e->user, sizeof e->user, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (colon != NULL) {
        st = copy_part("password", colon + 1, len - user_len - 1, e->password, sizeof e->password,
                       err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = percent_decode("user", e->user, err);
    if (st != STATUS_OK) {
        return st;
    }
    return percent_decode("password", e->password, err);
}

static enum status parse_url(const char *text, struct redis_endpoint *e, struct err *err)
{
    size_t len = strcspn(text, "/");
    if (text[len] == '/' && text[len + 1] != '\0') {
        int64_t db = 0;
        enum status st = parse_i64(text + len + 1, strlen(text + len + 1), 0, DB_MAX, &db, err);
        if (st != STATUS_OK) {
            err_prefix(err, "redis endpoint: database");
            return st;
        }
        e->db = (int)db;
    }
    const char *at = memchr(text, '@', len);
    if (at != NULL) {
        enum status st = parse_credentials(text, (size_t)(at - text), e, err);
        if (st != STATUS_OK) {
            return st;
        }
        len -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    return parse_host_port(text, len, e, err);
}

enum status redis_endpoint_parse(const char *text, struct redis_endpoint *ret, struct err *err)
{
    struct redis_endpoint e = {.port = REDIS_PORT_DEFAULT};
    enum status st = STATUS_OK;
    if (strncmp(text, UNIX_SCHEME, strlen(UNIX_SCHEME)) == 0) {
        const char *path = text + strlen(UNIX_SCHEME);
        if (path[0] != '/') {
            return err_fail(err, STATUS_INVALID, "redis endpoint: unix: needs an absolute path");
        }
        st = copy_part("path", path, strlen(path), e.path, sizeof e.path, err);
    } else if (strncmp(text, URL_SCHEME, strlen(URL_SCHEME)) == 0) {
        st = parse_url(text + strlen(URL_SCHEME), &e, err);
    } else if (strncmp(text, TLS_SCHEME, strlen(TLS_SCHEME)) == 0) {
        e.is_tls = true;
        st = parse_url(text + strlen(TLS_SCHEME), &e, err);
    } else if (strstr(text, "://") != NULL) {
        st = err_fail(err, STATUS_INVALID,
                      "redis endpoint: the schemes are " URL_SCHEME " and " TLS_SCHEME);
    } else {
        st = parse_host_port(text, strlen(text), &e, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    *ret = e;
    return STATUS_OK;
}

enum status redis_endpoint_check_list(const char *name, const char *texts, size_t size,
                                      size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct redis_endpoint endpoint;
        enum status st = redis_endpoint_parse(texts + i * size, &endpoint, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s, item %zu", name, i + 1);
            return st;
        }
    }
    return STATUS_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum status redis_endpoint_sorted_list(const char *texts, size_t size, size_t count, char *ret,
                                       size_t ret_size, struct err *err)
{
    char addresses[LIST_MAX][REDIS_ENDPOINT_TEXT_SIZE];
    if (count == 0 || count > LIST_MAX) {
        return err_fail(err, STATUS_INVALID, "%zu nodes are given; allowed: 1 to %d", count,
                        LIST_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        struct redis_endpoint endpoint;
        enum status st = redis_endpoint_parse(texts + i * size, &endpoint, err);
        if (st != STATUS_OK) {
            return st;
        }
        redis_endpoint_text(&endpoint, addresses[i], sizeof addresses[i]);
    }
    qsort(addresses, count, sizeof addresses[0], by_text);
    autobuf struct buf out = BUF_INIT(ret_size - 1);
    for (size_t i = 0; i < count; i++) {
        enum status st = buf_printf(&out, err, "%s%s", i == 0 ? "" : ",", addresses[i]);
        if (st != STATUS_OK) {
            return st;
        }
    }
    memcpy(ret, buf_at(&out), out.len + 1);
    return STATUS_OK;
}

enum status redis_endpoint_login(struct redis_endpoint *e, const char *user, const char *password,
                                 struct err *err)
{
    if (user != NULL && e->user[0] == '\0') {
        enum status st = copy_part("user", user, strlen(user), e->user, sizeof e->user, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    e->is_filled_in = e->is_filled_in || e->password[0] == '\0';
    return password == NULL || !e->is_filled_in ? STATUS_OK
                                                : copy_part("password", password, strlen(password),
                                                            e->password, sizeof e->password, err);
}

void redis_endpoint_text(const struct redis_endpoint *e, char *ret_text, size_t size)
{
    if (e->path[0] != '\0') {
        (void)snprintf(ret_text, size, UNIX_SCHEME "%s", e->path);
    } else if (strchr(e->host, ':') != NULL) {
        (void)snprintf(ret_text, size, "[%s]:%d", e->host, e->port);
    } else {
        (void)snprintf(ret_text, size, "%s:%d", e->host, e->port);
    }
}
