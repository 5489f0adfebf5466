/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "certs.h"
#include "cluster/servers.h"
#include "redis/subscriber.h"
#include "redis/tls.h"
#include "redlock/redlock_async.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <uv.h>

#define LIMIT_US (120 * US_PER_S)

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static uv_loop_t loop;
static uv_timer_t tick;
static struct redlock_async *lock;
static struct redis_node *node;
static struct redis_subscriber *sub;

/* All tests share these files, in `base_dir`. */
static const struct cert certs[] = {
    {.stem = "ca", .is_ca = true},
    {.stem = "other-ca", .is_ca = true},
    {.stem = "server", .issuer = "ca", .names = "DNS:localhost,IP:127.0.0.1"},
    {.stem = "foreign", .issuer = "ca", .names = "DNS:redis.example"},
    {.stem = "expired", .issuer = "ca", .names = "DNS:localhost", .is_expired = true},
    {.stem = "client", .issuer = "ca"},
};

struct seen {
    size_t ups; /* nodes that are up and voting */
    size_t downs;
    char why[REDLOCK_MESSAGE_SIZE];
    bool is_closed;
    enum redlock_result result;
    bool is_acquired;
    size_t replies;
    size_t len; /* length of the last reply */
    size_t subscribed;
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

static void make_certs(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(certs); i++) {
        cert_make(base_dir, &certs[i]);
    }
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void setup(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_timer_init(&loop, &tick), 0);
    (void)uv_timer_start(&tick, on_tick, 5, 5); /* so that run_until() can give up */
}

static void on_closed(void *ctx)
{
    struct seen *s = ctx;
    s->is_closed = true;
}

static void teardown(void)
{
    if (lock != NULL) {
        redlock_async_close(lock, on_closed, &seen);
        run_until(seen.is_closed);
    }
    redis_node_close(node);
    redis_subscriber_close(sub);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left open */
    redis_server_stop(&server);
}

/* Returns the server's port. `stem` NULL = a server without TLS. */
static int given_a_server(const char *stem, bool wants_client)
{
    char dir[SERVER_PATH_MAX + 32];
    char extra[6 * SERVER_PATH_MAX];
    struct err err = {0};
    int port = port_free();
    (void)snprintf(dir, sizeof dir, "%s/%d", base_dir, (int)getpid());
    if (stem == NULL) {
        (void)snprintf(extra, sizeof extra, "bind 127.0.0.1\nport %d", port);
    } else {
        (void)snprintf(extra, sizeof extra,
                       "bind 127.0.0.1\ntls-port %d\ntls-ca-cert-file %s/ca.crt\n"
                       "tls-cert-file %s/%s.crt\ntls-key-file %s/%s.key\ntls-auth-clients %s",
                       port, base_dir, base_dir, stem, base_dir, stem, wants_client ? "yes" : "no");
    }
    ck_assert_msg(redis_server_start(dir, extra, &server, &err) == STATUS_OK, "%s", err.msg);
    return port;
}

static void on_node(void *ctx, size_t index, enum redlock_event_kind event, int64_t until_us,
                    const char *why)
{
    struct seen *s = ctx;
    (void)index;
    (void)until_us;
    s->ups += event == REDLOCK_EVENT_UP;
    s->downs += event == REDLOCK_EVENT_DOWN;
    (void)snprintf(s->why, sizeof s->why, "%s", why);
}

static int open_lock(const char *scheme, const char *host, int port, const struct redlock_tls *tls,
                     struct redlock_error *error)
{
    char url[128];
    (void)snprintf(url, sizeof url, "%s://%s:%d", scheme, host, port);
    const struct redlock_node one = {.url = url};
    const struct redlock_async_options options = {.loop = &loop,
                                                  .nodes = &one,
                                                  .node_count = 1,
                                                  .tls = tls,
                                                  .ttl_us = 10 * US_PER_S,
                                                  .ttl_max_us = 10 * US_PER_S,
                                                  .node_timeout_us = 400 * US_PER_MS,
                                                  .drift_ppm = 10000,
                                                  .trust_fresh = true,
                                                  .on_node = on_node,
                                                  .ctx = &seen};
    return redlock_async_open(&options, &lock, error);
}

