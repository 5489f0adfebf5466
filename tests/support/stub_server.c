/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stub_server.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cluster/child.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define CLIENTS_MAX 16
#define KEYS_MAX 1024
#define WORDS_MAX 16
#define NAMES_MAX 64
#define BYTES_MAX ((size_t)4 << 20)

struct word {
    const char *bytes;
    size_t len;
};

struct entry {
    char key[64];
    char value[128];
    size_t key_len; /* 0 = unused */
    size_t value_len;
    int64_t expires_us; /* INT64_MAX = never */
};

struct command_stats {
    char name[16];
    long calls;
    long to_fail;
    char error[64];
};

struct client {
    int fd; /* −1 = none */
    struct buf in;
    struct buf out;
};

/* All of this belongs to the child process, which does nothing else. */
static struct stub_options options;
static struct entry entries[KEYS_MAX];
static struct command_stats stats[NAMES_MAX];
static struct client clients[CLIENTS_MAX];

/* ---- replies ---- */

static void reply(struct client *c, const char *text)
{
    if (buf_append_text(&c->out, text, NULL) != STATUS_OK) {
        _exit(1);
    }
}

static void reply_bulk(struct client *c, const char *bytes, size_t len)
{
    if (buf_printf(&c->out, NULL, "$%zu\r\n", len) != STATUS_OK ||
        buf_append(&c->out, bytes, len, NULL) != STATUS_OK) {
        _exit(1);
    }
    reply(c, "\r\n");
}

static void reply_integer(struct client *c, int64_t number)
{
    if (buf_printf(&c->out, NULL, ":%lld\r\n", (long long)number) != STATUS_OK) {
        _exit(1);
    }
}

/* ---- keys ---- */

static struct entry *find(const struct word *key)
{
    int64_t now_us = clock_boot_us();
    for (size_t i = 0; i < KEYS_MAX; i++) {
        struct entry *e = &entries[i];
        if (e->key_len == key->len && memcmp(e->key, key->bytes, key->len) == 0) {
            e->key_len = e->expires_us > now_us ? e->key_len : 0;
            return e->key_len > 0 ? e : NULL;
        }
    }
    return NULL;
}

static struct entry *make(const struct word *key)
{
    for (size_t i = 0; i < KEYS_MAX; i++) {
        if (entries[i].key_len == 0 && key->len < sizeof entries[i].key) {
            memcpy(entries[i].key, key->bytes, key->len);
            entries[i].key_len = key->len;
            return &entries[i];
        }
    }
    _exit(1);
}

static bool holds(const struct entry *e, const struct word *value)
{
    return e != NULL && e->value_len == value->len &&
           memcmp(e->value, value->bytes, value->len) == 0;
}

static bool is_word(const struct word *w, const char *text)
{
    return w->len == strlen(text) && strncasecmp(w->bytes, text, w->len) == 0;
}

/* ---- commands ---- */

struct set {
    bool is_nx;
    bool wants_old;
    const struct word *ifeq;
    int64_t ttl_ms; /* 0 = no expiry */
};

static bool read_set(struct set *s, const struct word *w, size_t count)
{
    *s = (struct set){0};
    for (size_t i = 3; i < count; i++) {
        if (is_word(&w[i], "NX")) {
            s->is_nx = true;
        } else if (is_word(&w[i], "GET")) {
            s->wants_old = true;
        } else if (is_word(&w[i], "PX") && i + 1 < count) {
            i++;
            if (parse_i64(w[i].bytes, w[i].len, 1, INT32_MAX, &s->ttl_ms, NULL) != STATUS_OK) {
                return false;
            }
        } else if (is_word(&w[i], "IFEQ") && i + 1 < count && options.has_ifeq) {
            s->ifeq = &w[++i];
        } else {
            return false;
        }
    }
    return count >= 3 && w[2].len < sizeof entries[0].value;
}

