/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cluster/servers.h"
#include "redis/redis.h"
#include "support/suite_dir.h"

#include <check.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>

#define LIMIT_US (120 * US_PER_S)
#define TEXTS_MAX 64

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static uv_loop_t loop;
static struct redis_node *node;

static const struct redis_script echo_script = {.name = "echo",
                                                .body = "return {#KEYS, KEYS[1], ARGV[1]}"};
static const struct redis_script *const scripts[] = {&echo_script};

struct seen {
    size_t ups;
    size_t downs;
    char why[ERR_TEXT_MAX];
    char run_id[41];
    bool refuse;
    size_t replies;
    char text[TEXTS_MAX][64];
    size_t done;
    enum status st[TEXTS_MAX];
};
static struct seen seen;

static enum status on_up(void *ctx, struct redis_node *n, const struct redis_server_info *info,
                         struct err *err)
{
    struct seen *s = ctx;
    (void)n;
    s->ups++;
    memcpy(s->run_id, info->run_id, sizeof s->run_id);
    return s->refuse ? err_fail(err, STATUS_INVALID, "not this one") : STATUS_OK;
}

static void on_down(void *ctx, struct redis_node *n, const struct err *why)
{
    struct seen *s = ctx;
    (void)n;
    s->downs++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct seen *s = ctx;
    (void)index;
    const struct redis_value *shown = v->type == REDIS_ARRAY ? v->items[v->len - 1] : v;
    if (s->replies < TEXTS_MAX) {
        (void)snprintf(s->text[s->replies], sizeof s->text[0], "%s", shown->text);
    }
    s->replies++;
}

