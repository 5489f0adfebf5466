/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault_proxy.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cluster/flow.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CONNS_MAX 32
#define WORDS_MAX 8192 /* commands of one connection whose replies are awaited */
#define WORD_SIZE 16
#define QUEUE_BYTES_MAX ((size_t)4 << 20)
#define READ_BYTES ((size_t)64 << 10)
#define UNREAD_BYTES_MAX ((size_t)64 << 20)
#define DEPTH_MAX 16

struct conn {
    int client_fd; /* -1 = free */
    int server_fd;
    struct flow to_server;
    struct flow to_client;
    struct buf commands; /* the beginning of an incomplete command; `replies` likewise */
    struct buf replies;
    char words[WORDS_MAX][WORD_SIZE]; /* commands whose replies are awaited */
    size_t word_head;
    size_t word_count;
    bool is_endless;
    bool is_client_gone; /* what it has sent is still forwarded */
};

struct fault_proxy {
    pthread_t thread;
    pthread_mutex_t mutex; /* protects all below, except while the thread polls */
    int listen_fd;
    int wake_fd;
    char url[32];
    struct sockaddr_un server;
    struct conn *conns[CONNS_MAX];
    struct fault fault;
    size_t fault_left; /* of a fault with a count */
    char on[WORD_SIZE];
    char text[FAULT_TEXT_MAX];
    char more[FAULT_TEXT_MAX];
    int64_t to_server_us;
    int64_t to_client_us;
    bool is_half_open;
    bool is_stopping;
    struct fault_proxy_counts counts;
};

/* ---- the protocol ---- */

/* Returns the length of the value at the head, 0 = incomplete. For a command, *ret_word is its
 * first word. */
static size_t value_len(const char *at, size_t len, int depth, const char **ret_word,
                        size_t *ret_word_len)
{
    const char *eol = len > 0 ? memchr(at, '\n', len) : NULL;
    int64_t number = 0;
    if (eol == NULL) {
        return 0;
    }
    size_t line = (size_t)(eol - at) + 1;
    bool is_counted = at[0] == '$' || at[0] == '*';
    if (!is_counted || line < 4 ||
        parse_i64(at + 1, line - 3, -1, 1 << 30, &number, NULL) != STATUS_OK || number < 0 ||
        depth >= DEPTH_MAX) {
        return line;
    }
    if (at[0] == '$') {
        if (*ret_word == NULL && line + (size_t)number <= len) {
            *ret_word = at + line;
            *ret_word_len = (size_t)number;
        }
        return line + (size_t)number + 2 <= len ? line + (size_t)number + 2 : 0;
    }
    size_t whole = line;
    for (int64_t i = 0; i < number; i++) {
        size_t item = value_len(at + whole, len - whole, depth + 1, ret_word, ret_word_len);
        if (item == 0) {
            return 0;
        }
        whole += item;
    }
    return whole;
}

static void note_commands(struct conn *c, struct buf *commands)
{
    const char *word = NULL;
    size_t word_len = 0;
    size_t whole = 0;
    while ((whole = value_len(buf_at(commands), commands->len, 0, &word, &word_len)) > 0) {
        assert(c->word_count < WORDS_MAX);
        char *slot = c->words[(c->word_head + c->word_count++) % WORDS_MAX];
        (void)snprintf(slot, WORD_SIZE, "%.*s", (int)word_len, word != NULL ? word : "");
        buf_consume(commands, whole);
        word = NULL;
    }
}

/* ---- connections ---- */

