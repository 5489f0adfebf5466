/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that cannot be lock nodes: redlock_open() names the node, and what to change. */
#include "redlock/redlock.h"
#include "support/stub_server.h"
#include "test_redlock_world.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The first node is valid; the second one is tested. */
static struct redlock_node nodes[2];

static void check_refused(const char *what)
{
    char list[2 * SERVER_PATH_MAX];
    struct redlock_report report = {0};
    struct redlock_client *client = NULL;
    (void)snprintf(list, sizeof list, "%s,%s", nodes[0].url, nodes[1].url);
    const struct redlock_options options = {.nodes = list,
                                            .ttl_ms = 10000,
                                            .node_timeout_ms = 1000,
                                            .open_ms = 20000,
                                            .password = nodes[1].password,
                                            .trust_fresh = true};
    int64_t start_us = clock_boot_us();
    ck_assert_int_eq(redlock_open(&options, &client, &report), REDLOCK_INVALID);
    ck_assert_ptr_null(client);
    ck_assert_int_lt(clock_boot_us() - start_us, 10 * US_PER_S);
    ck_assert_msg(strstr(report.message, what) != NULL, "%s", report.message);
    const char *path = nodes[1].url + strlen("unix:");
    ck_assert_msg(strstr(report.message, path) != NULL, "%s", report.message); /* names the node */
}

static void given_nodes(const char *extra_of_the_second)
{
    char dir[SERVER_PATH_MAX + 32];
    struct redis_server server;
    struct err err = {0};
    world_start(1, NULL);
    world_dir(1, dir, sizeof dir);
    ck_assert_msg(redis_server_start(dir, extra_of_the_second, &server, &err) == STATUS_OK, "%s",
                  err.msg);
    world_add(&server);
    nodes[0] = world.nodes[0];
    nodes[1] = world.nodes[1];
}

START_TEST(N3_opening_with_a_replica_is_refused)
{
    given_nodes("replicaof 127.0.0.1 1");
    check_refused("a replica: lock nodes are independent masters");
}
END_TEST

START_TEST(N3_opening_with_a_master_that_has_replicas_is_refused)
{
    char extra[128];
    struct redis_server replica;
    char dir[SERVER_PATH_MAX + 32];
    int port = port_free();
    (void)snprintf(extra, sizeof extra, "bind 127.0.0.1\nport %d\nrepl-diskless-sync-delay 0",
                   port);
    given_nodes(extra);
    (void)snprintf(extra, sizeof extra, "replicaof 127.0.0.1 %d", port);
    world_dir(2, dir, sizeof dir);
    ck_assert_int_eq(redis_server_start(dir, extra, &replica, NULL), STATUS_OK);
    ck_assert(WAIT_UNTIL(strstr(cli(1, "INFO", "replication"), "connected_slaves:1") != NULL,
                         WORLD_LIMIT_US));
    check_refused("it has 1 replicas, and a failover would forget locks");
    redis_server_kill(&replica);
}
END_TEST

START_TEST(N3_opening_with_a_node_of_a_cluster_is_refused)
{
    char extra[160];
    (void)snprintf(extra, sizeof extra,
                   "cluster-enabled yes\nbind 127.0.0.1\nport %d\ncluster-port %d", port_free(),
                   port_free());
    given_nodes(extra);
    check_refused("part of a Redis Cluster: lock nodes run with cluster-enabled no");
}
END_TEST

START_TEST(N5_opening_with_a_node_that_evicts_is_refused)
{
    given_nodes("maxmemory 100mb\nmaxmemory-policy allkeys-lru");
    check_refused("allkeys-lru evicts locks: set it to noeviction");
}
END_TEST

START_TEST(N6_opening_with_a_server_that_is_too_old_is_refused)
{
    static const struct stub_options old = {.server = "redis", .version = "6.2.14"};
    char dir[SERVER_PATH_MAX + 32];
    struct redis_server server;
    world_start(1, NULL);
    world_dir(1, dir, sizeof dir);
    ck_assert_int_eq(stub_server_start(dir, &old, &server, NULL), STATUS_OK);
    world_add(&server);
    nodes[0] = world.nodes[0];
    nodes[1] = world.nodes[1];
    check_refused("version 6.2.14: lock nodes need Redis 7.0");
}
END_TEST

START_TEST(N7_opening_with_one_server_under_two_addresses_is_refused)
{
    world_start(2, NULL);
    redis_server_kill(&world.servers[1]);
    ck_assert_int_eq(symlink(world.servers[0].path, world.servers[1].path), 0);
    nodes[0] = world.nodes[0];
    nodes[1] = world.nodes[1];
    check_refused("the same server as node");
}
END_TEST

START_TEST(C8_opening_with_a_wrong_password_is_refused)
{
    given_nodes("requirepass secret");
    check_refused("NOAUTH");
    /* Right at the first node, wrong at the second. */
    (void)cli(0, "CONFIG", "SET", "requirepass", "guess");
    nodes[1].password = "guess";
    check_refused("wrong user or password");
}
END_TEST

/* Answers as a web server does to other clients than browsers. */
static pid_t given_another_protocol(const char *path)
{
    static const char reply[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&addr, sizeof addr), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            int peer = accept(fd, NULL, NULL);
            (void)!write(peer, reply, sizeof reply - 1);
        }
    }
    (void)close(fd);
    return pid;
}

START_TEST(C8_opening_with_a_port_that_is_not_Redis_is_refused)
{
    world_start(2, NULL);
    redis_server_kill(&world.servers[1]);
    nodes[0] = world.nodes[0];
    nodes[1] = world.nodes[1];
    pid_t pid = given_another_protocol(world.servers[1].path);
    check_refused("not a Redis server");
    program_kill(pid);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, N3_opening_with_a_replica_is_refused);
    tcase_add_test(t, N3_opening_with_a_master_that_has_replicas_is_refused);
    tcase_add_test(t, N3_opening_with_a_node_of_a_cluster_is_refused);
    tcase_add_test(t, N5_opening_with_a_node_that_evicts_is_refused);
    tcase_add_test(t, N6_opening_with_a_server_that_is_too_old_is_refused);
    tcase_add_test(t, N7_opening_with_one_server_under_two_addresses_is_refused);
    tcase_add_test(t, C8_opening_with_a_wrong_password_is_refused);
    tcase_add_test(t, C8_opening_with_a_port_that_is_not_Redis_is_refused);
}

int main(void)
{
    return world_main("redlock_refused", add_tests);
}
