/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/link.h"

#include "redis/tls.h"

#include <assert.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#define READ_BYTES ((size_t)64 << 10)
#define KEEPALIVE_S 15
#define USER_TIMEOUT_MS 20000        /* for unacknowledged bytes */
#define KEPT_BYTES ((size_t)1 << 20) /* memory beyond this that a burst took is freed */

struct link {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    uv_connect_t connect;
    /* on a duplicate of the descriptor: libuv allows only one watcher per descriptor */
    uv_poll_t writable;
    int writable_fd; /* −1 = not needed so far */
    struct link_events events;
    struct tls *tls; /* NULL = no TLS */
    struct buf out;
    struct buf wire; /* with TLS: the encrypted form of `out` */
    size_t handles_open;
    bool is_waiting;   /* until the socket accepts more */
    bool is_open;      /* the socket is connected */
    bool is_connected; /* … and TLS, if any */
    bool is_closed;    /* by its owner: no more events */
    char read_bytes[READ_BYTES];
};

static void link_free_when_idle(struct link *l)
{
    if (!l->is_closed || l->handles_open > 0) {
        return;
    }
    buf_release(&l->out);
    buf_release(&l->wire);
    tls_close(l->tls);
    free(l);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct link *l = handle->data;
    l->handles_open--;
    link_free_when_idle(l);
}

static void fail_for(struct link *l, const struct err *why)
{
    if (!l->is_closed) {
        l->events.on_failed(l->events.ctx, why);
    }
}

static void fail(struct link *l, const char *what, int uv_status)
{
    struct err why = {0};
    err_set(&why, STATUS_UNAVAILABLE, 0, "%s: %s", what, uv_strerror(uv_status));
    fail_for(l, &why);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)suggested;
    struct link *l = handle->data;
    *ret_buf = uv_buf_init(l->read_bytes, sizeof l->read_bytes);
}

static void connected(struct link *l)
{
    l->is_connected = true;
    l->events.on_connected(l->events.ctx);
}

static enum status shake_hands(struct link *l, bool *ret_is_over, struct err *err)
{
    enum status st = tls_handshake(l->tls, ret_is_over, err);
    if (tls_take(l->tls, &l->wire, err) == STATUS_OK) {
        link_flush(l); /* also sends an alert, which gives the peer the reason */
    }
    return st;
}

static void take_tls(struct link *l, const char *bytes, size_t len)
{
    struct err why = {0};
    enum status st = tls_feed(l->tls, bytes, len, &why);
    if (st == STATUS_OK && !l->is_connected) {
        bool is_over = false;
        st = shake_hands(l, &is_over, &why);
        if (st == STATUS_OK && is_over && !l->is_closed) {
            connected(l);
        }
    }
    size_t count = 1;
    while (st == STATUS_OK && l->is_connected && !l->is_closed && count > 0) {
        st = tls_read(l->tls, l->read_bytes, sizeof l->read_bytes, &count, &why);
        if (count > 0) {
            l->events.on_bytes(l->events.ctx, l->read_bytes, count);
        }
    }
    if (st != STATUS_OK) {
        fail_for(l, &why);
    }
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    struct link *l = stream->data;
    if (l->is_closed || count == 0) {
        return;
    }
    if (count < 0) {
        fail(l, l->is_connected ? "connection lost" : "TLS handshake", (int)count);
    } else if (l->tls != NULL) {
        take_tls(l, bytes->base, (size_t)count);
    } else {
        l->events.on_bytes(l->events.ctx, bytes->base, (size_t)count);
    }
}

static void on_connect(uv_connect_t *request, int uv_status)
{
    struct link *l = request->data;
    if (l->is_closed) {
        return;
    }
    if (uv_status == 0) {
        uv_status = uv_read_start(&l->io.stream, on_alloc, on_read);
    }
    if (uv_status != 0) {
        fail(l, "connect", uv_status);
        return;
    }
    l->is_open = true;
    if (l->tls == NULL) {
        connected(l);
        return;
    }
    struct err why = {0};
    bool is_over = false;
    if (shake_hands(l, &is_over, &why) != STATUS_OK) {
        fail_for(l, &why);
    }
}

