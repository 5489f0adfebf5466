/* SPDX-License-Identifier: Apache-2.0 */
#include "web/server.h"

#include "base/clock.h"
#include "base/parse.h"
#include "daemon/http.h"
#include "web/assets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Connections besides the streams; if there are more, the oldest idle one is closed. */
#define OTHERS_MAX 96
#define CLOSING_MAX 256 /* places for connections whose threads are just ending */
#define IDLE_S 30       /* without any byte */
#define HEAD_US (10 * US_PER_S)
#define NEXT_US (30 * US_PER_S)   /* for the next head of a connection */
#define ANSWER_US (60 * US_PER_S) /* for a body and its answer */
#define STREAM_US (16 * 60 * US_PER_S)
#define STACK_BYTES ((size_t)256 << 10)
#define HEAD_BYTES ((size_t)32 << 10)
#define HEADERS_MAX 100
#define STREAM_BLOCK ((size_t)16 << 10)
#define PEM_MAX ((size_t)64 << 10)

enum connection_state { CONNECTION_UNUSED, CONNECTION_IDLE, CONNECTION_BUSY };

struct connection {
    enum connection_state state;
    int fd;
    uint64_t number;
    int64_t deadline_us;
};

struct server {
    struct web *w;
    struct MHD_Daemon *daemon;
    char address[LISTENER_TEXT_MAX + 160];
    char *certificate;
    char *key;
    bool is_stopping;
    pthread_mutex_t mutex; /* guards the connections */
    size_t connection_max;
    uint64_t number;
    struct connection *connections;
};

/* ---- connections ---- */

static void set_state(struct server *s, struct connection *c, enum connection_state state,
                      int64_t limit_us)
{
    if (c != NULL) {
        (void)pthread_mutex_lock(&s->mutex);
        c->state = state;
        c->deadline_us = clock_boot_us() + limit_us;
        (void)pthread_mutex_unlock(&s->mutex);
    }
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* Clients that send slowly or nothing must not keep others out. The caller holds the mutex. */
static void push_out_oldest(struct server *s)
{
    struct connection *oldest = NULL;
    size_t open_max = s->connection_max - CLOSING_MAX;
    size_t count = 0;
    for (size_t i = 0; i < s->connection_max; i++) {
        struct connection *c = &s->connections[i];
        count += c->state != CONNECTION_UNUSED && c->fd >= 0;
        if (c->state == CONNECTION_IDLE && c->fd >= 0 &&
            (oldest == NULL || c->number < oldest->number)) {
            oldest = c;
        }
    }
    if (count > open_max && oldest != NULL) {
        (void)shutdown(oldest->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes it */
        oldest->fd = -1;
    }
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **own,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *s = ctx;
    struct connection *place = *own;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    (void)pthread_mutex_lock(&s->mutex);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (place != NULL) {
            *place = (struct connection){.state = CONNECTION_UNUSED};
        }
        (void)pthread_mutex_unlock(&s->mutex);
        return;
    }
    *own = NULL;
    for (size_t i = 0; i < s->connection_max && info != NULL; i++) {
        struct connection *c = &s->connections[i];
        if (c->state == CONNECTION_UNUSED) {
            *c = (struct connection){.state = CONNECTION_IDLE,
                                     .fd = info->connect_fd,
                                     .number = ++s->number,
                                     .deadline_us = clock_boot_us() + HEAD_US};
            *own = c;
            break;
        }
    }
    push_out_oldest(s);
    (void)pthread_mutex_unlock(&s->mutex);
}

void server_sweep(struct server *s)
{
    int64_t now_us = clock_boot_us();
    (void)pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->connection_max; i++) {
        struct connection *c = &s->connections[i];
        if (c->state != CONNECTION_UNUSED && c->fd >= 0 && now_us > c->deadline_us) {
            (void)shutdown(c->fd, SHUT_RDWR);
            c->fd = -1;
        }
    }
    (void)pthread_mutex_unlock(&s->mutex);
}

/* ---- requests ---- */

/* A header and its place. `is_single`: refused if it is there twice, since a proxy may have read
 * the other one. */
struct header {
    const char *name;
    size_t offset;
    bool is_single;
};
#define HEADER(text, member, single)                         \
    {                                                        \
        (text), offsetof(struct web_heads, member), (single) \
    }