static void conn_close(struct fault_proxy *p, size_t at, bool is_reset)
{
    struct conn *c = p->conns[at];
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (is_reset) {
        (void)setsockopt(c->client_fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    (void)close(c->client_fd);
    (void)close(c->server_fd);
    flow_drop(&c->to_server);
    flow_drop(&c->to_client);
    buf_release(&c->commands);
    buf_release(&c->replies);
    free(c);
    p->conns[at] = NULL;
    p->counts.open--;
}

static void conn_accept(struct fault_proxy *p)
{
    int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t at = 0;
    while (at < CONNS_MAX && p->conns[at] != NULL) {
        at++;
    }
    struct conn *c = fd >= 0 && at < CONNS_MAX ? calloc(1, sizeof *c) : NULL;
    int server_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c == NULL ||
        connect(server_fd, (const struct sockaddr *)&p->server, sizeof p->server) != 0) {
        free(c); /* as a port without a listener would do */
        (void)close(fd);
        (void)close(server_fd);
        return;
    }
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->client_fd = fd;
    c->server_fd = server_fd;
    flow_init(&c->to_server);
    flow_init(&c->to_client);
    buf_init(&c->commands, UNREAD_BYTES_MAX);
    buf_init(&c->replies, UNREAD_BYTES_MAX);
    p->conns[at] = c;
    p->counts.accepted++;
    p->counts.open++;
}

static bool meets_fault(struct fault_proxy *p, const char *word)
{
    if (p->fault.kind == FAULT_NONE || (p->on[0] != '\0' && strcmp(word, p->on) != 0)) {
        return false;
    }
    if (p->fault.count > 0 && --p->fault_left == 0) {
        p->fault.kind = FAULT_NONE;
    }
    p->counts.faults++;
    return true;
}

/* Handles one complete reply of the server. Returns false if the connection is gone. */
static bool pass_reply(struct fault_proxy *p, size_t at, const char *bytes, size_t len)
{
    struct conn *c = p->conns[at];
    int64_t due_us = clock_boot_us() + p->to_client_us;
    const char *word = c->word_count > 0 ? c->words[c->word_head] : "";
    enum fault_kind kind = p->fault.kind;
    p->counts.replies++;
    if (c->word_count > 0) {
        c->word_head = (c->word_head + 1) % WORDS_MAX;
        c->word_count--;
    }
    if (c->is_endless) {
        return true;
    }
    if (!meets_fault(p, word)) {
        flow_put(&c->to_client, bytes, len, due_us);
        return true;
    }
    switch (kind) {
    case FAULT_NONE:
    case FAULT_SWALLOW:
        return true;
    case FAULT_REPLACE:
    case FAULT_ENDLESS:
        flow_put(&c->to_client, p->text, p->fault.text_len, due_us);
        c->is_endless = kind == FAULT_ENDLESS;
        return true;
    case FAULT_CUT:
        flow_put(&c->to_client, bytes, len / 2, 0);
        (void)flow_send(&c->to_client, c->client_fd, INT64_MAX);
        break;
    case FAULT_RESET:
        break;
    }
    conn_close(p, at, kind == FAULT_RESET);
    return false;
}

static bool from_server(struct fault_proxy *p, size_t at, const char *bytes, size_t len)
{
    struct conn *c = p->conns[at];
    struct buf *unread = &c->replies;
    size_t whole = 0;
    if (buf_append(unread, bytes, len, NULL) != STATUS_OK) {
        return false;
    }
    const char *word = "";
    size_t word_len = 0;
    while ((whole = value_len(buf_at(unread), unread->len, 0, &word, &word_len)) > 0) {
        if (!pass_reply(p, at, buf_at(unread), whole)) {
            return true; /* it is already closed */
        }
        buf_consume(unread, whole);
    }
    return true;
}

static bool from_client(struct fault_proxy *p, struct conn *c, const char *bytes, size_t len)
{
    if (buf_append(&c->commands, bytes, len, NULL) != STATUS_OK) {
        return false;
    }
    note_commands(c, &c->commands);
    flow_put(&c->to_server, bytes, len, clock_boot_us() + p->to_server_us);
    return true;
}

static void feed_endless(struct fault_proxy *p, struct conn *c)
{
    char block[8192];
    size_t more = strlen(p->more);
    size_t len = 0;
    while (len + more <= sizeof block) {
        memcpy(block + len, p->more, more);
        len += more;
    }
    while (c->to_client.bytes < READ_BYTES) {
        flow_put(&c->to_client, block, len, 0);
    }
}

/* ---- the thread ---- */

#define POLLS_MAX (2 + 2 * CONNS_MAX)

static short interest(const struct flow *out, const struct flow *in, int64_t now_us)
{
    return (short)((in->bytes < QUEUE_BYTES_MAX ? POLLIN : 0) |
                   (flow_is_due(out, now_us) ? POLLOUT : 0));
}

/* Fills in what to poll; returns the timeout. A flow that is due and cannot be written waits for
 * POLLOUT, not for a timeout. */
static int plan(struct fault_proxy *p, struct pollfd *polls)
{
    int64_t now_us = clock_boot_us();
    int timeout_ms = -1;
    polls[0] = (struct pollfd){.fd = p->wake_fd, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = p->listen_fd, .events = POLLIN};
    for (size_t i = 0; i < CONNS_MAX; i++) {
        const struct conn *c = p->conns[i];
        struct pollfd *two = &polls[2 + 2 * i];
        two[0] = (struct pollfd){.fd = -1};
        two[1] = (struct pollfd){.fd = -1};
        if (c == NULL || p->is_half_open) {
            continue;
        }
        if (!c->is_client_gone) {
            two[0] = (struct pollfd){.fd = c->client_fd,
                                     .events = interest(&c->to_client, &c->to_server, now_us)};
        }
        two[1] = (struct pollfd){.fd = c->server_fd,
                                 .events = interest(&c->to_server, &c->to_client, now_us)};
        if ((two[0].events & POLLOUT) == 0 && !c->is_client_gone) {
            timeout_ms = flow_wait_ms(&c->to_client, now_us, timeout_ms);
        }
        if ((two[1].events & POLLOUT) == 0) {
            timeout_ms = flow_wait_ms(&c->to_server, now_us, timeout_ms);
        }
    }
    return timeout_ms;
}

/* Returns 1 if it has read bytes, 0 if there are none, −1 at the end. */
static int read_some(int fd, char *bytes, size_t *ret_len)
{
    ssize_t n = recv(fd, bytes, READ_BYTES, MSG_DONTWAIT);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    *ret_len = (size_t)n;
    return n > 0 ? 1 : -1;
}

/* A client that has left may have sent bytes that are still in flight. */
static bool client_left(struct conn *c)
{
    c->is_client_gone = true;
    return !flow_is_empty(&c->to_server);
}

static void serve(struct fault_proxy *p, size_t at, const struct pollfd *two, char *bytes)
{
    struct conn *c = p->conns[at];
    size_t len = 0;
    bool is_alive = true;
    if ((two[0].revents & ~POLLOUT) != 0) {
        int got = read_some(c->client_fd, bytes, &len);
        is_alive = got == 0 || (got == 1 ? from_client(p, c, bytes, len) : client_left(c));
    }
    if (is_alive && (two[1].revents & ~POLLOUT) != 0) {
        int got = read_some(c->server_fd, bytes, &len);
        is_alive = got == 0 || (got == 1 && from_server(p, at, bytes, len));
        if (p->conns[at] == NULL) {
            return;
        }
    }
    if (is_alive && c->is_endless && !c->is_client_gone) {
        feed_endless(p, c);
    }
    int64_t now_us = clock_boot_us();
    is_alive = is_alive && flow_send(&c->to_server, c->server_fd, now_us);
    if (is_alive && !c->is_client_gone) {
        is_alive = flow_send(&c->to_client, c->client_fd, now_us) || client_left(c);
    }
    if (!is_alive || (c->is_client_gone && flow_is_empty(&c->to_server))) {
        conn_close(p, at, false);
    }
}

static void *run(void *ctx)
{
    struct fault_proxy *p = ctx;
    struct pollfd polls[POLLS_MAX];
    char *bytes = malloc(READ_BYTES);
    assert(bytes != NULL);
    (void)pthread_mutex_lock(&p->mutex);
    while (!p->is_stopping) {
        int timeout_ms = plan(p, polls);
        (void)pthread_mutex_unlock(&p->mutex);
        (void)poll(polls, POLLS_MAX, timeout_ms);
        (void)pthread_mutex_lock(&p->mutex);
        if (polls[0].revents != 0) {
            uint64_t times = 0;
            ssize_t n = read(p->wake_fd, &times, sizeof times);
            (void)n;
        }
        for (size_t i = 0; i < CONNS_MAX; i++) {
            /* A connection that was closed or accepted in the meantime was not polled, or will be
             * next time. */
            if (p->conns[i] != NULL && polls[3 + 2 * i].fd == p->conns[i]->server_fd) {
                serve(p, i, &polls[2 + 2 * i], bytes);
            }
        }
        if (polls[1].revents != 0) {
            conn_accept(p);
        }
    }
    (void)pthread_mutex_unlock(&p->mutex);
    free(bytes);
    return NULL;
}

/* ---- called by tests ---- */

static void wake(struct fault_proxy *p)
{
    const uint64_t one = 1;
    ssize_t n = write(p->wake_fd, &one, sizeof one);
    (void)n;
}

static enum status listen_here(struct fault_proxy *p, struct err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->wake_fd < 0 || p->listen_fd < 0 ||
        bind(p->listen_fd, (const struct sockaddr *)&at, sizeof at) != 0 ||
        listen(p->listen_fd, CONNS_MAX) != 0 ||
        getsockname(p->listen_fd, (struct sockaddr *)&at, &len) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "a port for a proxy");
    }
    (void)snprintf(p->url, sizeof p->url, "127.0.0.1:%d", ntohs(at.sin_port));
    return STATUS_OK;
}

