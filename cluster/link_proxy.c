/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/link_proxy.h"

#include "base/clock.h"
#include "cluster/flow.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define CONNS_MAX 256
#define QUEUE_BYTES_MAX ((size_t)1 << 20)
#define READ_BYTES ((size_t)64 << 10)
#define BACKLOG 64
#define POLLS_MAX (1 + LINK_SERVERS_MAX + 2 * CONNS_MAX)
#define STRANGER LINK_HOSTS_MAX /* of unknown processes; its rule is always good */

/* One direction: from one socket to the other. */
struct way {
    int from_fd;
    int to_fd;
    struct flow flow;
    int64_t read_us; /* does not read before this time, to keep to the limit of its rate */
    bool is_at_end;  /* from_fd has ended; to_fd is shut down when the flow is empty */
    bool is_done;
};

struct conn {
    bool is_open;
    size_t server;
    size_t host;
    pid_t pid;
    struct way to_server;
    struct way to_client;
};

struct server {
    int listen_fd; /* −1: not listening */
    struct sockaddr_un here;
    struct sockaddr_un at;
};

struct link_proxy {
    pthread_t thread;
    pthread_mutex_t mutex; /* protects all below, except while the thread polls */
    int wake_fd;
    bool is_stopping;
    struct server servers[LINK_SERVERS_MAX];
    size_t server_count;
    pid_t pids[LINK_HOSTS_MAX];
    struct link_rule rules[LINK_HOSTS_MAX + 1][LINK_SERVERS_MAX];
    struct conn conns[CONNS_MAX];
    struct pollfd polls[POLLS_MAX];
    char bytes[READ_BYTES];
};

/* ---- connections ---- */

static struct link_rule *rule_of(struct link_proxy *p, struct conn *c)
{
    for (size_t i = 0; i < LINK_HOSTS_MAX && c->host == STRANGER; i++) {
        c->host = p->pids[i] == c->pid ? i : STRANGER; /* it may connect before its host is known */
    }
    return &p->rules[c->host][c->server];
}

static void conn_close(struct conn *c)
{
    (void)close(c->to_server.from_fd);
    (void)close(c->to_server.to_fd);
    flow_drop(&c->to_server.flow);
    flow_drop(&c->to_client.flow);
    c->is_open = false;
}

