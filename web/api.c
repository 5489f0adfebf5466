/* SPDX-License-Identifier: Apache-2.0
 *
 * What every request passes before a route runs. The order matters: whether the host is right, then
 * which route, then who asks, then whether a page of another origin sent it, then what they may. */
#include "web/api.h"

#include "web/assets.h"

#include <stdio.h>
#include <strings.h>

#define DEPTH_MAX 32
#define API "/api/"
#define ASSETS "/assets/"

/* ---- routes ---- */

static bool is_same_segment(struct web_request *q, const char *pattern, size_t pattern_len,
                            const char *path, size_t len)
{
    if (pattern[0] != '{') {
        return pattern_len == len && strncmp(pattern, path, len) == 0;
    }
    static const char *const names[] = {"id", "name", "worker", "batch", "key"};
    const char *value =
        len > 0 && q->in_path_count < WEB_IN_PATH_MAX ? request_decode(q, path, len) : NULL;
    for (size_t i = 0; value != NULL && i < ARRAY_COUNT(names); i++) {
        if (strlen(names[i]) == pattern_len - 2 &&
            strncmp(names[i], pattern + 1, pattern_len - 2) == 0) {
            q->in_path[q->in_path_count++] = (struct web_param){names[i], value};
            return true;
        }
    }
    return false;
}

static bool is_same_path(struct web_request *q, const char *pattern, const char *path)
{
    q->in_path_count = 0;
    while (*pattern == '/' && *path == '/') {
        size_t pattern_len = strcspn(pattern + 1, "/");
        size_t len = strcspn(path + 1, "/");
        if (!is_same_segment(q, pattern + 1, pattern_len, path + 1, len)) {
            return false;
        }
        pattern += 1 + pattern_len;
        path += 1 + len;
    }
    return *pattern == '\0' && *path == '\0';
}

/* Counts the segments, so that a pattern is tried only if its number is the same: each try may
 * decode a value, and there is room for a few. */
static size_t depth(const char *path)
{
    size_t count = 0;
    for (const char *c = path; *c != '\0'; c++) {
        count += *c == '/';
    }
    return count;
}

/* True if the pattern's fixed segments are those of the path. */
static bool is_alike(const char *pattern, const char *path)
{
    while (*pattern == '/' && *path == '/') {
        size_t pattern_len = strcspn(pattern + 1, "/");
        size_t len = strcspn(path + 1, "/");
        if (pattern[1] != '{' && (pattern_len != len || strncmp(pattern + 1, path + 1, len) != 0)) {
            return false;
        }
        pattern += 1 + pattern_len;
        path += 1 + len;
    }
    return *pattern == '\0' && *path == '\0';
}

/* Among several, the pattern with the fewest parameters is meant: /jobs/many, not /jobs/{id}. */
static const struct web_route *find_route(struct web_request *q, const char *path,
                                          const char *method, struct web_reply *r)
{
    const struct web_route *found = NULL;
    const char *asked = strcmp(method, "HEAD") == 0 ? "GET" : method;
    bool is_path = false;
    for (size_t i = 0; i < web_route_count; i++) {
        const struct web_route *route = &web_routes[i];
        if (depth(route->path) != depth(path) || !is_alike(route->path, path)) {
            continue;
        }
        size_t len = strlen(r->allow);
        bool is_new = strstr(r->allow, route->method) == NULL;
        (void)snprintf(r->allow + len, sizeof r->allow - len, "%s%s", is_new && len > 0 ? ", " : "",
                       is_new ? route->method : "");
        is_path = true;
        if (strcmp(route->method, asked) == 0 &&
            (found == NULL || strchr(found->path, '{') != NULL)) {
            found = found == NULL || strchr(route->path, '{') == NULL ? route : found;
        }
    }
    if (found != NULL && is_same_path(q, found->path, path)) {
        r->allow[0] = '\0';
        return found;
    }
    if (is_path && found == NULL) {
        reply_error(r, WEB_METHOD, NULL, "%.20s is not allowed here; allowed: %s", method,
                    r->allow);
    } else {
        r->allow[0] = '\0';
        reply_error(r, WEB_NOT_FOUND, "see api/v1/openapi.json", "there is no %.120s", path);
    }
    return NULL;
}

/* ---- bodies ---- */

/* Bounds the depth before the parser recurses. */
static bool is_shallow(const char *text, size_t len)
{
    int open = 0;
    bool is_text = false;
    for (size_t i = 0; i < len; i++) {
        if (is_text && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            is_text = !is_text;
        } else if (!is_text && (text[i] == '{' || text[i] == '[')) {
            open++;
        } else if (!is_text && (text[i] == '}' || text[i] == ']')) {
            open--;
        }
        if (open > DEPTH_MAX) {
            return false;
        }
    }
    return true;
}

static bool is_json_type(const char *type)
{
    static const char json[] = "application/json";
    size_t len = sizeof json - 1;
    return type != NULL && strncasecmp(type, json, len) == 0 &&
           (type[len] == '\0' || type[len] == ';' || type[len] == ' ');
}

static bool read_body(struct web_request *q, struct web_reply *r)
{
    json_error_t why;
    if (q->is_too_large) {
        reply_error(r, WEB_TOO_LARGE, NULL, "the body has more than %zu bytes", WEB_BODY_MAX);
        return false;
    }
    if (!is_json_type(q->heads.content_type)) {
        reply_error(r, WEB_TYPE, NULL, "Content-Type: must be application/json");
        return false;
    }
    if (q->body.len == 0) {
        return true;
    }
    if (!is_shallow(buf_at(&q->body), q->body.len)) {
        reply_error(r, WEB_INVALID, NULL, "body: more than %d levels of JSON", DEPTH_MAX);
        return false;
    }
    q->json = json_loadb(buf_at(&q->body), q->body.len, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(q->json)) {
        reply_error(r, WEB_INVALID, NULL, "body: must be a JSON object%s%s",
                    q->json == NULL ? ": " : "", q->json == NULL ? why.text : "");
        return false;
    }
    return true;
}