static const char *file(const char *name)
{
    static char paths[4][CERT_PATH_MAX];
    static size_t next;
    char *path = paths[next++ % ARRAY_COUNT(paths)];
    (void)snprintf(path, CERT_PATH_MAX, "%s/%s", base_dir, name);
    return path;
}

static void given_a_lock(const char *host, int port, const struct redlock_tls *tls)
{
    struct redlock_error error = {0};
    ck_assert_msg(open_lock("rediss", host, port, tls, &error) == 0, "%s", error.message);
}

/* Expects the node to be down, and `why` to name the node and contain `what`. */
static void expect_down(int port, const char *what)
{
    char name[64];
    (void)snprintf(name, sizeof name, ":%d: ", port);
    run_until(seen.downs == 1);
    ck_assert_msg(strstr(seen.why, name) != NULL && strstr(seen.why, what) != NULL, "%s", seen.why);
    ck_assert_uint_eq(seen.ups, 0);
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct seen *s = ctx;
    s->is_acquired = true;
    s->result = redlock_batch_result(batch, 0);
    if (s->result == REDLOCK_OK) {
        redlock_batch_release(batch, 0);
    }
}

static void expect_a_lock_is_won(void)
{
    const struct redlock_async_key key = {.bytes = "claimd:job:1", .len = 12};
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = on_acquired, .ctx = &seen};
    run_until(seen.ups == 1);
    ck_assert_int_eq(redlock_async_acquire(lock, &request, NULL), 0);
    run_until(seen.is_acquired);
    ck_assert_int_eq(seen.result, REDLOCK_OK);
}

static const char *const hosts[] = {"localhost", "127.0.0.1"};

START_TEST(C5_a_lock_is_won_over_tls)
{
    int port = given_a_server("server", false);
    given_a_lock(hosts[_i], port, &(const struct redlock_tls){.ca_file = file("ca.crt")});
    expect_a_lock_is_won();
}
END_TEST

START_TEST(C5_the_systems_authorities_are_trusted_where_none_is_named)
{
    int port = given_a_server("server", false);
    ck_assert_int_eq(setenv("SSL_CERT_FILE", file("ca.crt"), 1), 0); /* as OpenSSL reads it */
    given_a_lock("localhost", port, NULL);
    expect_a_lock_is_won();
}
END_TEST

START_TEST(C5_a_client_certificate_is_shown_where_it_is_demanded)
{
    int port = given_a_server("server", true);
    given_a_lock("localhost", port,
                 &(const struct redlock_tls){.ca_file = file("ca.crt"),
                                             .cert_file = file("client.crt"),
                                             .key_file = file("client.key")});
    expect_a_lock_is_won();
}
END_TEST

START_TEST(C5_without_the_client_certificate_it_is_refused)
{
    int port = given_a_server("server", true);
    given_a_lock("localhost", port, &(const struct redlock_tls){.ca_file = file("ca.crt")});
    expect_down(port, "certificate required");
}
END_TEST

START_TEST(C5_a_certificate_of_an_unknown_authority_is_refused)
{
    int port = given_a_server("server", false);
    given_a_lock("localhost", port, &(const struct redlock_tls){.ca_file = file("other-ca.crt")});
    expect_down(port, "TLS: the server's certificate is not valid: ");
}
END_TEST

START_TEST(C5_verification_is_on_without_any_option)
{
    int port = given_a_server("server", false);
    ck_assert_int_eq(unsetenv("SSL_CERT_FILE"), 0);
    given_a_lock("localhost", port, NULL);
    expect_down(port, "TLS: the server's certificate is not valid: ");
}
END_TEST