static const struct header headers[] = {HEADER("Host", host, true),
                                        HEADER("Origin", origin, true),
                                        HEADER("Content-Type", content_type, true),
                                        HEADER("Authorization", authorization, true),
                                        HEADER("Cookie", cookie, false),
                                        HEADER("If-Match", if_match, true),
                                        HEADER("If-None-Match", if_none_match, false),
                                        HEADER("Idempotency-Key", idempotency_key, true),
                                        HEADER("X-Forwarded-For", forwarded_for, true)};

struct reading {
    const struct web *w;
    struct web_request *q;
    size_t lengths;
    size_t count;
};

static void take_header(struct web_heads *heads, const char **place, bool is_single,
                        const char *value)
{
    heads->is_bad = heads->is_bad || (is_single && *place != NULL);
    *place = *place == NULL ? value : *place;
}

static enum MHD_Result on_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct reading *reading = ctx;
    struct web_heads *heads = &reading->q->heads;
    const char *text = value == NULL ? "" : value;
    (void)kind;
    for (size_t i = 0; i < ARRAY_COUNT(headers); i++) {
        if (strcasecmp(headers[i].name, name) == 0) {
            const char **place = (const char **)(void *)((char *)heads + headers[i].offset);
            take_header(heads, place, headers[i].is_single, text);
        }
    }
    if (strcasecmp(name, reading->w->config->web.proxy_user_header) == 0) {
        take_header(heads, &heads->user, true, text);
    }
    heads->takes_gzip = heads->takes_gzip ||
                        (strcasecmp(name, "Accept-Encoding") == 0 && strstr(text, "gzip") != NULL);
    reading->lengths += strcasecmp(name, "Content-Length") == 0;
    bool is_odd = strcasecmp(name, "Transfer-Encoding") == 0;
    heads->is_bad =
        heads->is_bad || is_odd || reading->lengths > 1 || ++reading->count > HEADERS_MAX;
    return MHD_YES;
}

static enum MHD_Result on_query(void *ctx, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    struct web_request *q = ctx;
    (void)kind;
    if (q->query_count == WEB_QUERY_MAX) {
        q->is_query_bad = true;
        return MHD_NO;
    }
    const char *text = value == NULL ? "" : value;
    struct web_param p = {.name = request_decode(q, name, strlen(name)),
                          .value = request_decode(q, text, strlen(text))};
    q->is_query_bad = q->is_query_bad || p.name == NULL || p.value == NULL;
    if (!q->is_query_bad) {
        q->query[q->query_count++] = p;
    }
    return q->is_query_bad ? MHD_NO : MHD_YES;
}

static void find_peer(struct MHD_Connection *mhd, char ret[WEB_ADDRESS_MAX])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info == NULL ? NULL : info->client_addr;
    (void)snprintf(ret, WEB_ADDRESS_MAX, "unknown");
    if (address != NULL && address->sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
                        ret, WEB_ADDRESS_MAX);
    } else if (address != NULL && address->sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                        ret, WEB_ADDRESS_MAX);
        size_t mapped = strncmp(ret, "::ffff:", 7) == 0 && strchr(ret, '.') != NULL ? 7 : 0;
        memmove(ret, ret + mapped, strlen(ret + mapped) + 1);
    }
}

static struct web_request *new_request(const struct server *s, struct MHD_Connection *mhd,
                                       const char *url, const char *method)
{
    struct web_request *q = calloc(1, sizeof *q);
    if (q == NULL) {
        return NULL;
    }
    struct reading reading = {.w = s->w, .q = q};
    q->method = method;
    q->path = url;
    q->body = (struct buf)BUF_INIT(WEB_BODY_MAX);
    find_peer(mhd, q->peer);
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, on_header, &reading);
    (void)MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, on_query, q);
    return q;
}

/* request_decode() decodes values instead: it is strict, and never hides a NUL or a slash. */
static size_t leave_escaped(void *ctx, struct MHD_Connection *mhd, char *text)
{
    (void)ctx;
    (void)mhd;
    return strlen(text);
}

/* ---- answers ---- */

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    if (value[0] != '\0') {
        (void)MHD_add_response_header(response, name, value);
    }
}

