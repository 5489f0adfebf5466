/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cluster/servers.h"
#include "redis/subscriber.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define LIMIT_US (120 * US_PER_S)

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static uv_loop_t loop;
static uv_timer_t tick;
static struct redis_subscriber *sub;

struct seen {
    size_t ups;
    size_t downs;
    size_t refusals;
    size_t subscribed;
    size_t messages;
    char channel[64]; /* of the last message, or the last channel confirmed */
    char payload[64];
    size_t payload_len;
    char why[ERR_TEXT_MAX];
};
static struct seen seen;

static void on_message(void *ctx, const char *channel, size_t channel_len, const char *payload,
                       size_t payload_len)
{
    struct seen *s = ctx;
    s->messages++;
    s->payload_len = payload_len;
    (void)snprintf(s->channel, sizeof s->channel, "%.*s", (int)channel_len, channel);
    memcpy(s->payload, payload, payload_len < sizeof s->payload ? payload_len : 0);
}

static void on_subscribed(void *ctx, const char *channel, size_t len)
{
    struct seen *s = ctx;
    s->subscribed++;
    (void)snprintf(s->channel, sizeof s->channel, "%.*s", (int)len, channel);
}

static void on_refused(void *ctx, const struct err *why)
{
    struct seen *s = ctx;
    s->refusals++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

static void on_up(void *ctx)
{
    struct seen *s = ctx;
    s->ups++;
}

static void on_down(void *ctx, const struct err *why)
{
    struct seen *s = ctx;
    s->downs++;
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
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* nothing was left open */
    redis_server_stop(&server);
}

static void given_a_subscriber(const char *extra, const char *user, int64_t ping_after_us)
{
    char dir[SERVER_PATH_MAX + 32];
    struct err err = {0};
    struct redis_subscriber_options o = {.loop = &loop,
                                         .connect_timeout_us = US_PER_S,
                                         .ping_after_us = ping_after_us,
                                         .on_message = on_message,
                                         .on_subscribed = on_subscribed,
                                         .on_refused = on_refused,
                                         .on_up = on_up,
                                         .on_down = on_down,
                                         .ctx = &seen};
    (void)snprintf(dir, sizeof dir, "%s/%d", base_dir, (int)getpid());
    ck_assert_msg(redis_server_start(dir, extra, &server, &err) == STATUS_OK, "%s", err.msg);
    (void)snprintf(o.endpoint.path, sizeof o.endpoint.path, "%s", server.path);
    (void)snprintf(o.endpoint.user, sizeof o.endpoint.user, "%s", user);
    (void)snprintf(o.endpoint.password, sizeof o.endpoint.password, "%s", user);
    ck_assert_int_eq(redis_subscriber_open(&o, &sub, NULL), STATUS_OK);
}

static void want(const char *channel)
{
    struct err err = {0};
    ck_assert_msg(redis_subscribe(sub, channel, strlen(channel), &err) == STATUS_OK, "%s", err.msg);
}

static void unwant(const char *channel)
{
    redis_unsubscribe(sub, channel, strlen(channel));
}

static bool is_on(const char *channel)
{
    return redis_is_subscribed(sub, channel, strlen(channel));
}

/* What redis-cli prints for a command. */
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

START_TEST(messages_of_wanted_channels_come)
{
    given_a_subscriber(NULL, "", 0);
    want("before it is up");
    run_until(seen.subscribed == 1);
    want("and after");
    run_until(seen.subscribed == 2);
    ck_assert_str_eq(seen.channel, "and after");
    want("and after"); /* is wanted already */
    publish("before it is up", "hello");
    run_until(seen.messages == 1);
    ck_assert_str_eq(seen.channel, "before it is up");
    ck_assert_mem_eq(seen.payload, "hello", 5);
    ck_assert_uint_eq(seen.payload_len, 5);
    ck_assert_uint_eq(seen.ups, 1);
}
END_TEST

START_TEST(a_channel_is_its_exact_bytes)
{
    given_a_subscriber(NULL, "", 0);
    ck_assert_int_eq(redis_subscribe(sub, "a\0b", 3, NULL), STATUS_OK);
    ck_assert_int_eq(redis_subscribe(sub, "", 0, NULL), STATUS_OK);
    want("a");
    run_until(seen.subscribed == 3);
    ck_assert(redis_is_subscribed(sub, "a\0b", 3));
    ck_assert(!redis_is_subscribed(sub, "a\0c", 3));
    publish("", "empty");
    run_until(seen.messages == 1);
    ck_assert_str_eq(seen.channel, "");
}
END_TEST

START_TEST(nothing_comes_of_a_channel_that_is_not_wanted_any_more)
{
    given_a_subscriber(NULL, "", 0);
    want("a");
    want("b");
    run_until(seen.subscribed == 2);
    unwant("a");
    unwant("never wanted");
    publish("a", "written before we were heard"); /* the server has not read UNSUBSCRIBE yet */
    publish("b", "x");
    run_until(seen.messages == 1);
    ck_assert_str_eq(seen.channel, "b");
    ck_assert_int_eq(ask("PUBLISH", "a", "x"), 0);
}
END_TEST

/* Messages between the two subscriptions are lost, so the first one's confirmation is none. */
START_TEST(a_channel_wanted_again_is_confirmed_by_the_later_reply_alone)
{
    given_a_subscriber(NULL, "", 0);
    run_until(seen.ups == 1);
    want("a");
    unwant("a");
    want("a");
    want("b");
    run_until(is_on("b"));
    ck_assert(is_on("a"));
    ck_assert_uint_eq(seen.subscribed, 2);
}
END_TEST

START_TEST(everything_is_subscribed_again_after_a_reconnect)
{
    given_a_subscriber(NULL, "", 0);
    for (int i = 0; i < 200; i++) {
        char channel[16];
        (void)snprintf(channel, sizeof channel, "c%d", i);
        want(channel);
    }
    run_until(seen.subscribed == 200);
    redis_server_kill(&server);
    run_until(seen.downs == 1);
    ck_assert(!is_on("c7"));
    unwant("c8");
    want("new");
    ck_assert_int_eq(redis_server_restart(&server, NULL), STATUS_OK);
    run_until(seen.subscribed == 400);
    ck_assert(is_on("c7") && is_on("new") && !is_on("c8"));
    publish("c7", "x");
    run_until(seen.messages == 1);
}
END_TEST

START_TEST(a_silent_connection_is_checked_and_replaced)
{
    given_a_subscriber(NULL, "", 50 * US_PER_MS);
    want("a");
    run_until(seen.subscribed == 1);
    ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
    run_until(seen.downs == 1);
    ck_assert_ptr_nonnull(strstr(seen.why, "no reply in time"));
    ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
    run_until(seen.subscribed == 2);
}
END_TEST

static long pings_of_server(void)
{
    autobuf struct buf out = BUF_INIT(65536);
    const char *const words[] = {"INFO", "commandstats", NULL};
    ck_assert_int_eq(redis_server_ask(&server, words, &out, NULL), STATUS_OK);
    const char *field = strstr(buf_at(&out), "cmdstat_ping:calls=");
    return field == NULL ? 0 : strtol(strchr(field, '=') + 1, NULL, 10);
}

START_TEST(a_silent_connection_that_answers_stays)
{
    given_a_subscriber(NULL, "", 20 * US_PER_MS);
    run_until(seen.ups == 1);
    long before = pings_of_server();
    run_until(pings_of_server() > before + 2);
    want("a"); /* PING is answered in another form from now on */
    run_until(seen.subscribed == 1);
    before = pings_of_server();
    run_until(pings_of_server() > before + 2);
    ck_assert_uint_eq(seen.downs, 0);
}
END_TEST

START_TEST(C5_a_channel_that_the_acl_denies_is_refused_and_the_others_are_not)
{
    given_a_subscriber("user w on >w resetkeys resetchannels &ok:* -@all +info +subscribe", "w", 0);
    want("ok:1");
    want("denied");
    want("ok:2");
    want("denied too");
    run_until(seen.subscribed == 2 && seen.refusals == 1);
    ck_assert(is_on("ok:1") && is_on("ok:2") && !is_on("denied"));
    ck_assert_ptr_nonnull(strstr(seen.why, "SUBSCRIBE refused: NOPERM"));
    publish("ok:2", "x");
    run_until(seen.messages == 1);
    ck_assert_uint_eq(seen.refusals, 1);
    ck_assert_uint_eq(seen.downs, 0);
}
END_TEST

START_TEST(channels_are_bounded)
{
    static char name[REDIS_CHANNEL_LEN_MAX + 1];
    given_a_subscriber(NULL, "", 0);
    ck_assert_int_eq(redis_subscribe(sub, name, sizeof name, NULL), STATUS_INVALID);
    for (int i = 0; i < REDIS_CHANNELS_MAX; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        ck_assert_int_eq(redis_subscribe(sub, name, sizeof name - 1, NULL), STATUS_OK);
    }
    ck_assert_int_eq(redis_subscribe(sub, "one more", 8, NULL), STATUS_LIMIT);
    run_until(seen.subscribed == REDIS_CHANNELS_MAX);
}
END_TEST

static void close_on_message(void *ctx, const char *channel, size_t channel_len,
                             const char *payload, size_t payload_len)
{
    redis_subscriber_close(TAKE(sub));
    on_message(ctx, channel, channel_len, payload, payload_len);
}

START_TEST(a_subscriber_may_be_closed_from_a_message)
{
    given_a_subscriber(NULL, "", 0);
    redis_subscriber_close(TAKE(sub));
    struct redis_subscriber_options o = {.loop = &loop,
                                         .connect_timeout_us = US_PER_S,
                                         .on_message = close_on_message,
                                         .on_subscribed = on_subscribed,
                                         .ctx = &seen};
    (void)snprintf(o.endpoint.path, sizeof o.endpoint.path, "%s", server.path);
    ck_assert_int_eq(redis_subscriber_open(&o, &sub, NULL), STATUS_OK);
    want("a");
    run_until(seen.subscribed == 1);
    publish("a", "x");
    run_until(seen.messages == 1);
    ck_assert_mem_eq(seen.payload, "x", 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("subscriber");
    TCase *t = tcase_create("subscriber");
    struct err err = {0};
    if (dir_make(base_dir, sizeof base_dir, &err) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, messages_of_wanted_channels_come);
    tcase_add_test(t, a_channel_is_its_exact_bytes);
    tcase_add_test(t, nothing_comes_of_a_channel_that_is_not_wanted_any_more);
    tcase_add_test(t, a_channel_wanted_again_is_confirmed_by_the_later_reply_alone);
    tcase_add_test(t, everything_is_subscribed_again_after_a_reconnect);
    tcase_add_test(t, a_silent_connection_is_checked_and_replaced);
    tcase_add_test(t, a_silent_connection_that_answers_stays);
    tcase_add_test(t, C5_a_channel_that_the_acl_denies_is_refused_and_the_others_are_not);
    tcase_add_test(t, channels_are_bounded);
    tcase_add_test(t, a_subscriber_may_be_closed_from_a_message);
    suite_add_tcase(s, t);
    int code = suite_run(s);
    dir_remove(base_dir);
    return code;
}