/* Called once uv_tcp_connect() has created the socket. */
static void set_up_socket(struct link *l)
{
    const int timeout_ms = USER_TIMEOUT_MS;
    uv_os_fd_t fd = -1;
    (void)uv_tcp_nodelay(&l->io.tcp, 1);
    (void)uv_tcp_keepalive(&l->io.tcp, 1, KEEPALIVE_S);
    (void)uv_fileno(&l->io.handle, &fd);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

static int start(struct link *l, const struct link_target *target)
{
    const struct redis_endpoint *e = target->endpoint;
    if (e->path[0] != '\0') {
        uv_pipe_connect(&l->connect, &l->io.pipe, e->path, on_connect);
        return 0;
    }
    int r = uv_tcp_connect(&l->connect, &l->io.tcp, target->address, on_connect);
    if (r == 0) {
        set_up_socket(l);
    }
    return r;
}

enum status link_open(uv_loop_t *loop, const struct link_target *target,
                      const struct link_events *events, struct link **ret_link, struct err *err)
{
    const struct redis_endpoint *e = target->endpoint;
    struct link *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a connection");
    }
    enum status st = e->is_tls ? tls_open(target->tls, e->host, &l->tls, err) : STATUS_OK;
    if (st != STATUS_OK) {
        free(l);
        return st;
    }
    l->events = *events;
    l->writable_fd = -1;
    buf_init(&l->out, LINK_OUT_BYTES_MAX);
    buf_init(&l->wire, LINK_OUT_BYTES_MAX + LINK_OUT_BYTES_MAX / 64); /* TLS adds 1 % */
    int r = e->path[0] != '\0' ? uv_pipe_init(loop, &l->io.pipe, 0) : uv_tcp_init(loop, &l->io.tcp);
    if (r != 0) {
        tls_close(l->tls);
        free(l);
        return err_fail(err, STATUS_UNAVAILABLE, "redis: socket: %s", uv_strerror(r));
    }
    l->io.handle.data = l;
    l->connect.data = l;
    l->writable.data = l;
    l->handles_open = 1;
    r = start(l, target);
    if (r != 0) {
        link_close(l);
        return err_fail(err, STATUS_UNAVAILABLE, "connect: %s", uv_strerror(r));
    }
    *ret_link = l;
    return STATUS_OK;
}

const char *link_lacks(const struct link *l)
{
    return l->is_open && !l->is_connected ? "no TLS handshake in time: does that port speak TLS?"
                                          : "no connection in time";
}

void link_close(struct link *l)
{
    if (l == NULL) {
        return;
    }
    assert(!l->is_closed);
    l->is_closed = true;
    uv_close(&l->io.handle, on_handle_closed);
    if (l->writable_fd >= 0) {
        uv_close((uv_handle_t *)&l->writable, on_handle_closed);
        (void)close(l->writable_fd); /* libuv has stopped polling it */
    }
}

struct buf *link_out(struct link *l)
{
    return &l->out;
}

static void forget(struct buf *written)
{
    if (written->cap > KEPT_BYTES) {
        buf_release(written);
    } else {
        buf_reset(written);
    }
}

static void on_writable(uv_poll_t *poll, int uv_status, int events)
{
    struct link *l = poll->data;
    (void)uv_status; /* the next write reports any error */
    (void)events;
    (void)uv_poll_stop(poll);
    l->is_waiting = false;
    link_flush(l);
}

static int wait_until_writable(struct link *l, int fd)
{
    if (l->writable_fd < 0) {
        l->writable_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (l->writable_fd < 0) {
            return uv_translate_sys_error(errno);
        }
        int r = uv_poll_init(l->io.handle.loop, &l->writable, l->writable_fd);
        if (r != 0) {
            (void)close(l->writable_fd);
            l->writable_fd = -1;
            return r;
        }
        l->handles_open++;
    }
    l->is_waiting = true;
    return uv_poll_start(&l->writable, UV_WRITABLE, on_writable);
}

static void send_out(struct link *l)
{
    struct buf *bytes = l->tls != NULL ? &l->wire : &l->out;
    uv_os_fd_t fd = -1;
    ssize_t sent = 0;
    (void)uv_fileno(&l->io.handle, &fd);
    while (bytes->len > 0 && sent >= 0) {
        sent = send(fd, buf_at(bytes), bytes->len, MSG_NOSIGNAL);
        if (sent >= 0) {
            buf_consume(bytes, (size_t)sent);
        } else if (errno == EINTR) {
            sent = 0;
        }
    }
    if (bytes->len == 0) {
        forget(bytes);
        return;
    }
    if (errno == EPIPE || errno == ECONNRESET) {
        forget(bytes); /* the read side reports the end, after the peer's last bytes */
        return;
    }
    int r = errno == EAGAIN ? wait_until_writable(l, fd) : uv_translate_sys_error(errno);
    if (r != 0) {
        fail(l, "write", r);
    }
}

static enum status encrypt(struct link *l, struct err *err)
{
    enum status st = tls_write(l->tls, buf_at(&l->out), l->out.len, err);
    if (st != STATUS_OK) {
        return st;
    }
    forget(&l->out);
    return tls_take(l->tls, &l->wire, err);
}

void link_flush(struct link *l)
{
    struct err why = {0};
    if (!l->is_open || l->is_waiting) {
        return;
    }
    bool has_plain = l->tls != NULL && l->is_connected && l->out.len > 0;
    if (has_plain && encrypt(l, &why) != STATUS_OK) {
        fail_for(l, &why);
    } else {
        send_out(l);
    }
}