START_TEST(C5_a_certificate_of_another_host_is_refused)
{
    int port = given_a_server("foreign", false);
    given_a_lock(hosts[_i], port, &(const struct redlock_tls){.ca_file = file("ca.crt")});
    expect_down(port, "mismatch");
}
END_TEST

START_TEST(C5_the_name_to_expect_may_be_given)
{
    int port = given_a_server("foreign", false);
    given_a_lock(
        "localhost", port,
        &(const struct redlock_tls){.ca_file = file("ca.crt"), .server_name = "redis.example"});
    expect_a_lock_is_won();
}
END_TEST

START_TEST(C5_an_expired_certificate_is_refused)
{
    int port = given_a_server("expired", false);
    given_a_lock("localhost", port, &(const struct redlock_tls){.ca_file = file("ca.crt")});
    expect_down(port, "TLS: the server's certificate is not valid: certificate has expired");
}
END_TEST

/* Redis takes the first bytes of TLS for the beginning of a command: it complains, or waits for the
 * rest. */
START_TEST(C5_a_port_without_tls_is_refused_and_said_to_be_one)
{
    int port = given_a_server(NULL, false);
    given_a_lock("localhost", port, &(const struct redlock_tls){.ca_file = file("ca.crt")});
    expect_down(port, "speak");
}
END_TEST

START_TEST(C5_a_port_with_tls_is_refused_by_a_client_without)
{
    struct redlock_error error = {0};
    int port = given_a_server("server", false);
    ck_assert_int_eq(open_lock("redis", "localhost", port, NULL, &error), 0);
    expect_down(port, "");
}
END_TEST

static const struct {
    const char *ca;
    const char *cert;
    const char *key;
    const char *want;
} bad_files[] = {
    {"none.crt", NULL, NULL, "none.crt"},
    {"server.key", NULL, NULL, "server.key"}, /* not a certificate */
    {"ca.crt", "none.crt", NULL, "none.crt"},
    {"ca.crt", "client.crt", NULL, "client.crt"}, /* has no key */
    {"ca.crt", "client.crt", "server.key", "server.key"},
    {"ca.crt", NULL, "client.key", "client.key"},
};

START_TEST(C5_files_that_are_of_no_use_are_refused_by_name)
{
    struct redlock_error error = {0};
    const struct redlock_tls tls = {
        .ca_file = file(bad_files[_i].ca),
        .cert_file = bad_files[_i].cert != NULL ? file(bad_files[_i].cert) : NULL,
        .key_file = bad_files[_i].key != NULL ? file(bad_files[_i].key) : NULL};
    ck_assert_int_eq(open_lock("rediss", "localhost", 1, &tls, &error), -EINVAL);
    ck_assert_msg(strstr(error.message, bad_files[_i].want) != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "node localhost:1") != NULL, "%s", error.message);
    lock = NULL;
}
END_TEST

/* ---- the connection itself ---- */

static enum status on_up(void *ctx, struct redis_node *n, const struct redis_server_info *info,
                         struct err *err)
{
    struct seen *s = ctx;
    (void)n;
    (void)info;
    (void)err;
    s->ups++;
    return STATUS_OK;
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct seen *s = ctx;
    (void)index;
    s->replies++;
    s->len = v->len;
}

