/* SPDX-License-Identifier: Apache-2.0
 *
 * A request to claimd-web and its answer, without the HTTP library: web/server.c makes the one and
 * sends the other. A request belongs to the thread of its connection. */
#ifndef CLAIMD_WEB_REQUEST_H
#define CLAIMD_WEB_REQUEST_H

#include "base/text.h"

#include <jansson.h>
#include <stdbool.h>

#define WEB_QUERY_MAX 64                  /* parameters */
#define WEB_IN_PATH_MAX 2                 /* {name} in a path */
#define WEB_BODY_MAX ((size_t)1 << 20)    /* bytes */
#define WEB_ANSWER_MAX ((size_t)16 << 20) /* bytes */
#define WEB_PRECISION 15 /* digits of numbers that pass through a parser: 0.1 stays 0.1 */
#define WEB_ADDRESS_MAX 64
#define WEB_WHO_MAX 64
#define WEB_ETAG_MAX 80
#define WEB_COOKIE_MAX 384

enum web_role { WEB_NOBODY, WEB_READER, WEB_OPERATOR };

enum web_by { WEB_BY_NONE, WEB_BY_OPEN, WEB_BY_TOKEN, WEB_BY_COOKIE, WEB_BY_PROXY };

struct web_caller {
    enum web_role role;
    enum web_by by;
    char who[WEB_WHO_MAX];         /* "" if nobody has said */
    char address[WEB_ADDRESS_MAX]; /* for the audit; behind a trusted proxy what that says */
};

struct web_param {
    const char *name;
    const char *value;
};

/* Headers, NULL if absent. Those that decide who asks are refused if they are there twice. */
struct web_heads {
    const char *host;
    const char *origin;
    const char *content_type;
    const char *authorization;
    const char *cookie;
    const char *if_match;
    const char *if_none_match;
    const char *idempotency_key;
    const char *forwarded_for;
    const char *user; /* web.proxy_user_header */
    bool takes_gzip;
    bool is_bad; /* a length in doubt, or a header twice */
};

struct web_request {
    const char *method;
    const char *path; /* still escaped */
    char peer[WEB_ADDRESS_MAX];
    struct web_heads heads;
    struct web_param query[WEB_QUERY_MAX]; /* decoded */
    size_t query_count;
    struct web_param in_path[WEB_IN_PATH_MAX];
    size_t in_path_count;
    char *kept[2 * WEB_QUERY_MAX + WEB_IN_PATH_MAX]; /* owns the decoded texts */
    size_t kept_count;
    struct buf body;
    json_t *json; /* the parsed body, an object; NULL = none */
    struct web_caller caller;
    bool is_too_large;
    bool is_query_bad; /* too many parameters, or one that is not UTF-8 */
};

struct web_asset;

struct web_reply {
    unsigned status;
    const char *type;              /* a constant */
    struct text text;              /* the body, unless there is an asset */
    const struct web_asset *asset; /* embedded: not copied */
    bool is_gzip;
    bool is_page;   /* may be kept by browsers if they ask whether it has changed */
    bool is_stream; /* of events, in place of a body */
    char etag[WEB_ETAG_MAX];
    char cookie[WEB_COOKIE_MAX];
    char allow[64];
    char location[192];
    int retry_after_s; /* 0 = none */
    bool is_replayed;  /* the answer to an earlier request with this Idempotency-Key */
    bool is_last;      /* what follows on this connection may be no request */
};

/* What an error is called, its HTTP status, and the exit code of claimctl for the same failure. */
#define WEB_ERROR_MAP(X)                      \
    X(INVALID, "invalid", 400, 2)             \
    X(UNAUTHORIZED, "unauthorized", 401, 1)   \
    X(FORBIDDEN, "forbidden", 403, 1)         \
    X(READ_ONLY, "read_only", 403, 1)         \
    X(NOT_FOUND, "not_found", 404, 4)         \
    X(METHOD, "method_not_allowed", 405, 2)   \
    X(CONFLICT, "conflict", 409, 5)           \
    X(VERSION, "version_conflict", 412, 5)    \
    X(TOO_LARGE, "too_large", 413, 2)         \
    X(TYPE, "unsupported_type", 415, 2)       \
    X(HOST, "bad_host", 421, 2)               \
    X(KEY_USED, "key_used", 422, 5)           \
    X(NO_VERSION, "version_required", 428, 2) \
    X(TOO_MANY, "too_many", 429, 1)           \
    X(INTERNAL, "internal", 500, 1)           \
    X(UNKNOWN, "unknown", 500, 1)             \
    X(UNAVAILABLE, "unavailable", 503, 3)     \
    X(TIMEOUT, "timeout", 504, 3)

enum web_error {
#define X(name, text, status, exit) WEB_##name,
    WEB_ERROR_MAP(X)
#undef X
        WEB_ERRORS
};

struct web_error_row {
    const char *code;
    unsigned status;
    int exit;
};
extern const struct web_error_row web_errors[WEB_ERRORS];

/* Makes the reply this error. `hint` may be NULL. */
void reply_error(struct web_reply *r, enum web_error error, const char *hint, const char *format,
                 ...) PRINTF_LIKE(4, 5);
/* Makes the reply the error of a failed verb. */
void reply_failure(struct web_reply *r, enum status st, const struct err *err);
/* Makes the reply this JSON text, which it takes, with status 200. */
void reply_json(struct web_reply *r, struct text *text);

/* Returns the value of a parameter in the path, which must have it. */
const char *request_in_path(const struct web_request *q, const char *name);
/* Copies the text [0..len) and decodes its %XX. NULL: not UTF-8, with a NUL, or no memory. */
const char *request_decode(struct web_request *q, const char *text, size_t len);
void request_release(struct web_request *q);

#endif