static void on_done(void *ctx, enum status st)
{
    struct seen *s = ctx;
    if (s->done < TEXTS_MAX) {
        s->st[s->done] = st;
    }
    s->done++;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until `expr` is true, or fails at the limit. */
#define run_until(expr)                                           \
    do {                                                          \
        int64_t end_ = clock_boot_us() + LIMIT_US;                \
        while (!(expr) && clock_boot_us() < end_) {               \
            (void)uv_run(&loop, UV_RUN_ONCE);                     \
        }                                                         \
        ck_assert_msg((expr), "never: %s (%s)", #expr, seen.why); \
    } while (0)

static void open_node(const char *user, const char *password)
{
    struct redis_options o = {.loop = &loop,
                              .connect_timeout_us = 300 * US_PER_MS,
                              .scripts = scripts,
                              .script_count = 1,
                              .on_up = on_up,
                              .on_down = on_down,
                              .ctx = &seen};
    (void)snprintf(o.endpoint.path, sizeof o.endpoint.path, "%s", server.path);
    (void)snprintf(o.endpoint.user, sizeof o.endpoint.user, "%s", user);
    (void)snprintf(o.endpoint.password, sizeof o.endpoint.password, "%s", password);
    ck_assert_int_eq(redis_node_open(&o, &node, NULL), STATUS_OK);
}

static enum status send_words(int64_t timeout_us, const char *const *words, size_t count)
{
    autobuf struct buf out = BUF_INIT(65536);
    struct redis_arg args[16];
    for (size_t i = 0; i < count; i++) {
        args[i] = (struct redis_arg){words[i], strlen(words[i])};
    }
    ck_assert_int_eq(redis_command(&out, args, count, NULL), STATUS_OK);
    const struct redis_request r = {.bytes = buf_at(&out),
                                    .len = out.len,
                                    .reply_count = 1,
                                    .timeout_us = timeout_us,
                                    .on_reply = on_reply,
                                    .on_done = on_done,
                                    .ctx = &seen};
    return redis_node_send(node, &r, NULL);
}
#define say(timeout_us, ...)                                     \
    send_words((timeout_us), (const char *const[]){__VA_ARGS__}, \
               ARRAY_COUNT(((const char *const[]){__VA_ARGS__})))

static enum status call_echo(void)
{
    const struct redis_arg key = {"claimd:k", 8};
    const struct redis_arg arg = {"hello", 5};
    const struct redis_script_call call = {.script = &echo_script,
                                           .keys = &key,
                                           .key_count = 1,
                                           .args = &arg,
                                           .arg_count = 1,
                                           .timeout_us = US_PER_S,
                                           .on_reply = on_reply,
                                           .on_done = on_done,
                                           .ctx = &seen};
    return redis_node_call(node, &call, NULL);
}

static void start_server(const char *extra)
{
    char dir[SERVER_PATH_MAX + 32];
    struct err err = {0};
    (void)snprintf(dir, sizeof dir, "%s/%d", base_dir, (int)getpid());
    ck_assert_msg(redis_server_start(dir, extra, &server, &err) == STATUS_OK, "%s", err.msg);
}

static uv_timer_t tick;

static void setup(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_timer_init(&loop, &tick), 0);
    (void)uv_timer_start(&tick, on_tick, 5, 5); /* so that run_until() can give up */
}

static void teardown(void)
{
    redis_node_close(node);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left open */
    redis_server_stop(&server);
}

static void given_a_node_that_is_up(void)
{
    start_server(NULL);
    open_node("", "");
    run_until(seen.ups == 1);
    ck_assert(redis_node_is_up(node));
}

START_TEST(the_handshake_reads_what_the_server_is)
{
    given_a_node_that_is_up();
    const struct redis_server_info *info = redis_node_info(node);
    ck_assert_uint_eq(strlen(info->run_id), 40);
    ck_assert_int_ge(info->version_number, 70000);
    ck_assert(info->is_master && !info->is_cluster && !info->may_evict);
    ck_assert_int_eq(info->replica_count, 0);
    ck_assert(strcmp(info->server, "redis") == 0 || strcmp(info->server, "valkey") == 0);
    ck_assert_int_gt(info->client_id, 0);
}
END_TEST

START_TEST(replies_come_in_the_order_of_the_requests)
{
    given_a_node_that_is_up();
    for (int i = 0; i < 50; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "n%d", i);
        ck_assert_int_eq(say(US_PER_S, "ECHO", text), STATUS_OK);
    }
    ck_assert_uint_eq(seen.done, 0);
    run_until(seen.done == 50);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(strtol(seen.text[i] + 1, NULL, 10), i);
        ck_assert_int_eq(seen.st[i], STATUS_OK);
    }
}
END_TEST

static long reads_of_server(void)
{
    static char info[8192];
    autobuf struct buf out = BUF_INIT(sizeof info);
    const char *const words[] = {"INFO", "stats", NULL};
    ck_assert_int_eq(redis_server_ask(&server, words, &out, NULL), STATUS_OK);
    const char *field = strstr(buf_at(&out), "total_reads_processed:");
    ck_assert_ptr_nonnull(field);
    return strtol(field + strlen("total_reads_processed:"), NULL, 10);
}

START_TEST(what_is_sent_in_one_turn_leaves_in_one_write)
{
    given_a_node_that_is_up();
    long idle = -reads_of_server();
    idle += reads_of_server();
    long before = reads_of_server();
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_OK);
    }
    run_until(seen.done == 50);
    ck_assert_int_eq(reads_of_server() - before - idle, 1);
}
END_TEST

START_TEST(C3_a_late_reply_closes_the_connection_and_is_nobodys)
{
    given_a_node_that_is_up();
    ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
    ck_assert_int_eq(say(50 * US_PER_MS, "ECHO", "late"), STATUS_OK);
    ck_assert_int_eq(say(2 * US_PER_S, "ECHO", "behind it"), STATUS_OK);
    run_until(seen.done == 2);
    ck_assert_int_eq(seen.st[0], STATUS_TIMEOUT);
    ck_assert_int_eq(seen.st[1], STATUS_UNAVAILABLE);
    ck_assert_uint_eq(seen.downs, 1);
    ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_UNAVAILABLE); /* A13: at once */
    ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
    run_until(seen.ups == 2);
    ck_assert_int_eq(say(US_PER_S, "ECHO", "fresh"), STATUS_OK);
    run_until(seen.done == 3);
    ck_assert_uint_eq(seen.replies, 1);
    ck_assert_str_eq(seen.text[0], "fresh");
}
END_TEST

