/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad input is refused with a message that names the error and the allowed values; it never hangs,
 * and never yields a lock. */
#include "test_redlock_client_world.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct bad_option {
    struct redlock_options options;
    const char *message; /* part of the message */
} bad_options[] = {
    {{.nodes = ""}, "no nodes: set nodes or $REDLOCK_NODES"},
    {{.nodes = "a,b,c,d,e,f,g,h,i,j"}, "10 nodes, allowed are 1 to 9"},
    {{.nodes = "10.1.1.1, 10.1.1.1:6379"}, "10.1.1.1:6379 is named twice"},
    {{.nodes = "http://10.1.1.1"}, "node 1"},
    {{.nodes = "10.1.1.1,,10.1.1.2"}, "node 2 of the list is empty"},
    {{.nodes = "10.1.1.1,"}, "node 2 of the list is empty"},
    {{.size = 8}, "size of the options"},
    {{.ttl_ms = 999}, "ttl_ms is 999, allowed are 1000 to 86400000"},
    {{.ttl_ms = -1}, "ttl_ms is -1, allowed are 1000 to 86400000"},
    {{.ttl_ms = 2 * REDLOCK_TTL_MAX_MS}, "allowed are 1000 to 86400000"},
    {{.ttl_ms = 2990, .node_timeout_ms = 300}, "node_timeout_ms is 300, allowed are 1 to 299"},
    {{.node_timeout_ms = -1}, "node_timeout_ms is -1"},
    {{.ttl_ms = 3000, .ttl_max_ms = 2999}, "ttl_max_ms is 2999, allowed are 3000 to 86400000"},
    {{.drift_ppm = -1}, "drift_ppm is -1"},
    {{.open_ms = -1}, "open_ms is -1"},
};

START_TEST(A16_an_option_out_of_bounds_is_refused_by_its_name)
{
    const struct bad_option *bad = &bad_options[_i];
    struct redlock_client *client = NULL;
    struct redlock_report error = {0};
    struct redlock_options o = bad->options;
    o.nodes = o.nodes != NULL ? o.nodes : "10.1.1.1";
    ck_assert_int_eq(redlock_open(&o, &client, &error), REDLOCK_INVALID);
    ck_assert_ptr_null(client);
    ck_assert_int_eq(error.result, REDLOCK_INVALID);
    ck_assert_msg(strstr(error.message, bad->message) != NULL, "%s", error.message);
    ck_assert_int_eq(redlock_open(&o, &client, NULL), REDLOCK_INVALID);
}
END_TEST

struct bad_request {
    struct redlock_request request;
    const char *message;
};

START_TEST(A16_a_request_out_of_bounds_is_invalid)
{
    static const struct redlock_key huge = {.bytes = "job", .len = (size_t)1 << 30};
    static const struct redlock_key none = {.bytes = NULL};
    const struct bad_request all[] = {
        {{.key = NULL}, "give key, or keys and count"},
        {{.key = "job", .keys = &huge, .count = 1}, "give key, or keys and count"},
        {{.key = ""}, "empty key"},
        {{.keys = &none, .count = 1}, "no key"},
        {{.keys = &huge, .count = 1}, "1 to 1024 bytes"},
        {{.keys = &huge}, "0 keys, allowed are 1 to 512"},
        {{.key = "job", .size = 1}, "size of the request"},
        {{.key = "job", .each = true, .wait_ms = 1}, "wait_ms must be 0 with each"},
        {{.key = "job", .ttl_ms = -1}, "ttl_ms is -1"},
        {{.key = "job", .ttl_ms = 2999}, "allowed are 3000 to 3000"}, /* 10 node timeouts */
        {{.key = "job", .ttl_ms = 3001}, "allowed are 3000 to 3000"}, /* lock.N1 */
        {{.key = "job", .wait_ms = -2}, "wait_ms"},
        {{.key = "job", .max_hold_ms = -1}, "max_hold_ms"},
    };
    given_client(1);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        struct redlock_lock *lock = NULL;
        struct redlock_report report = {0};
        ck_assert_int_eq(redlock_acquire(world.client, &all[i].request, &lock, &report),
                         REDLOCK_INVALID);
        ck_assert_ptr_null(lock);
        ck_assert_msg(strstr(report.message, all[i].message) != NULL, "%s", report.message);
    }
    ck_assert_int_eq(calls_of(0, "set"), 0);
}
END_TEST

struct bad_node {
    const char *config;
    const char *message;
};

static const struct bad_node bad_nodes[] = {
    {"requirepass right-one", "WRONGPASS"},
    {"replicaof 127.0.0.1 1", "replica"},
    {"maxmemory 100mb\nmaxmemory-policy allkeys-lru", "allkeys-lru"},
};