static void do_set(struct client *c, const struct word *w, size_t count)
{
    struct set s;
    if (!read_set(&s, w, count)) {
        reply(c, "-ERR syntax error\r\n");
        return;
    }
    const struct word value = w[2];
    struct entry *e = find(&w[1]);
    bool is_done = !(s.is_nx && e != NULL) && (s.ifeq == NULL || holds(e, s.ifeq));
    if (s.wants_old && e != NULL) {
        reply_bulk(c, e->value, e->value_len);
    } else {
        reply(c, is_done && !s.wants_old ? "+OK\r\n" : "$-1\r\n");
    }
    if (is_done && value.bytes != NULL) {
        e = e != NULL ? e : make(&w[1]);
        memcpy(e->value, value.bytes, value.len);
        e->value_len = value.len;
        e->expires_us = s.ttl_ms > 0 ? clock_boot_us() + s.ttl_ms * US_PER_MS : INT64_MAX;
    }
}

static void delete_if(struct client *c, struct entry *e, bool is_to_go)
{
    if (is_to_go && e != NULL) {
        e->key_len = 0;
    }
    reply_integer(c, is_to_go && e != NULL);
}

static void do_pttl(struct client *c, const struct entry *e)
{
    if (e == NULL || e->expires_us == INT64_MAX) {
        reply_integer(c, e == NULL ? -2 : -1);
        return;
    }
    reply_integer(c, (e->expires_us - clock_boot_us()) / US_PER_MS);
}

static void do_get(struct client *c, const struct entry *e)
{
    if (e != NULL) {
        reply_bulk(c, e->value, e->value_len);
    } else {
        reply(c, "$-1\r\n");
    }
}

/* Handles "EVALSHA sha 1 KEY ms" (lock.N10), as if no client had longer locks. */
static void do_ttl_max(struct client *c, const struct word *w)
{
    struct entry *e = find(&w[3]);
    e = e != NULL ? e : make(&w[3]);
    memcpy(e->value, w[4].bytes, w[4].len);
    e->value_len = w[4].len;
    e->expires_us = INT64_MAX;
    reply_integer(c, strtoll(w[4].bytes, NULL, 10));
}

/* Handles the other known script: "EVALSHA sha 1 KEY run_id random" (lock.N9). */
static void do_canary(struct client *c, const struct word *w)
{
    char value[128];
    struct entry *e = find(&w[3]);
    bool is_ours =
        e != NULL && e->value_len > w[4].len && memcmp(e->value, w[4].bytes, w[4].len) == 0;
    if (!is_ours) {
        int len = snprintf(value, sizeof value, "%.*s:1:%.*s", (int)w[4].len, w[4].bytes,
                           (int)w[5].len, w[5].bytes);
        e = e != NULL ? e : make(&w[3]);
        memcpy(e->value, value, (size_t)len);
        e->value_len = (size_t)len;
        e->expires_us = INT64_MAX;
    }
    reply(c, "*2\r\n");
    reply_bulk(c, e->value, e->value_len);
    reply(c, "$10\r\n1700000000\r\n");
}

static bool do_key(struct client *c, const struct word *w, size_t count)
{
    struct entry *e = count > 1 ? find(&w[1]) : NULL;
    if (is_word(&w[0], "SET")) {
        do_set(c, w, count);
    } else if (is_word(&w[0], "GET") && count == 2) {
        do_get(c, e);
    } else if (is_word(&w[0], "MGET") && count == 2) {
        reply(c, "*1\r\n");
        do_get(c, e);
    } else if (is_word(&w[0], "EVALSHA") && count == 5 && is_word(&w[2], "1")) {
        do_ttl_max(c, w);
    } else if (is_word(&w[0], "EVALSHA") && count == 6 && is_word(&w[2], "1")) {
        do_canary(c, w);
    } else if (is_word(&w[0], "PTTL") && count == 2) {
        do_pttl(c, e);
    } else if (is_word(&w[0], "EXISTS") && count == 2) {
        reply_integer(c, e != NULL);
    } else if (is_word(&w[0], "DEL") && count == 2) {
        delete_if(c, e, true);
    } else if (is_word(&w[0], "DELIFEQ") && count == 3 && options.has_delifeq) {
        delete_if(c, e, holds(e, &w[2]));
    } else if (is_word(&w[0], "DELEX") && count == 4 && is_word(&w[2], "IFEQ") &&
               options.has_delex) {
        delete_if(c, e, holds(e, &w[3]));
    } else {
        return false;
    }
    return true;
}