START_TEST(C4_each_request_has_its_own_deadline)
{
    given_a_node_that_is_up();
    ck_assert_int_eq(say(5 * US_PER_S, "BZMPOP", "0.3", "1", "claimd:none", "MIN"), STATUS_OK);
    ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_OK);
    run_until(seen.done == 2);
    ck_assert_int_eq(seen.st[0], STATUS_OK);
    ck_assert_int_eq(seen.st[1], STATUS_OK);
}
END_TEST

START_TEST(replies_that_arrived_while_we_were_stopped_count)
{
    given_a_node_that_is_up();
    ck_assert_int_eq(say(30 * US_PER_MS, "PING"), STATUS_OK);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    int64_t end = clock_boot_us() + 60 * US_PER_MS;
    while (clock_boot_us() < end) {
        /* this thread does not read its sockets */
    }
    run_until(seen.done == 1);
    ck_assert_int_eq(seen.st[0], STATUS_OK);
}
END_TEST

START_TEST(C4_a_deadline_counts_from_the_write)
{
    given_a_node_that_is_up();
    ck_assert_int_eq(say(30 * US_PER_MS, "PING"), STATUS_OK);
    ck_assert(!WAIT_UNTIL(false, 60 * US_PER_MS)); /* this thread is busy before it can write */
    run_until(seen.done == 1);
    ck_assert_int_eq(seen.st[0], STATUS_OK);
}
END_TEST

/* Checks every socket of this process except those that existed before. */
static void check_sockets(bool is_tcp)
{
    size_t found = 0;
    for (int fd = 3; fd < 256; fd++) {
        int type = 0;
        int family = 0;
        socklen_t len = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
            getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) != 0 || type != SOCK_STREAM ||
            (is_tcp ? family == AF_UNIX : family != AF_UNIX)) {
            continue;
        }
        ck_assert((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        if (is_tcp) {
            int on = 0;
            ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
            ck_assert_int_ne(on, 0);
            ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len), 0);
            ck_assert_int_ne(on, 0);
            ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &on, &len), 0);
            ck_assert_int_ne(on, 0);
        }
        found++;
    }
    ck_assert_uint_ge(found, 1);
}

START_TEST(F2_a_unix_socket_is_closed_on_exec)
{
    given_a_node_that_is_up();
    check_sockets(false);
}
END_TEST

START_TEST(C7_a_name_is_resolved_and_connected_over_tcp)
{
    char extra[64];
    struct redis_options o = {.loop = &loop,
                              .connect_timeout_us = 2 * US_PER_S,
                              .on_up = on_up,
                              .on_down = on_down,
                              .ctx = &seen};
    o.endpoint.port = port_free();
    (void)snprintf(o.endpoint.host, sizeof o.endpoint.host, "localhost");
    (void)snprintf(extra, sizeof extra, "bind 127.0.0.1\nport %d", o.endpoint.port);
    start_server(extra);
    ck_assert_int_eq(redis_node_open(&o, &node, NULL), STATUS_OK);
    run_until(seen.ups == 1);
    check_sockets(true);
    ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_OK);
    run_until(seen.done == 1);
}
END_TEST

START_TEST(a_name_that_does_not_resolve_is_down_with_the_reason)
{
    struct redis_options o = {
        .loop = &loop, .connect_timeout_us = 5 * US_PER_S, .on_down = on_down, .ctx = &seen};
    o.endpoint.port = REDIS_PORT_DEFAULT;
    (void)snprintf(o.endpoint.host, sizeof o.endpoint.host, "256.256.256.256");
    ck_assert_int_eq(redis_node_open(&o, &node, NULL), STATUS_OK);
    run_until(seen.downs == 1);
    ck_assert_ptr_nonnull(strstr(seen.why, "resolve"));
}
END_TEST