START_TEST(C8_a_node_that_can_never_vote_is_refused_by_its_name)
{
    struct redlock_client *client = NULL;
    struct redlock_report error = {0};
    given_nodes(1, bad_nodes[_i].config);
    world.options.password = _i == 0 ? "wrong-one" : NULL;
    ck_assert_int_eq(redlock_open(&world.options, &client, &error), REDLOCK_INVALID);
    ck_assert_ptr_null(client);
    ck_assert_msg(strstr(error.message, world.servers[0].path) != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, bad_nodes[_i].message) != NULL, "%s", error.message);
    ck_assert_ptr_null(strstr(error.message, "wrong-one"));
}
END_TEST

static atomic_size_t refusals; /* counted by the client's thread, read by the test */

static void count_refusals(void *ctx, const struct redlock_event *event)
{
    (void)ctx;
    if (event->kind == REDLOCK_EVENT_REFUSED && strstr(event->text, "evicts locks") != NULL) {
        atomic_fetch_add(&refusals, 1);
    }
}

START_TEST(C8_a_majority_of_suitable_nodes_may_be_enough)
{
    struct redlock_client *client = NULL;
    struct redlock_report error = {0};
    given_nodes(3, NULL);
    world.options.majority_opens = true;
    world.options.on_event = count_refusals;
    (void)cli(0, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    (void)cli(0, "CONFIG", "SET", "maxmemory", "100mb");
    world.client = client_of_world();
    until(atomic_load(&refusals) >= 1); /* the node is reported nevertheless */
    ck_assert_int_eq(redlock_unlock(given_lock("job:1"), NULL), REDLOCK_OK);
    (void)cli(1, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    (void)cli(1, "CONFIG", "SET", "maxmemory", "100mb");
    ck_assert_int_eq(redlock_open(&world.options, &client, &error), REDLOCK_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "allkeys-lru evicts locks"));
}
END_TEST

START_TEST(N3_a_replica_may_be_allowed)
{
    given_nodes(1, "replicaof 127.0.0.1 1\nreplica-read-only no");
    world.options.allow_unsafe = true;
    world.client = client_of_world();
    ck_assert_int_eq(redlock_unlock(given_lock("job:1"), NULL), REDLOCK_OK);
}
END_TEST

/* ---- another service on the port ---- */

static int listener = -1;
static const char *greeting;

static void *greet(void *arg)
{
    int fd = -1;
    (void)arg;
    while ((fd = accept(listener, NULL, NULL)) >= 0) { /* every connection is kept open */
        (void)send(fd, greeting, strlen(greeting), MSG_NOSIGNAL);
    }
    return NULL;
}

static void given_stranger(const char *says)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pthread_t thread;
    given_nodes(1, NULL);
    redis_server_kill(&world.servers[0]);
    (void)unlink(world.servers[0].path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", world.servers[0].path);
    greeting = says;
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, greet, NULL), 0);
    ck_assert_int_eq(pthread_detach(thread), 0);
}

START_TEST(C8_a_port_that_is_not_redis_is_refused)
{
    struct redlock_client *client = NULL;
    struct redlock_report error = {0};
    given_stranger("SSH-2.0-OpenSSH_9.2\r\n");
    ck_assert_int_eq(redlock_open(&world.options, &client, &error), REDLOCK_INVALID);
    ck_assert_msg(strstr(error.message, world.servers[0].path) != NULL, "%s", error.message);
}
END_TEST

START_TEST(A5_a_node_that_says_nothing_holds_nobody_up)
{
    struct redlock_lock *lock = NULL;
    given_stranger("");
    world.options.open_ms = 500;
    int64_t start_us = clock_boot_us();
    world.client = client_of_world();
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
    ck_assert_int_eq(redlock_try(world.client, "job:1", &lock), REDLOCK_NO_QUORUM);
    ck_assert_ptr_null(lock);
}
END_TEST

START_TEST(A13_nodes_that_are_down_are_no_error_and_are_used_when_they_come_up)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "job:1"};
    given_nodes(3, NULL);
    for (size_t i = 0; i < 3; i++) {
        redis_server_kill(&world.servers[i]);
    }
    world.client = client_of_world();
    int64_t start_us = clock_boot_us();
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, &report), REDLOCK_NO_QUORUM);
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(report.votes[i], REDLOCK_VOTE_DOWN);
        ck_assert_int_eq(redis_server_restart(&world.servers[i], NULL), STATUS_OK);
    }
    until(redlock_try(world.client, "job:1", &lock) == REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

/* ---- signals (lock.F2) ---- */

START_TEST(F2_a_node_that_dies_raises_no_signal)
{
    (void)signal(SIGPIPE, SIG_DFL); /* would end this test */
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    for (size_t i = 0; i < 3; i++) {
        redis_server_kill(&world.servers[i]);
    }
    for (int i = 0; i < 20; i++) {
        struct redlock_lock *none = NULL;
        ck_assert_int_eq(redlock_try(world.client, "job:2", &none), REDLOCK_NO_QUORUM);
    }
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

static bool blocks_all(const char *task)
{
    char path[300];
    char line[256];
    uint64_t blocked = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0) {
            blocked = strtoull(line + 7, NULL, 16);
        }
    }
    (void)fclose(file);
    return (blocked >> (SIGTERM - 1) & 1U) != 0 && (blocked >> (SIGCHLD - 1) & 1U) != 0 &&
           (blocked >> (SIGPIPE - 1) & 1U) != 0;
}