static void do_info(struct client *c)
{
    char text[512];
    bool is_valkey = strcmp(options.server, "valkey") == 0;
    int len = snprintf(text, sizeof text,
                       "# Server\r\nredis_version:%s\r\n%s%s%srun_id:%040d\r\n"
                       "uptime_in_seconds:86400\r\n# Memory\r\nmaxmemory:0\r\n"
                       "maxmemory_policy:noeviction\r\n# Replication\r\nrole:master\r\n"
                       "connected_slaves:0\r\n# Cluster\r\ncluster_enabled:0\r\n",
                       is_valkey ? "7.2.4" : options.version, is_valkey ? "valkey_version:" : "",
                       is_valkey ? options.version : "", is_valkey ? "\r\n" : "", (int)getpid());
    reply_bulk(c, text, (size_t)len);
}

static void do_command_info(struct client *c, const struct word *w, size_t count)
{
    if (buf_printf(&c->out, NULL, "*%zu\r\n", count - 2) != STATUS_OK) {
        _exit(1);
    }
    for (size_t i = 2; i < count; i++) {
        bool is_there = (is_word(&w[i], "DELIFEQ") && options.has_delifeq) ||
                        (is_word(&w[i], "DELEX") && options.has_delex);
        reply(c, is_there ? "*1\r\n+command\r\n" : "*-1\r\n");
    }
}

static struct command_stats *stats_of(const struct word *name)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (stats[i].name[0] == '\0' && name->len < sizeof stats[i].name) {
            memcpy(stats[i].name, name->bytes, name->len);
        }
        if (is_word(name, stats[i].name)) {
            return &stats[i];
        }
    }
    _exit(1);
}

static void do_stub(struct client *c, const struct word *w, size_t count)
{
    int64_t to_fail = 0;
    struct command_stats *s = stats_of(&w[2]);
    if (count == 3) {
        reply_integer(c, s->calls);
        return;
    }
    if (count != 5 || w[3].len >= sizeof s->error ||
        parse_i64(w[4].bytes, w[4].len, 0, INT32_MAX, &to_fail, NULL) != STATUS_OK) {
        reply(c, "-ERR STUB FAIL word text count\r\n");
        return;
    }
    (void)snprintf(s->error, sizeof s->error, "%.*s", (int)w[3].len, w[3].bytes);
    s->to_fail = (long)to_fail;
    reply(c, "+OK\r\n");
}

/* Returns the planned failure for a word of the command; NULL = it may succeed. */
static struct command_stats *failure_of(const struct word *w, size_t count)
{
    for (size_t i = 0; i < count && !is_word(&w[0], "STUB"); i++) {
        for (size_t j = 0; j < NAMES_MAX; j++) {
            if (stats[j].to_fail > 0 && is_word(&w[i], stats[j].name)) {
                return &stats[j];
            }
        }
    }
    return NULL;
}

