/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cluster/servers.h"
#include "redis/link.h"
#include "redis/redis.h"
#include "support/suite_dir.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LIMIT_US (120 * US_PER_S)
#define PAIRS_MAX 16
#define CHUNK 65536

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static uv_loop_t loop;
static uv_timer_t tick;
static struct redis_node *node;

struct seen {
    size_t ups;
    size_t downs;
    size_t done;
    size_t failures; /* failures of a link */
    size_t bytes;    /* bytes received from the link */
    enum status st;
    bool can_kill;
    char why[ERR_TEXT_MAX];
};
static struct seen seen;

#define run_until(expr)                                           \
    do {                                                          \
        int64_t end_ = clock_boot_us() + LIMIT_US;                \
        while (!(expr) && clock_boot_us() < end_) {               \
            (void)uv_run(&loop, UV_RUN_ONCE);                     \
        }                                                         \
        ck_assert_msg((expr), "never: %s (%s)", #expr, seen.why); \
    } while (0)

/* ---- a relay that can hold back what a client has sent ---- */

struct pair {
    uv_pipe_t client;
    uv_pipe_t server;
    char held[CHUNK];
    size_t held_len;
    size_t replied; /* bytes sent by the server */
    bool is_holding;
    bool is_server_gone;
};

struct relay {
    uv_pipe_t listener;
    char path[108];
    struct pair *pairs[PAIRS_MAX];
    size_t count;
};
static struct relay relay;

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    static char chunk[CHUNK];
    (void)handle;
    (void)suggested;
    *ret_buf = uv_buf_init(chunk, sizeof chunk);
}

static void close_once(uv_pipe_t *pipe)
{
    if (!uv_is_closing((uv_handle_t *)pipe)) {
        uv_close((uv_handle_t *)pipe, NULL);
    }
}

static void pass_on(uv_pipe_t *to, char *bytes, size_t len)
{
    uv_buf_t buf = uv_buf_init(bytes, (unsigned)len);
    if (!uv_is_closing((uv_handle_t *)to)) {
        (void)uv_try_write((uv_stream_t *)to, &buf, 1);
    }
}

static void on_client_bytes(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct pair *p = stream->data;
    if (count < 0) {
        close_once(&p->client);
        if (!p->is_holding) {
            close_once(&p->server);
        }
    } else if (p->is_holding) {
        ck_assert_uint_le(p->held_len + (size_t)count, sizeof p->held);
        memcpy(p->held + p->held_len, buf->base, (size_t)count);
        p->held_len += (size_t)count;
    } else {
        pass_on(&p->server, buf->base, (size_t)count);
    }
}

static void on_server_bytes(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct pair *p = stream->data;
    if (count < 0) {
        p->is_server_gone = true;
        close_once(&p->server);
        close_once(&p->client);
    } else {
        p->replied += (size_t)count;
        pass_on(&p->client, buf->base, (size_t)count);
    }
}

static void on_server_connected(uv_connect_t *request, int uv_status)
{
    struct pair *p = request->data;
    free(request);
    ck_assert_int_eq(uv_status, 0);
    ck_assert_int_eq(uv_read_start((uv_stream_t *)&p->client, on_alloc, on_client_bytes), 0);
    ck_assert_int_eq(uv_read_start((uv_stream_t *)&p->server, on_alloc, on_server_bytes), 0);
}

static void on_client(uv_stream_t *listener, int uv_status)
{
    ck_assert_int_eq(uv_status, 0);
    ck_assert_uint_lt(relay.count, PAIRS_MAX);
    struct pair *p = calloc(1, sizeof *p);
    uv_connect_t *request = malloc(sizeof *request);
    ck_assert(p != NULL && request != NULL);
    relay.pairs[relay.count++] = p;
    (void)uv_pipe_init(&loop, &p->client, 0);
    (void)uv_pipe_init(&loop, &p->server, 0);
    p->client.data = p;
    p->server.data = p;
    request->data = p;
    ck_assert_int_eq(uv_accept(listener, (uv_stream_t *)&p->client), 0);
    uv_pipe_connect(request, &p->server, server.path, on_server_connected);
}

