/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/http.h"

#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX 64
#define CONNECTIONS_CROWDED 48 /* above it, each new one closes the oldest */
#define IDLE_S 10
#define MEMORY_PER_CONNECTION ((size_t)16 << 10) /* a longer request head is refused */
#define NOT_FOUND_MAX 128

struct connection {
    int fd; /* -1: unused, or already shut down */
    uint64_t number;
};

struct http {
    struct http_options options;
    struct MHD_Daemon *daemon;
    char not_found[NOT_FOUND_MAX];
    char address[LISTENER_TEXT_MAX];
    struct connection connections[CONNECTIONS_MAX]; /* used by the HTTP thread only */
    uint64_t number;
};

/* ---- responses ---- */

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned int code,
                                     const char *type, struct MHD_Response *response)
{
    if (response == NULL) {
        return MHD_NO; /* no memory: libmicrohttpd closes the connection */
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned int code,
                                 const char *text)
{
    return send_response(connection, code, "text/plain; charset=utf-8",
                         MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                         MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_page(const struct http *h, struct MHD_Connection *connection,
                                 const struct http_page *page)
{
    struct http_answer answer = {.is_fine = true};
    enum MHD_Result result = MHD_NO; /* no memory: libmicrohttpd closes the connection */
    if (page->answer(h->options.ctx, &answer, NULL) == STATUS_OK) {
        result = send_response(
            connection, answer.is_fine ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, answer.type,
            MHD_create_response_from_buffer(answer.text.len, buf_at(&answer.text),
                                            MHD_RESPMEM_MUST_COPY));
    }
    buf_release(&answer.text);
    return result;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_len, void **request)
{
    const struct http *h = ctx;
    (void)version;
    (void)body; /* never read: responding in the first call closes the connection */
    (void)body_len;
    (void)request;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
    }
    for (size_t i = 0; i < h->options.page_count; i++) {
        if (strcmp(url, h->options.pages[i].path) == 0) {
            return send_page(h, connection, &h->options.pages[i]);
        }
    }
    return send_text(connection, MHD_HTTP_NOT_FOUND, h->not_found);
}

/* ---- connections ---- */

/* Clients that send slowly or not at all must not keep others out: when there are many connections,
 * the oldest is closed. */
static void push_out_oldest(struct http *h)
{
    struct connection *oldest = NULL;
    size_t count = 0;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &h->connections[i];
        if (c->fd >= 0) {
            count++;
            oldest = oldest == NULL || c->number < oldest->number ? c : oldest;
        }
    }
    if (count > CONNECTIONS_CROWDED) {
        (void)shutdown(oldest->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes it */
        oldest->fd = -1;
    }
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **own,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *h = ctx;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        struct connection *c = *own;
        if (c != NULL) {
            *c = (struct connection){.fd = -1};
        }
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *own = NULL;
    for (size_t i = 0; i < CONNECTIONS_MAX && info != NULL; i++) {
        struct connection *c = &h->connections[i];
        if (c->number == 0) {
            *c = (struct connection){.fd = info->connect_fd, .number = ++h->number};
            *own = c;
            push_out_oldest(h);
            return;
        }
    }
}

/* ---- start and stop ---- */

/* The thread is started with all signals blocked: only the loop's thread handles them. */
static struct MHD_Daemon *start(struct http *h, int fd)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned int)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_PER_CONNECTION,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

/* Writes "Not found. There are /a, /b and /c." */
static void name_pages(struct http *h)
{
    const char *before = "Not found. There are ";
    size_t len = 0;
    for (size_t i = 0; i < h->options.page_count; i++) {
        const char *after = i + 1 == h->options.page_count ? ".\n" : "";
        len += (size_t)snprintf(h->not_found + len, sizeof h->not_found - len, "%s%s%s", before,
                                h->options.pages[i].path, after);
        assert(len < sizeof h->not_found);
        before = i + 2 == h->options.page_count ? " and " : ", ";
    }
}

enum status http_open(const struct http_options *options, struct http **ret, struct err *err)
{
    const char *key = options->key;
    struct config_listen where;
    *ret = NULL;
    enum status st = config_listen(key, options->listen, &where, err);
    if (st != STATUS_OK || where.is_off) {
        return st;
    }
    autofree struct http *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return err_fail(err, STATUS_NOMEM, "%s: no memory", key);
    }
    h->options = *options;
    name_pages(h);
    autoclose int fd = -1;
    st = listener_open(&where, &fd, h->address, err);
    if (st != STATUS_OK) {
        err_prefix(err, "%s", key);
        return st;
    }
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        h->connections[i].fd = -1;
    }
    h->daemon = start(h, fd);
    if (h->daemon == NULL) {
        return err_fail(err, STATUS_INTERNAL, "%s: cannot start a thread for %s", key, h->address);
    }
    fd = -1; /* the daemon owns it now */
    *ret = TAKE(h);
    return STATUS_OK;
}

const char *http_address(const struct http *h)
{
    return h == NULL ? "off" : h->address;
}

void http_close(struct http *h)
{
    if (h != NULL) {
        MHD_stop_daemon(h->daemon);
        free(h);
    }
}