static int connect_to(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void conn_open(struct link_proxy *p, struct conn *c, size_t server, int client_fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    (void)getsockopt(client_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    *c = (struct conn){.is_open = true, .server = server, .host = STRANGER, .pid = peer.pid};
    int server_fd = rule_of(p, c)->is_refused ? -1 : connect_to(&p->servers[server].at);
    c->to_server = (struct way){.from_fd = client_fd, .to_fd = server_fd};
    c->to_client = (struct way){.from_fd = server_fd, .to_fd = client_fd};
    flow_init(&c->to_server.flow);
    flow_init(&c->to_client.flow);
    if (server_fd < 0) {
        conn_close(c);
    }
}

static void accept_one(struct link_proxy *p, size_t server)
{
    int fd = accept4(p->servers[server].listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (size_t i = 0; i < CONNS_MAX && fd >= 0; i++) {
        if (!p->conns[i].is_open) {
            conn_open(p, &p->conns[i], server, fd);
            return;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* ---- one direction ---- */

struct terms {
    int64_t delay_us;
    int64_t bytes_per_s;
    bool is_hole;
    bool *cuts;
};

static struct terms terms_of(struct link_rule *r, bool is_to_server)
{
    return (struct terms){.delay_us = is_to_server ? r->to_server_us : r->to_client_us,
                          .bytes_per_s = r->bytes_per_s,
                          .is_hole = is_to_server ? r->is_hole_to_server : r->is_hole_to_client,
                          .cuts = is_to_server ? &r->cuts_to_server : &r->cuts_to_client};
}

static bool wants_read(const struct way *w, const struct terms *t, int64_t now_us)
{
    return !t->is_hole && !w->is_at_end && w->flow.bytes < QUEUE_BYTES_MAX && now_us >= w->read_us;
}

/* Returns false if the connection is over. */
static bool way_read(struct link_proxy *p, struct way *w, const struct terms *t, int64_t now_us)
{
    size_t most = READ_BYTES;
    if (t->bytes_per_s > 0 && (size_t)t->bytes_per_s / 20 + 1 < most) {
        most = (size_t)t->bytes_per_s / 20 + 1; /* at most what the rate allows in 50 ms */
    }
    ssize_t n = recv(w->from_fd, p->bytes, most, MSG_DONTWAIT);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (n == 0) {
        w->is_at_end = true;
        return true;
    }
    if (*t->cuts) {
        *t->cuts = false;
        flow_put(&w->flow, p->bytes, (size_t)n / 2, 0);
        (void)flow_send(&w->flow, w->to_fd, INT64_MAX);
        return false;
    }
    if (t->bytes_per_s > 0) {
        w->read_us = now_us + n * US_PER_S / t->bytes_per_s;
    }
    flow_put(&w->flow, p->bytes, (size_t)n, now_us + t->delay_us);
    return true;
}

static bool way_serve(struct link_proxy *p, struct way *w, const struct terms *t, bool is_readable,
                      int64_t now_us)
{
    if (is_readable && wants_read(w, t, now_us) && !way_read(p, w, t, now_us)) {
        return false;
    }
    if (t->is_hole) {
        return true;
    }
    if (!flow_send(&w->flow, w->to_fd, now_us)) {
        return false;
    }
    if (w->is_at_end && !w->is_done && flow_is_empty(&w->flow)) {
        (void)shutdown(w->to_fd, SHUT_WR);
        w->is_done = true;
    }
    return true;
}

/* ---- the thread ---- */

static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

/* Sets the polls of one direction; returns when to look again if nothing happens. */
static int64_t plan_way(const struct way *w, const struct terms *t, int64_t now_us,
                        struct pollfd *from, struct pollfd *to)
{
    int64_t again_us = INT64_MAX;
    if (wants_read(w, t, now_us)) {
        from->events |= POLLIN;
    } else if (!t->is_hole && !w->is_at_end && now_us < w->read_us) {
        again_us = w->read_us;
    }
    if (!t->is_hole && flow_is_due(&w->flow, now_us)) {
        to->events |= POLLOUT;
    } else if (!t->is_hole && !flow_is_empty(&w->flow)) {
        again_us = earlier(again_us, now_us + US_PER_MS * flow_wait_ms(&w->flow, now_us, -1));
    }
    return again_us;
}

static int plan(struct link_proxy *p)
{
    int64_t now_us = clock_boot_us();
    int64_t again_us = INT64_MAX;
    p->polls[0] = (struct pollfd){.fd = p->wake_fd, .events = POLLIN};
    for (size_t i = 0; i < LINK_SERVERS_MAX; i++) {
        int fd = i < p->server_count ? p->servers[i].listen_fd : -1;
        p->polls[1 + i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct conn *c = &p->conns[i];
        struct pollfd *two = &p->polls[1 + LINK_SERVERS_MAX + 2 * i];
        two[0] = (struct pollfd){.fd = -1};
        two[1] = (struct pollfd){.fd = -1};
        if (c->is_open) {
            struct link_rule *rule = rule_of(p, c);
            struct terms there = terms_of(rule, true);
            struct terms back = terms_of(rule, false);
            again_us = earlier(again_us, plan_way(&c->to_server, &there, now_us, &two[0], &two[1]));
            again_us = earlier(again_us, plan_way(&c->to_client, &back, now_us, &two[1], &two[0]));
            /* A descriptor without wanted events is not polled: a socket that hung up would be
             * reported forever. */
            two[0].fd = two[0].events != 0 ? c->to_server.from_fd : -1;
            two[1].fd = two[1].events != 0 ? c->to_server.to_fd : -1;
        }
    }
    int64_t wait_ms = (again_us - now_us + US_PER_MS - 1) / US_PER_MS;
    return again_us == INT64_MAX ? -1 : wait_ms < 1 ? 1 : (int)wait_ms;
}

static void serve(struct link_proxy *p, struct conn *c, const struct pollfd *two)
{
    int64_t now_us = clock_boot_us();
    struct link_rule *rule = rule_of(p, c);
    struct terms there = terms_of(rule, true);
    struct terms back = terms_of(rule, false);
    bool is_alive = way_serve(p, &c->to_server, &there, (two[0].revents & ~POLLOUT) != 0, now_us) &&
                    way_serve(p, &c->to_client, &back, (two[1].revents & ~POLLOUT) != 0, now_us);
    /* If the client has left, the connection ends: everything that it sent has been forwarded. If
     * the server has left, it ends once the server's last bytes have been forwarded. */
    if (!is_alive || c->to_server.is_done || c->to_client.is_done) {
        conn_close(c);
    }
}

static void *run(void *ctx)
{
    struct link_proxy *p = ctx;
    (void)pthread_mutex_lock(&p->mutex);
    while (!p->is_stopping) {
        int timeout_ms = plan(p);
        (void)pthread_mutex_unlock(&p->mutex);
        (void)poll(p->polls, POLLS_MAX, timeout_ms);
        (void)pthread_mutex_lock(&p->mutex);
        if (p->polls[0].revents != 0) {
            uint64_t times = 0;
            ssize_t n = read(p->wake_fd, &times, sizeof times);
            (void)n;
        }
        for (size_t i = 0; i < CONNS_MAX; i++) {
            if (p->conns[i].is_open) {
                serve(p, &p->conns[i], &p->polls[1 + LINK_SERVERS_MAX + 2 * i]);
            }
        }
        for (size_t i = 0; i < p->server_count; i++) {
            if (p->polls[1 + i].revents != 0) {
                accept_one(p, i);
            }
        }
    }
    (void)pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* ---- called by tests ---- */

static void unlock(struct link_proxy *p)
{
    const uint64_t one = 1;
    (void)pthread_mutex_unlock(&p->mutex);
    ssize_t n = write(p->wake_fd, &one, sizeof one);
    (void)n;
}

enum status link_proxy_start(struct link_proxy **ret, struct err *err)
{
    struct link_proxy *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for a proxy");
    }
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&p->mutex, NULL);
    if (p->wake_fd < 0 || pthread_create(&p->thread, NULL, run, p) != 0) {
        (void)close(p->wake_fd);
        free(p);
        return err_fail(err, STATUS_UNAVAILABLE, "no thread for a proxy");
    }
    *ret = p;
    return STATUS_OK;
}

void link_proxy_stop(struct link_proxy *p)
{
    if (p == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&p->mutex);
    p->is_stopping = true;
    unlock(p);
    (void)pthread_join(p->thread, NULL);
    link_proxy_break(p, LINK_ALL, LINK_ALL);
    for (size_t i = 0; i < p->server_count; i++) {
        if (p->servers[i].listen_fd >= 0) {
            (void)close(p->servers[i].listen_fd);
        }
    }
    (void)pthread_mutex_destroy(&p->mutex);
    (void)close(p->wake_fd);
    free(p);
}

static enum status set_path(struct sockaddr_un *at, const char *path, struct err *err)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at->sun_path) {
        return err_fail(err, STATUS_LIMIT, "%s: too long for the path of a socket", path);
    }
    memcpy(at->sun_path, path, strlen(path) + 1);
    return STATUS_OK;
}

static enum status listen_at(const struct sockaddr_un *here, int *ret_fd, struct err *err)
{
    (void)unlink(here->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)here, sizeof *here) != 0 ||
        chmod(here->sun_path, 0777) != 0 || listen(fd, BACKLOG) != 0) {
        int sys = errno;
        (void)close(fd);
        return err_fail_sys(err, STATUS_UNAVAILABLE, sys, "listen at %s", here->sun_path);
    }
    *ret_fd = fd;
    return STATUS_OK;
}

enum status link_proxy_listen(struct link_proxy *p, size_t server, bool is_on, struct err *err)
{
    enum status st = STATUS_OK;
    (void)pthread_mutex_lock(&p->mutex);
    struct server *s = &p->servers[server];
    if (is_on && s->listen_fd < 0) {
        st = listen_at(&s->here, &s->listen_fd, err);
    } else if (!is_on && s->listen_fd >= 0) {
        (void)close(s->listen_fd);
        s->listen_fd = -1;
    }
    unlock(p);
    return st;
}

enum status link_proxy_add(struct link_proxy *p, const char *path, const char *server_path,
                           struct err *err)
{
    struct server s = {.listen_fd = -1};
    enum status st = set_path(&s.here, path, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_path(&s.at, server_path, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = listen_at(&s.here, &s.listen_fd, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)pthread_mutex_lock(&p->mutex);
    assert(p->server_count < LINK_SERVERS_MAX);
    p->servers[p->server_count++] = s;
    unlock(p);
    return STATUS_OK;
}

void link_proxy_move(struct link_proxy *p, size_t server, const char *server_path)
{
    (void)pthread_mutex_lock(&p->mutex);
    (void)set_path(&p->servers[server].at, server_path, NULL);
    unlock(p);
}

void link_proxy_is_host(struct link_proxy *p, size_t host, pid_t pid)
{
    assert(host < LINK_HOSTS_MAX);
    (void)pthread_mutex_lock(&p->mutex);
    p->pids[host] = pid;
    unlock(p);
}

void link_proxy_rule(struct link_proxy *p, size_t host, size_t server, const struct link_rule *rule)
{
    const struct link_rule good = {0};
    (void)pthread_mutex_lock(&p->mutex);
    for (size_t h = 0; h < LINK_HOSTS_MAX; h++) {
        for (size_t s = 0; s < LINK_SERVERS_MAX; s++) {
            if ((host == LINK_ALL || host == h) && (server == LINK_ALL || server == s)) {
                p->rules[h][s] = rule != NULL ? *rule : good;
            }
        }
    }
    unlock(p);
}

static bool is_of(const struct conn *c, size_t host, size_t server)
{
    return c->is_open && (host == LINK_ALL || c->host == host) &&
           (server == LINK_ALL || c->server == server);
}

void link_proxy_break(struct link_proxy *p, size_t host, size_t server)
{
    (void)pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (is_of(&p->conns[i], host, server)) {
            conn_close(&p->conns[i]);
        }
    }
    unlock(p);
}

size_t link_proxy_open(struct link_proxy *p, size_t host, size_t server)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < CONNS_MAX; i++) {
        count += is_of(&p->conns[i], host, server) ? 1 : 0;
    }
    unlock(p);
    return count;
}