START_TEST(C9_a_script_that_the_server_forgot_is_sent_whole)
{
    given_a_node_that_is_up();
    ck_assert_int_eq(call_echo(), STATUS_OK);
    ck_assert_int_eq(say(US_PER_S, "SCRIPT", "FLUSH"), STATUS_OK);
    ck_assert_int_eq(call_echo(), STATUS_OK);
    run_until(seen.done == 3);
    ck_assert_str_eq(seen.text[0], "hello");
    ck_assert_str_eq(seen.text[2], "hello");
    ck_assert_uint_eq(seen.replies, 3);
}
END_TEST

START_TEST(C2_a_server_that_died_is_connected_again)
{
    given_a_node_that_is_up();
    char before[41];
    memcpy(before, seen.run_id, sizeof before);
    redis_server_kill(&server);
    run_until(seen.downs == 1);
    ck_assert(!redis_node_is_up(node));
    ck_assert_int_eq(redis_server_restart(&server, NULL), STATUS_OK);
    run_until(seen.ups == 2);
    ck_assert_str_ne(seen.run_id, before);
    ck_assert_uint_eq(seen.downs, 1);
}
END_TEST

START_TEST(C5_a_user_with_the_least_rights_may_connect)
{
    start_server("user w on >pw ~claimd:* resetchannels -@all +info +script|load +evalsha");
    open_node("w", "pw");
    run_until(seen.ups == 1);
    ck_assert_int_eq(call_echo(), STATUS_OK);
    run_until(seen.done == 1);
    ck_assert_str_eq(seen.text[0], "hello");
}
END_TEST

START_TEST(C5_a_user_who_may_ask_nothing_but_info_is_served_without_the_rest)
{
    start_server("user w on >pw ~claimd:* resetchannels -@all +info +script|load +evalsha");
    open_node("w", "pw");
    run_until(seen.ups == 1);
    const struct redis_server_info *info = redis_node_info(node);
    ck_assert_int_eq(info->client_id, 0);
    ck_assert(!info->can_kill && !info->has_delifeq && !info->has_delex);
    ck_assert_uint_eq(strlen(info->run_id), 40);
}
END_TEST

/* The server of these tests is older than DELEX. Another command with three arguments and a number
 * as its reply stands in for it here; the ACL knows it by its old name. */
static const struct {
    const char *rights;
    bool may;
} natives[] = {
    {"~* +@all", true},
    {"~claimd:* -@all +info +command|info +script|load +smove", true},
    {"~claimd:* -@all +info +command|info +script|load", false},
    {"~* -@all +info +script|load +smove", false},
};

START_TEST(C9_a_native_command_is_used_where_it_is_there_and_permitted)
{
    char extra[160];
    (void)snprintf(extra, sizeof extra,
                   "rename-command SMOVE DELEX\nuser w on >pw resetchannels %s",
                   natives[_i].rights);
    start_server(extra);
    open_node("w", "pw");
    run_until(seen.ups == 1);
    ck_assert_int_eq(redis_node_info(node)->has_delex, natives[_i].may);
    ck_assert(!redis_node_info(node)->has_delifeq);
    ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_OK); /* replies are still in order */
    run_until(seen.done == 1);
}
END_TEST

START_TEST(C8_a_wrong_password_is_a_reason_to_be_down)
{
    start_server("user w on >pw ~claimd:* +@all");
    open_node("w", "wrong");
    run_until(seen.downs == 1);
    ck_assert_ptr_nonnull(strstr(seen.why, "AUTH refused: WRONGPASS"));
    ck_assert_ptr_null(strstr(seen.why, "wrong-"));
    ck_assert_uint_eq(seen.ups, 0);
}
END_TEST