static void add_headers(const struct server *s, const struct web_reply *r,
                        struct MHD_Response *response)
{
    char seconds[16] = "";
    if (r->retry_after_s > 0) {
        (void)snprintf(seconds, sizeof seconds, "%d", r->retry_after_s);
    }
    add(response, "Content-Type", r->type == NULL || r->status == 304 ? "" : r->type);
    add(response, "Cache-Control", r->is_page ? "no-cache" : "no-store");
    add(response, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'");
    add(response, "X-Content-Type-Options", "nosniff");
    add(response, "X-Frame-Options", "DENY");
    add(response, "Referrer-Policy", "no-referrer");
    add(response, "Cross-Origin-Opener-Policy", "same-origin");
    add(response, "Cross-Origin-Resource-Policy", "same-origin");
    add(response, "Vary", r->is_page ? "Accept-Encoding" : "");
    add(response, "Content-Encoding", r->is_gzip ? "gzip" : "");
    add(response, "ETag", r->etag);
    add(response, "Set-Cookie", r->cookie);
    add(response, "Allow", r->allow);
    add(response, "Location", r->location);
    add(response, "Retry-After", seconds);
    add(response, "Idempotency-Replayed", r->is_replayed ? "true" : "");
    add(response, "WWW-Authenticate", r->status == 401 ? "Bearer" : "");
    /* So that a request smuggled past a proxy does not reach us as the next one. */
    add(response, "Connection", r->is_last || s->w->config->web.proxy_count > 0 ? "close" : "");
}

static struct MHD_Response *make_response(struct web_reply *r)
{
    if (r->asset != NULL) {
        const unsigned char *bytes = r->is_gzip ? r->asset->packed : r->asset->plain;
        size_t len = r->is_gzip ? r->asset->packed_len : r->asset->plain_len;
        return MHD_create_response_from_buffer(len, (void *)(uintptr_t)bytes,
                                               MHD_RESPMEM_PERSISTENT);
    }
    return MHD_create_response_from_buffer(r->text.buf.len, (void *)(uintptr_t)text_str(&r->text),
                                           MHD_RESPMEM_MUST_COPY);
}

static ssize_t read_stream(void *ctx, uint64_t position, char *bytes, size_t size)
{
    (void)position;
    size_t len = stream_read(ctx, bytes, size);
    return len == 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)len;
}

static void end_stream(void *ctx)
{
    stream_close(ctx);
}

/* NULL: the reply is an error instead. */
static struct MHD_Response *make_stream(struct server *s, struct web_reply *r)
{
    struct stream *stream = NULL;
    struct err err = {0};
    enum status st = stream_open(s->w->events, &stream, &err);
    if (st != STATUS_OK) {
        reply_error(r, WEB_UNAVAILABLE, "ask for api/v1/overview every few seconds", "%s", err.msg);
        return NULL;
    }
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, stream, end_stream);
    if (response == NULL) {
        stream_close(stream);
        reply_error(r, WEB_INTERNAL, NULL, "out of memory");
    }
    return response;
}

static enum MHD_Result send_reply(struct server *s, struct MHD_Connection *mhd,
                                  const struct web_request *q, struct web_reply *r)
{
    struct MHD_Response *response = NULL;
    bool is_stream = r->is_stream && strcmp(q->method, "GET") == 0;
    if (is_stream) {
        response = make_stream(s, r);
        is_stream = response != NULL;
    }
    response = response == NULL ? make_response(r) : response;
    if (response == NULL) {
        return MHD_NO; /* no memory: libmicrohttpd closes the connection */
    }
    add_headers(s, r, response);
    set_state(s, connection_of(mhd), CONNECTION_BUSY, is_stream ? STREAM_US : ANSWER_US);
    enum MHD_Result result = MHD_queue_response(mhd, r->status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(struct server *s, struct MHD_Connection *mhd, struct web_request *q)
{
    struct web_reply r = {.text = TEXT_INIT(WEB_ANSWER_MAX),
                          .is_last = q->is_too_large || q->heads.is_bad};
    web_answer(s->w, q, &r);
    enum MHD_Result result = send_reply(s, mhd, q, &r);
    text_release(&r.text);
    return result;
}

static bool is_long_body(struct MHD_Connection *mhd)
{
    const char *text = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");
    int64_t len = 0;
    return text != NULL &&
           parse_i64(text, strlen(text), 0, (int64_t)WEB_BODY_MAX, &len, NULL) != STATUS_OK;
}

static enum MHD_Result begin(struct server *s, struct MHD_Connection *mhd, struct web_request *q)
{
    set_state(s, connection_of(mhd), CONNECTION_BUSY, ANSWER_US);
    q->is_too_large = is_long_body(mhd);
    /* A body is not read if the response comes in this call. */
    return q->is_too_large || q->heads.is_bad ? answer(s, mhd, q) : MHD_YES;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *len, void **request)
{
    struct server *s = ctx;
    (void)version;
    if (*request == NULL) {
        struct web_request *q = new_request(s, mhd, url, method);
        *request = q;
        return q == NULL ? MHD_NO : begin(s, mhd, q);
    }
    struct web_request *q = *request;
    if (*len > 0) {
        q->is_too_large = q->is_too_large || buf_append(&q->body, bytes, *len, NULL) != STATUS_OK;
        *len = 0;
        return MHD_YES;
    }
    return answer(s, mhd, q);
}

static void on_completed(void *ctx, struct MHD_Connection *mhd, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct server *s = ctx;
    struct web_request *q = *request;
    (void)code;
    if (q != NULL) {
        request_release(q);
        free(q);
        *request = NULL;
    }
    set_state(s, connection_of(mhd), CONNECTION_IDLE, NEXT_US);
}

/* ---- start and stop ---- */

/* Threads of the library start with all signals blocked: only the main thread handles them. */
static struct MHD_Daemon *start(struct server *s, int fd)
{
    sigset_t all;
    sigset_t before;
    bool is_tls = s->key != NULL;
    const struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, s->certificate},
                                         {MHD_OPTION_HTTPS_MEM_KEY, 0, s->key},
                                         {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION |
            (is_tls ? (unsigned int)MHD_USE_TLS : 0U),
        0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned int)s->connection_max, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEAD_BYTES, MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        s, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, is_tls ? tls : none, MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

/* Reads a PEM file. */
static enum status read_pem(const char *key, const char *path, char **ret, struct err *err)
{
    struct stat info;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "%s: '%s'", key, path);
    }
    if (!S_ISREG(info.st_mode) || info.st_size <= 0 || info.st_size > (off_t)PEM_MAX) {
        return err_fail(err, STATUS_INVALID, "%s: '%s' must be a file of at most %zu bytes", key,
                        path, PEM_MAX);
    }
    char *text = calloc(1, (size_t)info.st_size + 1);
    if (text == NULL || read(fd, text, (size_t)info.st_size) != info.st_size) {
        free(text);
        return err_fail(err, STATUS_INVALID, "%s: '%s' cannot be read", key, path);
    }
    *ret = text;
    return STATUS_OK;
}