enum status fault_proxy_start(const char *path, struct fault_proxy **ret, struct err *err)
{
    struct fault_proxy *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for a proxy");
    }
    p->server.sun_family = AF_UNIX;
    (void)snprintf(p->server.sun_path, sizeof p->server.sun_path, "%s", path);
    (void)pthread_mutex_init(&p->mutex, NULL);
    enum status st = listen_here(p, err);
    if (st == STATUS_OK && pthread_create(&p->thread, NULL, run, p) != 0) {
        st = err_fail(err, STATUS_UNAVAILABLE, "no thread for a proxy");
    }
    if (st != STATUS_OK) {
        (void)close(p->listen_fd);
        (void)close(p->wake_fd);
        free(p);
        return st;
    }
    *ret = p;
    return STATUS_OK;
}

void fault_proxy_stop(struct fault_proxy *p)
{
    if (p == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&p->mutex);
    p->is_stopping = true;
    (void)pthread_mutex_unlock(&p->mutex);
    wake(p);
    (void)pthread_join(p->thread, NULL);
    fault_proxy_break(p, false);
    (void)pthread_mutex_destroy(&p->mutex);
    (void)close(p->listen_fd);
    (void)close(p->wake_fd);
    free(p);
}

const char *fault_proxy_url(const struct fault_proxy *p)
{
    return p->url;
}