/* ---- who may ---- */

static bool is_reading(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static bool may(struct web *w, const struct web_route *route, struct web_request *q,
                struct web_reply *r)
{
    bool is_act = !is_reading(q->method) && route->role != WEB_NOBODY;
    if (!is_reading(q->method) && !auth_origin_is_fine(w->auth, q)) {
        reply_error(r, WEB_FORBIDDEN, "let the proxy pass on Host, or name the host in web.hosts",
                    "Origin: the request comes from another page");
        return false;
    }
    if (route->role == WEB_NOBODY) {
        return true;
    }
    if (q->caller.role == WEB_NOBODY) {
        reply_error(r, WEB_UNAUTHORIZED, "log in, or send Authorization: Bearer TOKEN",
                    "a token is needed");
        return false;
    }
    if (is_act && !w->config->web.is_operating) {
        reply_error(r, WEB_READ_ONLY, "set web.mode to operate", "this server changes nothing");
        return false;
    }
    if (q->caller.role < route->role) {
        reply_error(r, WEB_FORBIDDEN, NULL, "only operators may do this");
        return false;
    }
    return true;
}

static void run(struct web *w, const struct web_route *route, struct web_request *q,
                struct web_reply *r)
{
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    if (route->make != NULL) {
        autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
        enum status st = shared_get(w->shared, route, &text, &err);
        if (st == STATUS_OK) {
            reply_json(r, &text);
        } else {
            reply_failure(r, st, &err);
        }
        return;
    }
    if (route->run != NULL) {
        route->run(w, route, q, r);
        return;
    }
    enum status st = web_call(route, route->verb, q, &call, &texts, &err);
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    web_run_call(w, q, &call, r);
}

static void act(struct web *w, const struct web_route *route, struct web_request *q,
                struct web_reply *r)
{
    struct err err = {0};
    int64_t id = 0;
    enum status st = audit_begin(w, q, &id, &err);
    if (st != STATUS_OK) {
        err_prefix(&err, "nothing was done, because it could not be recorded");
        reply_failure(r, st, &err);
        return;
    }
    run(w, route, q, r);
    audit_end(w, id, r->status);
    shared_forget(w->shared);
}

static void answer_api(struct web *w, struct web_request *q, struct web_reply *r, const char *path)
{
    const struct web_route *route = find_route(q, path, q->method, r);
    if (route == NULL) {
        return;
    }
    auth_find(w->auth, q, &q->caller);
    if (!may(w, route, q, r)) {
        return;
    }
    if (q->is_query_bad) {
        reply_error(r, WEB_INVALID, NULL, "query: at most %d parameters, each in UTF-8",
                    WEB_QUERY_MAX);
        return;
    }
    if (q->heads.idempotency_key != NULL && !is_reading(q->method) && !route->takes_key) {
        reply_error(r, WEB_INVALID, "leave it out",
                    "Idempotency-Key: only POST of /api/v1/jobs and /api/v1/jobs/many takes one");
        return;
    }
    if (!is_reading(q->method) && !read_body(q, r)) {
        return;
    }
    if (!is_reading(q->method) && route->role != WEB_NOBODY) {
        act(w, route, q, r);
    } else {
        run(w, route, q, r);
    }
}

/* ---- all requests ---- */

static void answer_page(struct web *w, struct web_request *q, struct web_reply *r, const char *path)
{
    if (!is_reading(q->method)) {
        (void)snprintf(r->allow, sizeof r->allow, "GET, HEAD");
        reply_error(r, WEB_METHOD, NULL, "%.20s is not allowed here; allowed: GET, HEAD",
                    q->method);
        return;
    }
    bool is_asset = strncmp(path, ASSETS, strlen(ASSETS)) == 0;
    if (!is_asset && path[1] != '\0') {
        reply_error(r, WEB_NOT_FOUND, "the page is at /, the API below /api/v1/",
                    "there is no %.120s", path);
        return;
    }
    const char *name = is_asset ? path + strlen(ASSETS) : "index.html";
    assets_reply(w->config->web.assets_dir, name, q, r);
}

void web_answer(struct web *w, struct web_request *q, struct web_reply *r)
{
    const char *prefix = w->config->web.path_prefix;
    size_t len = strlen(prefix);
    if (q->heads.is_bad) {
        reply_error(r, WEB_INVALID, NULL,
                    "a header is there twice, or the length of the body is in doubt");
        return;
    }
    if (!auth_host_is_fine(w->auth, &q->heads)) {
        reply_error(r, WEB_HOST, "name this host in web.hosts",
                    "Host: this server is not reached by this name");
        return;
    }
    if (strncmp(q->path, prefix, len) != 0 || (q->path[len] != '/' && q->path[len] != '\0')) {
        reply_error(r, WEB_NOT_FOUND, NULL, "everything is below %s/", prefix);
        return;
    }
    const char *path = q->path + len;
    if (path[0] == '\0') {
        reply_error(r, WEB_NOT_FOUND, NULL, "see %s/", prefix);
        r->status = 308;
        (void)snprintf(r->location, sizeof r->location, "%s/", prefix);
        return;
    }
    if (strncmp(path, API, strlen(API)) == 0) {
        answer_api(w, q, r, path);
    } else {
        answer_page(w, q, r, path);
    }
}
