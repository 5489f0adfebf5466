/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock status, nodes and bench; and no password is ever printed. The masters need one. */
#include "redlock_cmd_world.h"

#include <fcntl.h>
#include <stdlib.h>

#define PASSWORD "hunter2-secret"
#define PATIENT "--node-timeout", "1s" /* keeps a busy machine from looking like a dead node */
#define WRONG "hunter3-secret"

static void set_password(const char *text)
{
    ck_assert_int_eq(setenv("REDLOCK_PASSWORD", text, 1), 0);
}

/* Sets a key on one master, as if an unknown client held it. */
static void put(size_t master, const char *value)
{
    struct err err = {0};
    const char *const words[] = {"-a", PASSWORD, "SET", "k", value, "PX", "60000", NULL};
    buf_reset(&world.out);
    ck_assert_int_eq(redis_server_ask(&world.servers[master], words, &world.out, &err), STATUS_OK);
    ck_assert(world_said("OK"));
}

START_TEST(status_tells_held_free_split_and_no_quorum)
{
    set_password(PASSWORD);
    ck_assert_int_eq(redlock("status", "k", PATIENT), 1);
    ck_assert(world_said("free on 5 of 5 nodes"));
    put(0, "AAAAAAAAAAAAAAAAAAAAAAAAAAA");
    put(1, "BBBBBBBBBBBBBBBBBBBBBBBBBBB");
    ck_assert_int_eq(redlock("status", "k", PATIENT), 1); /* three are free, so it can be won */
    put(2, "CCCCCCCCCCCCCCCCCCCCCCCCCCC");
    ck_assert_int_eq(redlock("status", "k", PATIENT), 2);
    ck_assert(world_said("split"));
    put(3, "AAAAAAAAAAAAAAAAAAAAAAAAAAA");
    put(4, "AAAAAAAAAAAAAAAAAAAAAAAAAAA");
    ck_assert_int_eq(redlock("status", "k", PATIENT), 0);
    ck_assert(world_said("held by AAAAAAAA on 3 of 5 nodes"));
    ck_assert(!world_said("AAAAAAAAA")); /* never a whole token */
    ck_assert_int_eq(redlock("status", "k", PATIENT, "--json"), 0);
    ck_assert(world_said("\"verdict\": \"held\", \"holder\": \"AAAAAAAA\", \"ttl_ms\": "));
    world_signal_masters(0, 3, SIGSTOP);
    ck_assert_int_eq(redlock("status", "k", PATIENT), 69);
    world_signal_masters(0, 3, SIGCONT);
}
END_TEST

START_TEST(nodes_tells_who_may_vote_and_why_not)
{
    set_password(PASSWORD);
    ck_assert_int_eq(redlock("nodes", PATIENT), 69); /* started a moment ago */
    ck_assert(world_said("0 of 5 may vote, a quorum is 3; fingerprint of the list: "));
    ck_assert_int_eq(redlock("nodes", PATIENT, "--trust-fresh", "--json"), 0);
    ck_assert(world_said("\"voting\": 5"));
    ck_assert(world_said("\"is_master\": true"));
    redis_server_kill(&world.servers[4]);
    ck_assert_int_eq(redlock("nodes", PATIENT, "--trust-fresh"), 0);
    ck_assert(world_said("4 of 5 may vote"));
    ck_assert(world_said("onnect")); /* the reason */
}
END_TEST

START_TEST(N8_the_fingerprint_is_that_of_the_list_in_any_order)
{
    char first[64];
    ck_assert_int_eq(redlock("nodes", "--nodes", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"), 69);
    const char *at = strstr(buf_at(&world.out), "list: ");
    ck_assert_ptr_nonnull(at);
    (void)snprintf(first, sizeof first, "%.22s", at); /* "list: " and 16 digits */
    ck_assert_uint_eq(strspn(first + 6, "0123456789abcdef"), 16);
    ck_assert_int_eq(redlock("nodes", "--nodes", "127.0.0.1:3,127.0.0.1:1,127.0.0.1:2"), 69);
    ck_assert(world_said(first));
    ck_assert_int_eq(redlock("nodes", "--nodes", "127.0.0.1:3,127.0.0.1:1,127.0.0.1:4"), 69);
    ck_assert(!world_said(first));
}
END_TEST

START_TEST(bench_measures_and_leaves_no_key)
{
    set_password(PASSWORD);
    ck_assert_int_eq(redlock("bench", PATIENT, "--trust-fresh", "--seconds", "1", "--batch", "8"),
                     0);
    ck_assert(world_said("locks/s taken and given back"));
    ck_assert_int_eq(redlock("bench", PATIENT, "--trust-fresh", "--seconds", "1", "--json"), 0);
    ck_assert(world_said("\"failed\": 0"));
    ck_assert_int_eq(redlock("bench", PATIENT), 69);
    struct err err = {0};
    const char *const words[] = {"-a", PASSWORD, COUNT_LOCKS, NULL};
    buf_reset(&world.out);
    ck_assert_int_eq(redis_server_ask(&world.servers[0], words, &world.out, &err), STATUS_OK);
    ck_assert(world_said("0"));
}
END_TEST

static void write_file(const char *file, const char *text)
{
    autoclose int fd = open(world_path(file), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

#define EXEC "exec", "k", PATIENT, "--trust-fresh", "-v"

START_TEST(a_password_comes_from_the_environment_or_a_file)
{
    set_password(PASSWORD);
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 0);
    set_password(WRONG);
    write_file("password", PASSWORD "\n");
    ck_assert_int_eq(redlock(EXEC, "--password-file", world_path("password"), "--", "true"), 0);
    ck_assert(!world_said(PASSWORD));
}
END_TEST

START_TEST(a_wrong_password_is_refused_with_its_node_and_never_shown)
{
    char url[256];
    set_password(WRONG);
    ck_assert_int_eq(redlock(EXEC, "--", "true"), 78);
    ck_assert(world_said(world.dir)); /* the address of a node */
    ck_assert(!world_said(WRONG));
    ck_assert_int_eq(redlock("nodes", PATIENT), 69);
    ck_assert(!world_said(WRONG));
    (void)snprintf(url, sizeof url, "redis://:%s@127.0.0.1:99999", WRONG);
    ck_assert_int_eq(redlock(EXEC, "--nodes", url, "--", "true"), 78);
    ck_assert(!world_said(WRONG));
    (void)snprintf(url, sizeof url, "redis://:%s@127.0.0.1:1", WRONG);
    ck_assert_int_eq(redlock("nodes", "--nodes", url), 69);
    ck_assert(!world_said(WRONG));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, status_tells_held_free_split_and_no_quorum);
    tcase_add_test(t, nodes_tells_who_may_vote_and_why_not);
    tcase_add_test(t, N8_the_fingerprint_is_that_of_the_list_in_any_order);
    tcase_add_test(t, bench_measures_and_leaves_no_key);
    tcase_add_test(t, a_password_comes_from_the_environment_or_a_file);
    tcase_add_test(t, a_wrong_password_is_refused_with_its_node_and_never_shown);
}

int main(void)
{
    return world_main("redlock_look", "requirepass " PASSWORD, add_tests);
}