void fault_proxy_set(struct fault_proxy *p, const struct fault *fault)
{
    (void)pthread_mutex_lock(&p->mutex);
    p->fault = fault != NULL ? *fault : (struct fault){0};
    p->fault_left = p->fault.count;
    (void)snprintf(p->on, sizeof p->on, "%s", p->fault.on != NULL ? p->fault.on : "");
    (void)snprintf(p->more, sizeof p->more, "%s", p->fault.more != NULL ? p->fault.more : "");
    assert(p->fault.kind != FAULT_ENDLESS || p->more[0] != '\0');
    if (p->fault.text != NULL) {
        p->fault.text_len = p->fault.text_len > 0 ? p->fault.text_len : strlen(p->fault.text);
        assert(p->fault.text_len <= sizeof p->text);
        memcpy(p->text, p->fault.text, p->fault.text_len);
    }
    (void)pthread_mutex_unlock(&p->mutex);
}

void fault_proxy_delay(struct fault_proxy *p, int64_t to_server_us, int64_t to_client_us)
{
    (void)pthread_mutex_lock(&p->mutex);
    p->to_server_us = to_server_us;
    p->to_client_us = to_client_us;
    (void)pthread_mutex_unlock(&p->mutex);
}

void fault_proxy_half_open(struct fault_proxy *p, bool is_on)
{
    (void)pthread_mutex_lock(&p->mutex);
    p->is_half_open = is_on;
    (void)pthread_mutex_unlock(&p->mutex);
    wake(p);
}

void fault_proxy_inject(struct fault_proxy *p, const char *text)
{
    (void)pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (p->conns[i] != NULL) {
            flow_put(&p->conns[i]->to_client, text, strlen(text), 0);
            (void)flow_send(&p->conns[i]->to_client, p->conns[i]->client_fd, INT64_MAX);
        }
    }
    (void)pthread_mutex_unlock(&p->mutex);
}

void fault_proxy_break(struct fault_proxy *p, bool is_reset)
{
    (void)pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (p->conns[i] != NULL) {
            conn_close(p, i, is_reset);
        }
    }
    (void)pthread_mutex_unlock(&p->mutex);
    wake(p);
}

struct fault_proxy_counts fault_proxy_counts(struct fault_proxy *p)
{
    (void)pthread_mutex_lock(&p->mutex);
    struct fault_proxy_counts counts = p->counts;
    (void)pthread_mutex_unlock(&p->mutex);
    return counts;
}
