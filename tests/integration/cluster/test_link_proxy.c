/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated bad network between hosts and servers applies each rule, and only to its link. */
#include "base/clock.h"
#include "cluster/link_proxy.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define WAIT_MS 60000
#define HOST 3

static char dir[SERVER_PATH_MAX];
static char path[SERVER_PATH_MAX + 16];
static struct redis_server redis;
static struct link_proxy *proxy;

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

static int connect_to(const char *to)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", to);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Receives within `ms`: returns the number of bytes, 0 = the end, −1 = nothing. */
static ssize_t hear(int fd, char *bytes, size_t size, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1 ? recv(fd, bytes, size, 0) : -1;
}

static void expect(int fd, const char *text)
{
    char bytes[256] = "";
    ck_assert_int_eq(hear(fd, bytes, sizeof bytes - 1, WAIT_MS), (ssize_t)strlen(text));
    ck_assert_str_eq(bytes, text);
}

/* Asks the server directly. */
static bool has_key(const char *name)
{
    char request[64];
    char reply[16] = "";
    autoclose int fd = connect_to(redis.path);
    (void)snprintf(request, sizeof request, "EXISTS %s\r\n", name);
    say(fd, request);
    ck_assert_int_gt(hear(fd, reply, sizeof reply - 1, WAIT_MS), 0);
    return reply[1] == '1';
}

static void setup(void)
{
    char sub[SERVER_PATH_MAX + 16];
    OK(dir_make(dir, sizeof dir, &err));
    (void)snprintf(sub, sizeof sub, "%s/r", dir);
    (void)snprintf(path, sizeof path, "%s/link.sock", dir);
    OK(redis_server_start(sub, NULL, &redis, &err));
    OK(link_proxy_start(&proxy, &err));
    OK(link_proxy_add(proxy, path, redis.path, &err));
    link_proxy_is_host(proxy, HOST, getpid());
}

static void teardown(void)
{
    link_proxy_stop(proxy);
    redis_server_stop(&redis);
    dir_remove(dir);
}

static void rule(const struct link_rule *r)
{
    link_proxy_rule(proxy, HOST, 0, r);
}

START_TEST(B3_what_is_held_in_a_hole_towards_the_server_arrives_late)
{
    autoclose int fd = connect_to(path);
    say(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    rule(&(struct link_rule){.is_hole_to_server = true});
    say(fd, "SET late 1\r\n");
    ck_assert_int_eq(hear(fd, (char[8]){0}, 8, 100), -1);
    ck_assert(!has_key("late"));
    rule(NULL);
    expect(fd, "+OK\r\n");
    ck_assert(has_key("late"));
}
END_TEST

START_TEST(B3_through_a_hole_towards_the_client_requests_pass_and_replies_come_late)
{
    autoclose int fd = connect_to(path);
    rule(&(struct link_rule){.is_hole_to_client = true});
    say(fd, "SET there 1\r\n");
    ck_assert(WAIT_UNTIL(has_key("there"), WAIT_MS * US_PER_MS));
    ck_assert_int_eq(hear(fd, (char[8]){0}, 8, 50), -1);
    rule(NULL);
    expect(fd, "+OK\r\n");
}
END_TEST

START_TEST(a_request_of_a_client_that_gave_up_still_arrives)
{
    int fd = connect_to(path);
    say(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    rule(&(struct link_rule){.is_hole_to_server = true});
    say(fd, "SET orphan 1\r\n");
    (void)close(fd);
    ck_assert(!has_key("orphan"));
    rule(NULL);
    ck_assert(WAIT_UNTIL(has_key("orphan"), WAIT_MS * US_PER_MS));
    ck_assert(WAIT_UNTIL(link_proxy_open(proxy, LINK_ALL, 0) == 0, WAIT_MS * US_PER_MS));
}
END_TEST

START_TEST(the_rule_of_another_host_changes_nothing)
{
    autoclose int fd = connect_to(path);
    link_proxy_rule(proxy, HOST + 1, LINK_ALL,
                    &(struct link_rule){.is_hole_to_server = true, .is_hole_to_client = true});
    say(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
}
END_TEST

START_TEST(B8_a_slow_link_delays_and_throttles)
{
    static char bytes[65536];
    autoclose int fd = connect_to(path);
    rule(&(struct link_rule){.to_server_us = 60000, .to_client_us = 60000});
    int64_t began_us = clock_boot_us();
    say(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    ck_assert_int_ge(clock_boot_us() - began_us, 120000);
    rule(&(struct link_rule){.bytes_per_s = 100000});
    say(fd, "SETRANGE big 20000 x\r\nGET big\r\n");
    began_us = clock_boot_us();
    ssize_t got = 0;
    for (ssize_t n = 1; got < 20000 && n > 0; got += n) {
        n = hear(fd, bytes, sizeof bytes, WAIT_MS);
    }
    ck_assert_int_gt(got, 20000);
    ck_assert_int_ge(clock_boot_us() - began_us, 100000);
}
END_TEST

START_TEST(B7_a_message_is_cut_in_its_middle_and_the_next_connection_is_whole)
{
    char bytes[16] = "";
    autoclose int fd = connect_to(path);
    rule(&(struct link_rule){.cuts_to_client = true});
    say(fd, "PING\r\n");
    ck_assert_int_eq(hear(fd, bytes, sizeof bytes - 1, WAIT_MS), 3);
    ck_assert_int_le(hear(fd, bytes, sizeof bytes - 1, WAIT_MS), 0);
    autoclose int again = connect_to(path);
    say(again, "PING\r\n");
    expect(again, "+PONG\r\n");
}
END_TEST

START_TEST(connections_are_broken_and_refused_and_taken_again)
{
    autoclose int fd = connect_to(path);
    say(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    rule(&(struct link_rule){.is_refused = true});
    link_proxy_break(proxy, HOST, 0);
    ck_assert_int_eq(hear(fd, (char[8]){0}, 8, WAIT_MS), 0);
    autoclose int refused = connect_to(path);
    ck_assert_int_eq(hear(refused, (char[8]){0}, 8, WAIT_MS), 0);
    rule(NULL);
    autoclose int again = connect_to(path);
    say(again, "PING\r\n");
    expect(again, "+PONG\r\n");
}
END_TEST

static bool is_refused(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strlen(path) + 1);
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (const struct sockaddr *)&at, sizeof at) == -1 && errno == ECONNREFUSED;
}

START_TEST(a_dead_server_refuses_connections)
{
    OK(link_proxy_listen(proxy, 0, false, &err));
    /* Its thread's poll() keeps the socket for a moment. */
    ck_assert(WAIT_UNTIL(is_refused(), WAIT_MS * US_PER_MS));
    OK(link_proxy_listen(proxy, 0, true, &err));
    autoclose int again = connect_to(path);
    say(again, "PING\r\n");
    expect(again, "+PONG\r\n");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("link_proxy");
    TCase *c = tcase_create("link_proxy");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, B3_what_is_held_in_a_hole_towards_the_server_arrives_late);
    tcase_add_test(c, B3_through_a_hole_towards_the_client_requests_pass_and_replies_come_late);
    tcase_add_test(c, a_request_of_a_client_that_gave_up_still_arrives);
    tcase_add_test(c, the_rule_of_another_host_changes_nothing);
    tcase_add_test(c, B8_a_slow_link_delays_and_throttles);
    tcase_add_test(c, B7_a_message_is_cut_in_its_middle_and_the_next_connection_is_whole);
    tcase_add_test(c, connections_are_broken_and_refused_and_taken_again);
    tcase_add_test(c, a_dead_server_refuses_connections);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