static void relay_start(void)
{
    (void)snprintf(relay.path, sizeof relay.path, "%.100s.relay", server.path);
    ck_assert_int_eq(uv_pipe_init(&loop, &relay.listener, 0), 0);
    ck_assert_int_eq(uv_pipe_bind(&relay.listener, relay.path), 0);
    ck_assert_int_eq(uv_listen((uv_stream_t *)&relay.listener, 16, on_client), 0);
}

static void relay_deliver(struct pair *p)
{
    p->is_holding = false;
    pass_on(&p->server, p->held, p->held_len);
}

static void relay_stop(void)
{
    if (relay.path[0] != '\0') {
        close_once(&relay.listener);
    }
    for (size_t i = 0; i < relay.count; i++) {
        close_once(&relay.pairs[i]->client);
        close_once(&relay.pairs[i]->server);
    }
}

/* ---- a node, its server, one key ---- */

static enum status on_up(void *ctx, struct redis_node *n, const struct redis_server_info *info,
                         struct err *err)
{
    struct seen *s = ctx;
    (void)n;
    (void)err;
    s->ups++;
    s->can_kill = info->can_kill;
    return STATUS_OK;
}

static void on_down(void *ctx, struct redis_node *n, const struct err *why)
{
    struct seen *s = ctx;
    (void)n;
    s->downs++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

static void on_done(void *ctx, enum status st)
{
    struct seen *s = ctx;
    s->st = st;
    s->done++;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void setup(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* for the relay */
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_timer_init(&loop, &tick), 0);
    (void)uv_timer_start(&tick, on_tick, 5, 5); /* so that run_until() can give up */
}

static void teardown(void)
{
    redis_node_close(node);
    relay_stop();
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left open */
    for (size_t i = 0; i < relay.count; i++) {
        free(relay.pairs[i]);
    }
    redis_server_stop(&server);
}

static void open_node(const char *path, const char *user)
{
    struct redis_options o = {.loop = &loop,
                              .connect_timeout_us = 300 * US_PER_MS,
                              .on_up = on_up,
                              .on_down = on_down,
                              .ctx = &seen};
    (void)snprintf(o.endpoint.path, sizeof o.endpoint.path, "%s", path);
    (void)snprintf(o.endpoint.user, sizeof o.endpoint.user, "%s", user);
    (void)snprintf(o.endpoint.password, sizeof o.endpoint.password, "%s", user);
    ck_assert_int_eq(redis_node_open(&o, &node, NULL), STATUS_OK);
}

static void given_a_node_behind_a_relay(const char *extra, const char *user)
{
    char dir[SERVER_PATH_MAX + 32];
    struct err err = {0};
    (void)snprintf(dir, sizeof dir, "%s/%d", base_dir, (int)getpid());
    ck_assert_msg(redis_server_start(dir, extra, &server, &err) == STATUS_OK, "%s", err.msg);
    relay_start();
    open_node(relay.path, user);
    run_until(seen.ups == 1);
}

static void say(int64_t timeout_us, const char *bytes)
{
    const struct redis_request r = {.bytes = bytes,
                                    .len = strlen(bytes),
                                    .reply_count = 1,
                                    .timeout_us = timeout_us,
                                    .on_done = on_done,
                                    .ctx = &seen};
    size_t before = seen.done;
    ck_assert_int_eq(redis_node_send(node, &r, NULL), STATUS_OK);
    run_until(seen.done > before);
}

static const char *cli(const char *const *words)
{
    static char text[65536];
    autobuf struct buf out = BUF_INIT(sizeof text);
    ck_assert_int_eq(redis_server_ask(&server, words, &out, NULL), STATUS_OK);
    (void)snprintf(text, sizeof text, "%s", buf_at(&out));
    return text;
}
#define cli(...) cli((const char *const[]){__VA_ARGS__, NULL})

/* Sends a SET that is still in flight when its connection is given up, then a DEL on the next one;
 * after that, the network delivers the SET. */
static void lose_a_set_and_delete(void)
{
    struct pair *old = relay.pairs[0];
    old->is_holding = true;
    say(50 * US_PER_MS, "SET k late PX 60000\r\n");
    ck_assert_int_eq(seen.st, STATUS_TIMEOUT);
    run_until(seen.ups == 2);
    say(US_PER_S, "DEL k\r\n");
    ck_assert_int_eq(seen.st, STATUS_OK);
    size_t before = old->replied;
    relay_deliver(old);
    run_until(old->is_server_gone || old->replied > before);
}

START_TEST(R1_a_set_of_a_lost_connection_cannot_land_behind_what_the_next_one_sends)
{
    given_a_node_behind_a_relay(NULL, "");
    ck_assert(seen.can_kill);
    lose_a_set_and_delete();
    ck_assert(seen.can_kill);
    ck_assert_str_eq(cli("EXISTS", "k"), "0\n");
}
END_TEST

START_TEST(R1_where_the_server_refuses_to_kill_it_is_known_that_a_set_may_still_land)
{
    given_a_node_behind_a_relay("user w on >w ~* +@all -client|kill", "w");
    lose_a_set_and_delete();
    ck_assert(!seen.can_kill);
    ck_assert_str_eq(cli("EXISTS", "k"), "1\n"); /* this is what the test above prevents */
}
END_TEST

START_TEST(R1_a_connection_whose_id_is_not_told_cannot_be_killed)
{
    given_a_node_behind_a_relay("user w on >w ~* +@all -client|id", "w");
    ck_assert(!seen.can_kill);
    lose_a_set_and_delete();
    ck_assert(!seen.can_kill);
}
END_TEST

static long kills(void)
{
    const char *field = strstr(cli("INFO", "commandstats"), "cmdstat_client|kill:calls=");
    return field == NULL ? 0 : strtol(strchr(field, '=') + 1, NULL, 10);
}

/* The kill is sent again on each new connection until the server has confirmed it. */
START_TEST(R1_the_kill_is_repeated_until_it_is_confirmed)
{
    given_a_node_behind_a_relay(NULL, "");
    long asked = kills(); /* the handshake checks the right to kill */
    struct pair *old = relay.pairs[0];
    old->is_holding = true;
    say(50 * US_PER_MS, "SET k late PX 60000\r\n");
    run_until(seen.ups == 2);
    relay.pairs[1]->is_holding = true; /* its handshake passes, its kill does not */
    run_until(seen.ups == 3);
    say(US_PER_S, "DEL k\r\n");
    relay_deliver(old);
    run_until(old->is_server_gone);
    ck_assert_str_eq(cli("EXISTS", "k"), "0\n");
    ck_assert_int_eq(kills(), 3 * asked + 2);
}
END_TEST

START_TEST(R1_a_restarted_server_gives_the_ids_to_strangers_and_nobody_is_killed)
{
    given_a_node_behind_a_relay(NULL, "");
    long asked = kills();
    redis_server_kill(&server);
    run_until(seen.downs == 1);
    ck_assert_int_eq(redis_server_restart(&server, NULL), STATUS_OK);
    run_until(seen.ups == 2);
    say(US_PER_S, "PING\r\n");
    ck_assert_int_eq(kills(), asked);
    ck_assert(seen.can_kill);
}
END_TEST

/* ---- writing to a peer that is gone ---- */

static void on_link_connected(void *ctx)
{
    struct seen *s = ctx;
    s->ups++;
}

static void on_link_bytes(void *ctx, const char *bytes, size_t len)
{
    struct seen *s = ctx;
    (void)bytes;
    s->bytes += len;
}

static void on_link_failed(void *ctx, const struct err *why)
{
    struct seen *s = ctx;
    s->failures++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

/* Returns a link, and the peer's end of it. */
static struct link *given_a_link(int *ret_peer)
{
    const struct link_events events = {.on_connected = on_link_connected,
                                       .on_bytes = on_link_bytes,
                                       .on_failed = on_link_failed,
                                       .ctx = &seen};
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct redis_endpoint e = {0};
    struct link *link = NULL;
    (void)signal(SIGPIPE, SIG_DFL);
    (void)snprintf(e.path, sizeof e.path, "%.90s/%d.sock", base_dir, (int)getpid());
    memcpy(addr.sun_path, e.path, sizeof e.path);
    autoclose int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (const struct sockaddr *)&addr, sizeof addr), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(
        link_open(&loop, &(const struct link_target){.endpoint = &e}, &events, &link, NULL),
        STATUS_OK);
    run_until(seen.ups == 1);
    *ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(*ret_peer, 0);
    return link;
}

START_TEST(F2_a_peer_that_is_gone_is_a_reason_and_no_signal)
{
    int peer = -1;
    struct link *link = given_a_link(&peer);
    (void)close(peer);
    ck_assert_int_eq(buf_append_text(link_out(link), "PING\r\n", NULL), STATUS_OK);
    link_flush(link);
    run_until(seen.failures == 1);
    link_close(link);
}
END_TEST

START_TEST(F2_nor_is_it_one_for_what_waits_for_a_slow_peer)
{
    static char bytes[CHUNK];
    int peer = -1;
    struct link *link = given_a_link(&peer);
    for (size_t i = 0; i < 64; i++) {
        ck_assert_int_eq(buf_append(link_out(link), bytes, sizeof bytes, NULL), STATUS_OK);
    }
    link_flush(link);
    ck_assert_uint_gt(link_out(link)->len, 0); /* more than the sockets hold */
    ck_assert_uint_eq(seen.failures, 0);
    (void)close(peer);
    run_until(seen.failures > 0);
    link_close(link);
}
END_TEST

START_TEST(the_last_words_of_a_peer_are_heard_though_it_takes_none_any_more)
{
    int peer = -1;
    struct link *link = given_a_link(&peer);
    ck_assert_int_eq(send(peer, "-ERR full\r\n", 11, 0), 11);
    (void)close(peer);
    ck_assert_int_eq(buf_append_text(link_out(link), "PING\r\n", NULL), STATUS_OK);
    link_flush(link);
    run_until(seen.failures == 1);
    ck_assert_uint_eq(seen.bytes, 11);
    link_close(link);
}
END_TEST

START_TEST(what_waits_for_a_slow_peer_arrives_in_order)
{
    static unsigned char bytes[4 << 20];
    static unsigned char got[sizeof bytes];
    int peer = -1;
    size_t received = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 2654435761U >> 16);
    }
    struct link *link = given_a_link(&peer);
    ck_assert_int_eq(buf_append(link_out(link), bytes, sizeof bytes / 2, NULL), STATUS_OK);
    link_flush(link);
    ck_assert_int_eq(buf_append(link_out(link), bytes + sizeof bytes / 2, sizeof bytes / 2, NULL),
                     STATUS_OK);
    link_flush(link);
    while (received < sizeof bytes) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        ssize_t n = recv(peer, got + received, sizeof got - received, MSG_DONTWAIT);
        received += n > 0 ? (size_t)n : 0;
    }
    ck_assert_mem_eq(got, bytes, sizeof bytes);
    ck_assert_uint_eq(link_out(link)->len, 0);
    link_close(link);
    (void)close(peer);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, R1_a_set_of_a_lost_connection_cannot_land_behind_what_the_next_one_sends);
    tcase_add_test(t, R1_where_the_server_refuses_to_kill_it_is_known_that_a_set_may_still_land);
    tcase_add_test(t, R1_a_connection_whose_id_is_not_told_cannot_be_killed);
    tcase_add_test(t, R1_the_kill_is_repeated_until_it_is_confirmed);
    tcase_add_test(t, R1_a_restarted_server_gives_the_ids_to_strangers_and_nobody_is_killed);
    tcase_add_test(t, F2_a_peer_that_is_gone_is_a_reason_and_no_signal);
    tcase_add_test(t, F2_nor_is_it_one_for_what_waits_for_a_slow_peer);
    tcase_add_test(t, the_last_words_of_a_peer_are_heard_though_it_takes_none_any_more);
    tcase_add_test(t, what_waits_for_a_slow_peer_arrives_in_order);
}

int main(void)
{
    const struct suite_in_dir in = {.name = "connection",
                                    .ret_dir = base_dir,
                                    .dir_size = sizeof base_dir,
                                    .timeout_s = 30,
                                    .setup = setup,
                                    .teardown = teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
