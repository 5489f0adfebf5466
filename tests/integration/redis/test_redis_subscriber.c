/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cluster/servers.h"
#include "redis/subscriber.h"
#include "support/fault_proxy.h"
#include "support/suite_dir.h"

#include <check.h>
#include <stdio.h>

#define LIMIT_US (120 * US_PER_S)
#define MESSAGE(channel, payload) "*3\r\n$7\r\nmessage\r\n" channel payload
#define PONG "*2\r\n$4\r\npong\r\n$0\r\n\r\n"

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static struct fault_proxy *proxy;
static uv_loop_t loop;
static uv_timer_t tick;
static struct redis_subscriber *sub;

struct seen {
    size_t refusals;
    size_t subscribed;
    size_t messages;
    char payload[64]; /* of the last message */
    size_t payload_len;
    char why[ERR_TEXT_MAX];
};
static struct seen seen;

static void on_message(void *ctx, const char *payload, size_t payload_len)
{
    struct seen *s = ctx;
    s->messages++;
    s->payload_len = payload_len;
    memcpy(s->payload, payload, payload_len < sizeof s->payload ? payload_len : 0);
}

static void on_subscribed(void *ctx)
{
    struct seen *s = ctx;
    s->subscribed++;
}

static void on_refused(void *ctx, const struct err *why)
{
    struct seen *s = ctx;
    s->refusals++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

#define run_until(expr)                                           \
    do {                                                          \
        int64_t end_ = clock_boot_us() + LIMIT_US;                \
        while (!(expr) && clock_boot_us() < end_) {               \
            (void)uv_run(&loop, UV_RUN_ONCE);                     \
        }                                                         \
        ck_assert_msg((expr), "never: %s (%s)", #expr, seen.why); \
    } while (0)

static void setup(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_timer_init(&loop, &tick), 0);
    (void)uv_timer_start(&tick, on_tick, 5, 5); /* so that run_until() can give up */
}

static void teardown(void)
{
    redis_subscriber_close(sub);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left open */
    fault_proxy_stop(proxy);
    redis_server_stop(&server);
}

static void given_a_server(const char *extra)
{
    char dir[SERVER_PATH_MAX + 32];
    struct err err = {0};
    (void)snprintf(dir, sizeof dir, "%s/%d", base_dir, (int)getpid());
    ck_assert_msg(redis_server_start(dir, extra, &server, &err) == STATUS_OK, "%s", err.msg);
}

/* Options for the channel "c", through the proxy if there is one. */
static struct redis_subscriber_options some_options(void)
{
    struct redis_subscriber_options o = {.loop = &loop,
                                         .channel = "c",
                                         .channel_len = 1,
                                         .connect_timeout_us = US_PER_S,
                                         .on_message = on_message,
                                         .on_subscribed = on_subscribed,
                                         .on_refused = on_refused,
                                         .ctx = &seen};
    const char *url = proxy != NULL ? fault_proxy_url(proxy) : NULL;
    if (url != NULL) {
        ck_assert_int_eq(redis_endpoint_parse(url, &o.endpoint, NULL), STATUS_OK);
    } else {
        (void)snprintf(o.endpoint.path, sizeof o.endpoint.path, "%s", server.path);
    }
    return o;
}

static void open_it(const struct redis_subscriber_options *o)
{
    struct err err = {0};
    ck_assert_msg(redis_subscriber_open(o, &sub, &err) == STATUS_OK, "%s", err.msg);
}

static void given_a_subscriber(int64_t ping_after_us)
{
    given_a_server(NULL);
    struct redis_subscriber_options o = some_options();
    o.ping_after_us = ping_after_us;
    open_it(&o);
    run_until(seen.subscribed == 1);
}

static void given_a_proxy(void)
{
    given_a_server(NULL);
    ck_assert_int_eq(fault_proxy_start(server.path, &proxy, NULL), STATUS_OK);
}

/* Returns what redis-cli prints for a command. */
static long ask(const char *a, const char *b, const char *c)
{
    autobuf struct buf out = BUF_INIT(65536);
    const char *const words[] = {a, b, c, NULL};
    ck_assert_int_eq(redis_server_ask(&server, words, &out, NULL), STATUS_OK);
    return strtol(buf_at(&out), NULL, 10);
}

static void publish(const char *channel, const char *payload)
{
    ck_assert_int_eq(ask("PUBLISH", channel, payload), 1);
}

static long pings_of_server(void)
{
    autobuf struct buf out = BUF_INIT(65536);
    const char *const words[] = {"INFO", "commandstats", NULL};
    ck_assert_int_eq(redis_server_ask(&server, words, &out, NULL), STATUS_OK);
    const char *field = strstr(buf_at(&out), "cmdstat_ping:calls=");
    return field == NULL ? 0 : strtol(strchr(field, '=') + 1, NULL, 10);
}

static void run_for_some_pings(void)
{
    long before = pings_of_server();
    run_until(pings_of_server() > before + 2);
}

START_TEST(messages_of_the_channel_come)
{
    given_a_subscriber(0);
    publish("c", "hello");
    run_until(seen.messages == 1);
    ck_assert_mem_eq(seen.payload, "hello", 5);
    ck_assert_uint_eq(seen.payload_len, 5);
    ck_assert_uint_eq(seen.subscribed, 1);
}
END_TEST

START_TEST(a_channel_is_its_exact_bytes)
{
    char channel[] = "a\0b";
    given_a_server(NULL);
    struct redis_subscriber_options o = some_options();
    o.channel = channel;
    o.channel_len = 3;
    open_it(&o);
    memset(channel, 'x', sizeof channel); /* the option was copied */
    run_until(seen.subscribed == 1);
    ck_assert_int_eq(ask("PUBLISH", "a", "x"), 0);
    ck_assert_int_eq(ask("EVAL", "return redis.call('PUBLISH', 'a\\0c', 'x')", "0"), 0);
    ck_assert_int_eq(ask("EVAL", "return redis.call('PUBLISH', 'a\\0b', '1\\0002')", "0"), 1);
    run_until(seen.messages == 1);
    ck_assert_uint_eq(seen.payload_len, 3);
    ck_assert_mem_eq(seen.payload, "1\0002", 3);
}
END_TEST

START_TEST(it_is_subscribed_again_after_a_reconnect)
{
    given_a_subscriber(0);
    redis_server_kill(&server);
    ck_assert_int_eq(redis_server_restart(&server, NULL), STATUS_OK);
    run_until(seen.subscribed == 2);
    publish("c", "x");
    run_until(seen.messages == 1);
    ck_assert_uint_eq(seen.subscribed, 2);
}
END_TEST

START_TEST(a_silent_connection_is_checked_and_replaced)
{
    given_a_proxy();
    fault_proxy_set(proxy, &(const struct fault){.kind = FAULT_SWALLOW, .on = "PING"});
    struct redis_subscriber_options o = some_options();
    o.ping_after_us = 50 * US_PER_MS;
    open_it(&o);
    run_until(seen.subscribed == 2);
    ck_assert_uint_ge(fault_proxy_counts(proxy).faults, 1);
}
END_TEST

START_TEST(a_silent_connection_that_answers_stays)
{
    given_a_subscriber(20 * US_PER_MS);
    run_for_some_pings();
    ck_assert_uint_eq(seen.subscribed, 1);
}
END_TEST

/* The connection stays, and PING is answered in another form than with a subscribed channel. */
START_TEST(C5_a_channel_that_the_acl_denies_is_refused_once)
{
    given_a_server("user w on >w resetkeys resetchannels &ok:* -@all +info +ping +subscribe");
    struct redis_subscriber_options o = some_options();
    o.ping_after_us = 20 * US_PER_MS;
    (void)snprintf(o.endpoint.user, sizeof o.endpoint.user, "w");
    (void)snprintf(o.endpoint.password, sizeof o.endpoint.password, "w");
    open_it(&o);
    run_until(seen.refusals == 1);
    ck_assert_ptr_nonnull(strstr(seen.why, "SUBSCRIBE refused: NOPERM"));
    run_for_some_pings();
    ck_assert_uint_eq(seen.refusals, 1);
    ck_assert_uint_eq(seen.subscribed, 0);
}
END_TEST

START_TEST(a_message_may_come_between_a_command_and_its_reply)
{
    given_a_proxy();
    fault_proxy_set(proxy, &(const struct fault){.kind = FAULT_SWALLOW, .on = "PING", .count = 1});
    struct redis_subscriber_options o = some_options();
    o.connect_timeout_us = 20 * US_PER_S;
    o.ping_after_us = 20 * US_PER_MS;
    open_it(&o);
    run_until(fault_proxy_counts(proxy).faults == 1);
    fault_proxy_inject(proxy, MESSAGE("$1\r\nc\r\n", "$1\r\nx\r\n"));
    fault_proxy_inject(proxy, PONG); /* the swallowed reply */
    run_until(seen.messages == 1);
    run_for_some_pings();
    ck_assert_uint_eq(seen.subscribed, 1);
}
END_TEST

START_TEST(messages_of_another_channel_are_ignored)
{
    given_a_proxy();
    struct redis_subscriber_options o = some_options();
    open_it(&o);
    run_until(seen.subscribed == 1);
    fault_proxy_inject(proxy, MESSAGE("$2\r\nc2\r\n", "$1\r\nx\r\n"));
    fault_proxy_inject(proxy, MESSAGE("$1\r\nd\r\n", "$1\r\nx\r\n"));
    fault_proxy_inject(proxy, MESSAGE("$1\r\nc\r\n", "$1\r\ny\r\n"));
    run_until(seen.messages >= 1);
    ck_assert_mem_eq(seen.payload, "y", 1);
    ck_assert_uint_eq(seen.messages, 1);
    ck_assert_uint_eq(seen.subscribed, 1);
}
END_TEST

START_TEST(another_channels_confirmation_is_none)
{
    given_a_proxy();
    fault_proxy_set(proxy,
                    &(const struct fault){.kind = FAULT_REPLACE,
                                          .on = "SUBSCRIBE",
                                          .text = "*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:1\r\n",
                                          .count = 1});
    struct redis_subscriber_options o = some_options();
    open_it(&o);
    run_until(fault_proxy_counts(proxy).faults == 1);
    fault_proxy_inject(proxy, MESSAGE("$1\r\nc\r\n", "$1\r\nx\r\n")); /* after the fault */
    run_until(seen.messages == 1);
    ck_assert_uint_eq(seen.subscribed, 0);
}
END_TEST

static const char *const no_messages[] = {
    MESSAGE("$1\r\nc\r\n", ":1\r\n"),
    MESSAGE(":1\r\n", "$1\r\nx\r\n"),
    "*2\r\n$7\r\nmessage\r\n$1\r\nc\r\n",
    "*3\r\n$8\r\npmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*0\r\n",
    "+OK\r\n",
    PONG,
};

START_TEST(what_is_no_message_and_no_reply_ends_the_connection)
{
    given_a_proxy();
    struct redis_subscriber_options o = some_options();
    open_it(&o);
    run_until(seen.subscribed == 1);
    fault_proxy_inject(proxy, no_messages[_i]);
    run_until(seen.subscribed == 2);
    ck_assert_uint_eq(seen.messages, 0);
}
END_TEST

START_TEST(a_channel_is_bounded)
{
    static char name[REDIS_CHANNEL_LEN_MAX + 2];
    memset(name, 'a', sizeof name - 1);
    given_a_server(NULL);
    struct redis_subscriber_options o = some_options();
    o.channel = name;
    o.channel_len = 0;
    ck_assert_int_eq(redis_subscriber_open(&o, &sub, NULL), STATUS_INVALID);
    o.channel_len = REDIS_CHANNEL_LEN_MAX + 1;
    ck_assert_int_eq(redis_subscriber_open(&o, &sub, NULL), STATUS_INVALID);
    ck_assert_ptr_null(sub);
    o.channel_len = REDIS_CHANNEL_LEN_MAX;
    open_it(&o);
    run_until(seen.subscribed == 1);
    name[REDIS_CHANNEL_LEN_MAX] = '\0';
    publish(name, "x");
    run_until(seen.messages == 1);
}
END_TEST

static void close_on_message(void *ctx, const char *payload, size_t payload_len)
{
    redis_subscriber_close(TAKE(sub));
    on_message(ctx, payload, payload_len);
}

START_TEST(a_subscriber_may_be_closed_from_a_message)
{
    given_a_server(NULL);
    struct redis_subscriber_options o = some_options();
    o.on_message = close_on_message;
    open_it(&o);
    run_until(seen.subscribed == 1);
    publish("c", "x");
    run_until(seen.messages == 1);
    ck_assert_mem_eq(seen.payload, "x", 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, messages_of_the_channel_come);
    tcase_add_test(t, a_channel_is_its_exact_bytes);
    tcase_add_test(t, it_is_subscribed_again_after_a_reconnect);
    tcase_add_test(t, a_silent_connection_is_checked_and_replaced);
    tcase_add_test(t, a_silent_connection_that_answers_stays);
    tcase_add_test(t, C5_a_channel_that_the_acl_denies_is_refused_once);
    tcase_add_test(t, a_message_may_come_between_a_command_and_its_reply);
    tcase_add_test(t, messages_of_another_channel_are_ignored);
    tcase_add_test(t, another_channels_confirmation_is_none);
    tcase_add_loop_test(t, what_is_no_message_and_no_reply_ends_the_connection, 0,
                        (int)ARRAY_COUNT(no_messages));
    tcase_add_test(t, a_channel_is_bounded);
    tcase_add_test(t, a_subscriber_may_be_closed_from_a_message);
}

int main(void)
{
    const struct suite_in_dir in = {.name = "subscriber",
                                    .ret_dir = base_dir,
                                    .dir_size = sizeof base_dir,
                                    .timeout_s = 30,
                                    .setup = setup,
                                    .teardown = teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