static enum status read_tls(struct server *s, struct err *err)
{
    const struct config *c = s->w->config;
    if (c->web.tls_key_file[0] == '\0') {
        return STATUS_OK;
    }
    enum status st =
        read_pem("web.tls_certificate_file", c->web.tls_certificate_file, &s->certificate, err);
    if (st != STATUS_OK) {
        return st;
    }
    return read_pem("web.tls_key_file", c->web.tls_key_file, &s->key, err);
}

static enum status listen_on(struct server *s, struct err *err)
{
    const struct config *c = s->w->config;
    struct config_listen where;
    char text[LISTENER_TEXT_MAX];
    autoclose int fd = -1;
    enum status st = config_listen("web.listen", c->web.listen, &where, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = listener_open(&where, &fd, text, err);
    if (st != STATUS_OK) {
        err_prefix(err, "web.listen");
        return st;
    }
    s->daemon = start(s, fd);
    if (s->daemon == NULL) {
        return err_fail(
            err, STATUS_INVALID, "web.listen: cannot serve on %s%s", text,
            s->key != NULL ? ": are web.tls_certificate_file and web.tls_key_file right?" : "");
    }
    fd = -1; /* the library owns it now */
    (void)snprintf(s->address, sizeof s->address, "http%s://%s%s/", s->key != NULL ? "s" : "", text,
                   c->web.path_prefix);
    return STATUS_OK;
}

enum status server_open(struct web *w, struct server **ret, struct err *err)
{
    struct server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    s->w = w;
    (void)pthread_mutex_init(&s->mutex, NULL);
    s->connection_max = (size_t)w->config->web.streams + OTHERS_MAX + CLOSING_MAX;
    s->connections = calloc(s->connection_max, sizeof *s->connections);
    enum status st = STATUS_NOMEM;
    if (s->connections == NULL) {
        err_set(err, st, 0, "out of memory");
    } else {
        st = read_tls(s, err);
    }
    if (st == STATUS_OK) {
        st = listen_on(s, err);
    }
    if (st != STATUS_OK) {
        server_close(s);
        return st;
    }
    *ret = s;
    return STATUS_OK;
}

const char *server_address(const struct server *s)
{
    return s->address;
}

void server_close(struct server *s)
{
    if (s == NULL) {
        return;
    }
    if (s->daemon != NULL) {
        MHD_stop_daemon(s->daemon);
    }
    if (s->key != NULL) {
        explicit_bzero(s->key, strlen(s->key));
    }
    free(s->certificate);
    free(s->key);
    free(s->connections);
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
}