START_TEST(C5_megabytes_go_through_tls_both_ways)
{
    static char value[4 << 20];
    struct redis_tls *tls = NULL;
    struct redis_options o = {
        .loop = &loop, .connect_timeout_us = US_PER_S, .on_up = on_up, .ctx = &seen};
    const struct redis_arg set[] = {{"SET", 3}, {"k", 1}, {value, sizeof value}};
    const struct redis_arg get[] = {{"GET", 3}, {"k", 1}};
    autobuf struct buf out = BUF_INIT(sizeof value + 256);
    o.endpoint.port = given_a_server("server", false);
    o.endpoint.is_tls = true;
    (void)snprintf(o.endpoint.host, sizeof o.endpoint.host, "localhost");
    ck_assert_int_eq(
        redis_tls_new(&(const struct redis_tls_options){.ca_file = file("ca.crt")}, &tls, NULL),
        STATUS_OK);
    o.tls = tls;
    ck_assert_int_eq(redis_node_open(&o, &node, NULL), STATUS_OK);
    run_until(seen.ups == 1);
    ck_assert_int_eq(redis_command(&out, set, ARRAY_COUNT(set), NULL), STATUS_OK);
    ck_assert_int_eq(redis_command(&out, get, ARRAY_COUNT(get), NULL), STATUS_OK);
    const struct redis_request r = {.bytes = buf_at(&out),
                                    .len = out.len,
                                    .reply_count = 2,
                                    .timeout_us = 8 * US_PER_S,
                                    .on_reply = on_reply,
                                    .ctx = &seen};
    ck_assert_int_eq(redis_node_send(node, &r, NULL), STATUS_OK);
    run_until(seen.replies == 2);
    ck_assert_uint_eq(seen.len, sizeof value);
    redis_node_close(TAKE(node));
    redis_tls_free(tls);
}
END_TEST

static void on_subscribed(void *ctx)
{
    struct seen *s = ctx;
    s->subscribed++;
}

START_TEST(C5_a_subscriber_listens_over_tls)
{
    struct redis_subscriber_options o = {.loop = &loop,
                                         .channel = "c",
                                         .channel_len = 1,
                                         .connect_timeout_us = US_PER_S,
                                         .on_subscribed = on_subscribed,
                                         .ctx = &seen};
    o.endpoint.port = given_a_server("server", false);
    o.endpoint.is_tls = true;
    (void)snprintf(o.endpoint.host, sizeof o.endpoint.host, "127.0.0.1");
    ck_assert_int_eq(setenv("SSL_CERT_FILE", file("ca.crt"), 1), 0);
    ck_assert_int_eq(redis_subscriber_open(&o, &sub, NULL), STATUS_OK);
    run_until(seen.subscribed == 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, C5_a_lock_is_won_over_tls, 0, (int)ARRAY_COUNT(hosts));
    tcase_add_test(t, C5_the_systems_authorities_are_trusted_where_none_is_named);
    tcase_add_test(t, C5_a_client_certificate_is_shown_where_it_is_demanded);
    tcase_add_test(t, C5_without_the_client_certificate_it_is_refused);
    tcase_add_test(t, C5_a_certificate_of_an_unknown_authority_is_refused);
    tcase_add_test(t, C5_verification_is_on_without_any_option);
    tcase_add_loop_test(t, C5_a_certificate_of_another_host_is_refused, 0, (int)ARRAY_COUNT(hosts));
    tcase_add_test(t, C5_the_name_to_expect_may_be_given);
    tcase_add_test(t, C5_an_expired_certificate_is_refused);
    tcase_add_test(t, C5_a_port_without_tls_is_refused_and_said_to_be_one);
    tcase_add_test(t, C5_a_port_with_tls_is_refused_by_a_client_without);
    tcase_add_loop_test(t, C5_files_that_are_of_no_use_are_refused_by_name, 0,
                        (int)ARRAY_COUNT(bad_files));
    tcase_add_test(t, C5_megabytes_go_through_tls_both_ways);
    tcase_add_test(t, C5_a_subscriber_listens_over_tls);
}

int main(void)
{
    Suite *s = suite_create("tls");
    TCase *t = tcase_create("tls");
    struct err err = {0};
    if (dir_make(base_dir, sizeof base_dir, &err) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    tcase_set_timeout(t, 30);
    tcase_add_unchecked_fixture(t, make_certs, NULL);
    tcase_add_checked_fixture(t, setup, teardown);
    add_tests(t);
    suite_add_tcase(s, t);
    int code = suite_run(s);
    dir_remove(base_dir);
    return code;
}