START_TEST(F2_the_clients_threads_take_no_signal)
{
    char self[32];
    size_t others = 0;
    given_nodes(1, NULL);
    world.options.nodes = "localhost:1"; /* needs a lookup */
    world.client = client_of_world();
    (void)snprintf(self, sizeof self, "%d", (int)getpid());
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry = NULL;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, self) != 0) {
            others++;
            ck_assert_msg(blocks_all(entry->d_name), "task %s", entry->d_name);
        }
    }
    (void)closedir(dir);
    ck_assert_uint_ge(others, 2); /* the client's thread, and perhaps those that resolve names */
}
END_TEST

static size_t count_in(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

START_TEST(descriptors_and_threads_are_gone_after_a_close)
{
    given_nodes(3, NULL);
    redlock_close(client_of_world()); /* libuv keeps a pipe of its own after the first loop */
    size_t descriptors = count_in("/proc/self/fd");
    size_t threads = count_in("/proc/self/task");
    for (int i = 0; i < 10; i++) {
        redlock_close(client_of_world());
    }
    ck_assert_uint_eq(count_in("/proc/self/fd"), descriptors);
    until(count_in("/proc/self/task") <= threads);
}
END_TEST

START_TEST(A15_every_report_of_an_invalid_request_says_so)
{
    static const struct redlock_key keys[] = {{.bytes = "a"}, {.bytes = "b"}};
    struct redlock_lock *locks[2];
    struct redlock_report reports[2] = {0};
    given_client(1);
    const struct redlock_request request = {.keys = keys, .count = 2, .each = true, .wait_ms = 1};
    ck_assert_int_eq(redlock_acquire(world.client, &request, locks, reports), REDLOCK_INVALID);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_ptr_null(locks[i]);
        ck_assert_int_eq(reports[i].result, REDLOCK_INVALID);
        ck_assert_ptr_nonnull(strstr(reports[i].message, "wait_ms must be 0 with each"));
    }
}
END_TEST

START_TEST(nothing_can_be_closed_and_unlocked)
{
    struct redlock_report report = {.result = REDLOCK_INVALID};
    ck_assert_int_eq(redlock_unlock(NULL, &report), REDLOCK_OK);
    ck_assert_int_eq(report.result, REDLOCK_OK);
    redlock_close(NULL);
    ck_assert_int_eq(redlock_unlock(NULL, NULL), REDLOCK_OK);
    redlock_abandon(NULL);
    redlock_owner_free(NULL);
    ck_assert_str_eq(redlock_version(), CLAIMD_RELEASE);
    ck_assert_str_eq(redlock_text(REDLOCK_OK), "ok");
    ck_assert_str_eq(redlock_vote_text(REDLOCK_VOTE_REFUSED), "refused");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, A16_an_option_out_of_bounds_is_refused_by_its_name, 0,
                        ARRAY_COUNT(bad_options));
    tcase_add_test(t, A16_a_request_out_of_bounds_is_invalid);
    tcase_add_loop_test(t, C8_a_node_that_can_never_vote_is_refused_by_its_name, 0,
                        ARRAY_COUNT(bad_nodes));
    tcase_add_test(t, C8_a_majority_of_suitable_nodes_may_be_enough);
    tcase_add_test(t, N3_a_replica_may_be_allowed);
    tcase_add_test(t, C8_a_port_that_is_not_redis_is_refused);
    tcase_add_test(t, A5_a_node_that_says_nothing_holds_nobody_up);
    tcase_add_test(t, A13_nodes_that_are_down_are_no_error_and_are_used_when_they_come_up);
    tcase_add_test(t, F2_a_node_that_dies_raises_no_signal);
    tcase_add_test(t, F2_the_clients_threads_take_no_signal);
    tcase_add_test(t, descriptors_and_threads_are_gone_after_a_close);
    tcase_add_test(t, A15_every_report_of_an_invalid_request_says_so);
    tcase_add_test(t, nothing_can_be_closed_and_unlocked);
}

int main(void)
{
    return client_world_main("redlock_client_open", add_tests);
}