START_TEST(a_refused_server_is_down_with_the_reason)
{
    start_server(NULL);
    seen.refuse = true;
    open_node("", "");
    run_until(seen.downs == 1);
    ck_assert_ptr_nonnull(strstr(seen.why, "not this one"));
    ck_assert(!redis_node_is_up(node));
}
END_TEST

START_TEST(closing_ends_what_is_in_flight)
{
    given_a_node_that_is_up();
    ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_OK);
    redis_node_close(TAKE(node));
    ck_assert_uint_eq(seen.done, 1);
    ck_assert_int_eq(seen.st[0], STATUS_UNAVAILABLE);
}
END_TEST

static void close_on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    redis_node_close(TAKE(node));
    on_reply(ctx, index, v);
}

START_TEST(a_node_may_be_closed_from_a_reply)
{
    given_a_node_that_is_up();
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    const struct redis_request r = {.bytes = ping,
                                    .len = sizeof ping - 1,
                                    .reply_count = 1,
                                    .timeout_us = US_PER_S,
                                    .on_reply = close_on_reply,
                                    .on_done = on_done,
                                    .ctx = &seen};
    ck_assert_int_eq(redis_node_send(node, &r, NULL), STATUS_OK);
    ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_OK);
    run_until(seen.done == 2);
    ck_assert_str_eq(seen.text[0], "PONG");
}
END_TEST

START_TEST(too_much_in_flight_is_refused)
{
    static char bytes[1 << 20];
    given_a_node_that_is_up();
    const struct redis_request r = {
        .bytes = bytes, .len = sizeof bytes, .reply_count = 1, .timeout_us = US_PER_S};
    for (size_t sum = 0; sum < REDIS_IN_FLIGHT_BYTES_MAX; sum += sizeof bytes) {
        ck_assert_int_eq(redis_node_send(node, &r, NULL), STATUS_OK);
    }
    ck_assert_int_eq(say(US_PER_S, "PING"), STATUS_LIMIT);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, the_handshake_reads_what_the_server_is);
    tcase_add_loop_test(t, C9_a_native_command_is_used_where_it_is_there_and_permitted, 0,
                        (int)ARRAY_COUNT(natives));
    tcase_add_test(t, replies_come_in_the_order_of_the_requests);
    tcase_add_test(t, what_is_sent_in_one_turn_leaves_in_one_write);
    tcase_add_test(t, C3_a_late_reply_closes_the_connection_and_is_nobodys);
    tcase_add_test(t, C4_each_request_has_its_own_deadline);
    tcase_add_test(t, C4_a_deadline_counts_from_the_write);
    tcase_add_test(t, F2_a_unix_socket_is_closed_on_exec);
    tcase_add_test(t, C7_a_name_is_resolved_and_connected_over_tcp);
    tcase_add_test(t, a_name_that_does_not_resolve_is_down_with_the_reason);
    tcase_add_test(t, replies_that_arrived_while_we_were_stopped_count);
    tcase_add_test(t, C9_a_script_that_the_server_forgot_is_sent_whole);
    tcase_add_test(t, C2_a_server_that_died_is_connected_again);
    tcase_add_test(t, C5_a_user_with_the_least_rights_may_connect);
    tcase_add_test(t, C5_a_user_who_may_ask_nothing_but_info_is_served_without_the_rest);
    tcase_add_test(t, C8_a_wrong_password_is_a_reason_to_be_down);
    tcase_add_test(t, a_refused_server_is_down_with_the_reason);
    tcase_add_test(t, closing_ends_what_is_in_flight);
    tcase_add_test(t, a_node_may_be_closed_from_a_reply);
    tcase_add_test(t, too_much_in_flight_is_refused);
}

int main(void)
{
    const struct suite_in_dir in = {.name = "redis",
                                    .ret_dir = base_dir,
                                    .dir_size = sizeof base_dir,
                                    .timeout_s = 30,
                                    .setup = setup,
                                    .teardown = teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