static void execute(struct client *c, const struct word *w, size_t count)
{
    struct command_stats *s = failure_of(w, count);
    stats_of(&w[0])->calls++;
    if (s != NULL) {
        s->to_fail--;
        if (buf_printf(&c->out, NULL, "-%s\r\n", s->error) != STATUS_OK) {
            _exit(1);
        }
    } else if (is_word(&w[0], "STUB") && count >= 3) {
        do_stub(c, w, count);
    } else if (is_word(&w[0], "INFO")) {
        do_info(c);
    } else if (is_word(&w[0], "CLIENT")) {
        reply_integer(c, 1 + c - clients);
    } else if (is_word(&w[0], "COMMAND") && count > 2) {
        do_command_info(c, w, count);
    } else if (is_word(&w[0], "SCRIPT") && count == 3) {
        reply_bulk(c, "0123456789012345678901234567890123456789", 40);
    } else if (is_word(&w[0], "TIME")) {
        reply(c, "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
    } else if (is_word(&w[0], "PING")) {
        reply(c, "+PONG\r\n");
    } else if (!do_key(c, w, count)) {
        reply(c, "-ERR unknown command or syntax\r\n");
    }
}

/* ---- the wire ---- */

/* Reads one number line, "*3\r\n". Returns its length in bytes, 0 = incomplete. */
static size_t read_number(const struct buf *in, size_t at, char marker, int64_t *ret)
{
    const char *start = buf_at(in) + at;
    const char *end = at < in->len ? memchr(start, '\n', in->len - at) : NULL;
    if (end == NULL) {
        return 0;
    }
    if (*start != marker ||
        parse_i64(start + 1, (size_t)(end - start) - 2, 0, 1 << 20, ret, NULL) != STATUS_OK) {
        _exit(1);
    }
    return (size_t)(end - start) + 1;
}

/* Runs the first command. Returns its length in bytes, 0 = incomplete. */
static size_t run_one(struct client *c)
{
    struct word words[WORDS_MAX] = {{0}};
    int64_t count = 0;
    int64_t len = 0;
    size_t at = read_number(&c->in, 0, '*', &count);
    for (int64_t i = 0; at > 0 && i < count; i++) {
        size_t head = read_number(&c->in, at, '$', &len);
        if (head == 0 || c->in.len - at - head < (size_t)len + 2) {
            return 0;
        }
        if (i < WORDS_MAX) {
            words[i] = (struct word){.bytes = buf_at(&c->in) + at + head, .len = (size_t)len};
        }
        at += head + (size_t)len + 2;
    }
    if (at > 0 && count > 0) {
        execute(c, words, count < WORDS_MAX ? (size_t)count : WORDS_MAX);
    }
    return at;
}

static void drop(struct client *c)
{
    (void)close(c->fd);
    c->fd = -1;
    buf_reset(&c->in);
    buf_reset(&c->out);
}

static void serve(struct client *c)
{
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    if (n <= 0 || buf_append(&c->in, bytes, (size_t)n, NULL) != STATUS_OK) {
        drop(c);
        return;
    }
    size_t taken = 0;
    while ((taken = run_one(c)) > 0) {
        buf_consume(&c->in, taken);
    }
    while (c->out.len > 0) {
        ssize_t sent = send(c->fd, buf_at(&c->out), c->out.len, MSG_NOSIGNAL);
        if (sent < 0) {
            drop(c);
            return;
        }
        buf_consume(&c->out, (size_t)sent);
    }
}

static void greet(int listener)
{
    int fd = accept(listener, NULL, NULL);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (fd >= 0 && clients[i].fd < 0) {
            clients[i].fd = fd;
            return;
        }
    }
    (void)close(fd);
}

static _Noreturn void run(int listener)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        clients[i] = (struct client){.fd = -1};
        buf_init(&clients[i].in, BYTES_MAX);
        buf_init(&clients[i].out, BYTES_MAX);
    }
    for (;;) {
        struct pollfd fds[CLIENTS_MAX + 1] = {{.fd = listener, .events = POLLIN}};
        for (size_t i = 0; i < CLIENTS_MAX; i++) {
            fds[i + 1] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
        }
        if (poll(fds, CLIENTS_MAX + 1, -1) < 0) {
            _exit(1);
        }
        for (size_t i = 0; i < CLIENTS_MAX; i++) {
            if (fds[i + 1].revents != 0) {
                serve(&clients[i]);
            }
        }
        if (fds[0].revents != 0) {
            greet(listener);
        }
    }
}

/* ---- starting ---- */

static enum status listen_at(const char *path, int *ret_fd, struct err *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    memcpy(addr.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof addr) != 0 ||
        listen(fd, CLIENTS_MAX) != 0 || chmod(path, 0777) != 0) {
        int sys = errno;
        close_slot(&fd);
        return err_fail_sys(err, STATUS_UNAVAILABLE, sys, "listen at %s", path);
    }
    *ret_fd = fd;
    return STATUS_OK;
}

enum status stub_server_start(const char *dir, const struct stub_options *stub,
                              struct redis_server *ret, struct err *err)
{
    struct redis_server s = {0};
    if ((size_t)snprintf(s.path, sizeof s.path, "%s/stub.sock", dir) >= sizeof s.path) {
        return err_fail(err, STATUS_LIMIT, "%s: too long for the path of a socket", dir);
    }
    (void)snprintf(s.dir, sizeof s.dir, "%s", dir);
    if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", dir);
    }
    enum status st = child_user_owns(dir, err); /* the owner of the folder may remove it */
    autoclose int listener = -1;
    if (st == STATUS_OK) {
        st = listen_at(s.path, &listener, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    options = *stub;
    pid_t parent = getpid();
    s.pid = fork();
    if (s.pid < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork");
    }
    if (s.pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
            _exit(1);
        }
        run(listener);
    }
    *ret = s;
    return STATUS_OK;
}
