/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults that the keeper survives, and mistakes that it must not make: errors of every kind, lost
 * connections, a stopped or dead holder (lock.W4–W8, F3). */
#include "redlock/redlock_async.h"
#include "support/stub_server.h"
#include "test_redlock_world.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "claimd:job:1"

static void shorten_the_lease(int64_t ttl_us)
{
    world.options.ttl_us = ttl_us;
    world.options.ttl_max_us = ttl_us;
    world.options.node_timeout_us = ttl_us / 10;
}

static struct redlock_batch *given_a_lock(void)
{
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    return b;
}

static uint64_t extended(void)
{
    return redlock_async_counters(world.lock)->extended;
}

static void check_doubt_and_recovery(struct redlock_batch *b)
{
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1);
    run_until(world.states[REDLOCK_STATE_HELD] == 1);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 0);
    ck_assert_int_gt(redlock_batch_deadline_us(b, 0), deadline_us);
    uint64_t before = extended();
    run_until(extended() >= before + 2); /* the keeper continues */
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 1);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}

/* ---- errors (lock.W5, C8) ---- */

static const char *const errors[] = {
    "BUSY Redis is busy running a script.",
    "LOADING Redis is loading the dataset in memory",
    "MISCONF Redis is configured to save RDB snapshots",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY You can't write against a read only replica.",
    "NOSCRIPT No matching script.",
    "CLUSTERDOWN Hash slot not served",
    "MASTERDOWN Link with MASTER is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "NOPERM this user has no permissions to run the 'set' command",
    "ERR something that nobody has thought of",
};
#define ERRORS (sizeof errors / sizeof errors[0])

START_TEST(W5_the_keeper_goes_on_after_an_error_of_any_kind)
{
    static const struct stub_options options = {
        .server = "valkey", .version = "9.0.0", .has_ifeq = true, .has_delifeq = true};
    world_start(0, NULL);
    for (size_t i = 0; i < 3; i++) {
        char dir[SERVER_PATH_MAX + 32];
        struct redis_server server;
        world_dir(i, dir, sizeof dir);
        ck_assert_int_eq(stub_server_start(dir, &options, &server, NULL), STATUS_OK);
        world_add(&server);
    }
    shorten_the_lease(2 * US_PER_S);
    world_open_voting();
    for (size_t i = 0; i < 2; i++) { /* a quorum fails in the first two rounds */
        ck_assert_str_eq(cli(i, "STUB", "FAIL", "IFEQ", errors[_i], "2"), "OK");
    }
    struct redlock_batch *b = given_a_lock();
    check_doubt_and_recovery(b);
}
END_TEST

START_TEST(W5_C9_the_keeper_goes_on_after_SCRIPT_FLUSH)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    for (uint64_t i = 0; i < 3; i++) {
        for (size_t node = 0; node < 3; node++) {
            (void)cli(node, "SCRIPT", "FLUSH");
        }
        run_until(extended() > i);
    }
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST], 0);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(W5_the_keeper_goes_on_after_nodes_were_replicas_for_a_while)
{
    world_start(3, NULL);
    shorten_the_lease(6 * US_PER_S);
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    (void)cli(0, "REPLICAOF", "127.0.0.1", "1"); /* READONLY */
    (void)cli(1, "REPLICAOF", "127.0.0.1", "1");
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1);
    (void)cli(0, "REPLICAOF", "NO", "ONE");
    (void)cli(1, "REPLICAOF", "NO", "ONE");
    check_doubt_and_recovery(b);
}
END_TEST

START_TEST(W5_nodes_without_memory_extend_what_they_have)
{
    world_start(3, NULL);
    shorten_the_lease(3 * US_PER_S);
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "CONFIG", "SET", "maxmemory", "1");
    }
    run_until(extended() == 4);
    (void)world_acquire(world.lock, 2, 1); /* OOM: no new lock */
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_NO_QUORUM], 1);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST], 0);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}
END_TEST

START_TEST(W5_the_keeper_goes_on_when_connections_are_lost_again_and_again)
{
    world_start(3, NULL);
    shorten_the_lease(3 * US_PER_S);
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    int64_t end_us = clock_boot_us() + 2 * world.options.ttl_us;
    while (clock_boot_us() < end_us) {
        for (size_t i = 0; i < 3; i++) {
            (void)cli(i, "CLIENT", "KILL", "TYPE", "normal");
        }
        world.event_count = 0;
        world_run_for(400 * US_PER_MS);
    }
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 0);
    ck_assert_uint_ge(extended(), 2);
    redlock_batch_release(b, 0);
}
END_TEST

/* ---- states (lock.W8, E8) ---- */

START_TEST(W8_each_transition_is_told_once)
{
    world_start(3, NULL);
    shorten_the_lease(2 * US_PER_S);
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    world_signal(0, 2, SIGSTOP);
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1);
    world_run_for(world.options.node_timeout_us * 2); /* more rounds fail */
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 1);
    world_signal(0, 2, SIGCONT);
    run_until(world.states[REDLOCK_STATE_HELD] == 1);
    world_signal(0, 2, SIGSTOP);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 2);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_HELD], 1);
    world_signal(0, 2, SIGCONT);
    run_until(redlock_async_voting(world.lock) == 3);
    world_run_for(world.options.ttl_us); /* E8 */
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 1);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_HELD], 1);
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_LOST);
    redlock_batch_release(b, 0);
}
END_TEST

/* ---- released locks (lock.W6) ---- */

#define LOCKS 100000
#define LOCKS_PER_BATCH 128
#define BATCHES_HELD 40

static long pttl(size_t node, const char *key)
{
    return strtol(cli(node, "PTTL", key), NULL, 10);
}

static uint64_t won(void)
{
    return redlock_async_counters(world.lock)->results[REDLOCK_OK];
}

/* Releases the locks of `b` while they are being extended. */
static void give_back(struct redlock_batch *b)
{
    size_t count = b != NULL ? redlock_batch_count(b) : 0;
    for (size_t i = 0; i < count; i += LOCKS_PER_BATCH / 4) {
        (void)redlock_batch_extend(b, i, NULL, NULL);
    }
    for (size_t i = count; i > 0; i--) { /* the last release frees the batch */
        if (redlock_batch_result(b, i - 1) == REDLOCK_OK) {
            redlock_batch_release(b, i - 1);
        }
    }
}

START_TEST(W6_after_a_hundred_thousand_locks_nothing_is_extended_that_was_given_back)
{
    struct redlock_batch *held[BATCHES_HELD] = {0};
    world_start(3, NULL);
    shorten_the_lease(4 * US_PER_S);
    world_open_voting();
    for (int i = 0; won() < LOCKS; i++) {
        uint64_t won_before = won();
        give_back(TAKE(held[i % BATCHES_HELD]));
        struct redlock_batch *b = world_acquire(world.lock, i * LOCKS_PER_BATCH, LOCKS_PER_BATCH);
        if (won() > won_before) { /* otherwise the machine is too busy */
            held[i % BATCHES_HELD] = b;
        }
    }
    for (size_t i = 0; i < BATCHES_HELD; i++) {
        give_back(held[i]);
    }
    struct redlock_batch *dropped = given_a_lock();
    uint64_t before = extended();
    run_until(extended() > before);
    redlock_batch_drop(dropped, 0); /* R7: it ends by its ttl */
    world_flush(world.lock);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "1");
    for (long last = LONG_MAX; last > 1000;) { /* past T/3 */
        long now = pttl(0, KEY);
        ck_assert_int_le(now, last);
        last = now;
        world_run_for(20 * US_PER_MS);
    }
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "1");
}
END_TEST

/* ---- a holder that is stopped or dead (lock.F3, W7) ---- */

static int told_fd; /* from the holder to the test */
static struct redlock_async *holders;

static void holder_says(char what)
{
    if (write(told_fd, &what, 1) != 1) {
        _exit(1);
    }
}

static void on_holders_lock(void *ctx, struct redlock_batch *batch)
{
    (void)ctx;
    holder_says(redlock_batch_result(batch, 0) == REDLOCK_OK ? 'W' : 'x');
}

static void on_holders_state(void *ctx, struct redlock_batch *batch, size_t index, void *user,
                             enum redlock_state state)
{
    (void)ctx;
    (void)batch;
    (void)index;
    (void)user;
    holder_says(state == REDLOCK_STATE_LOST ? 'L' : 'x');
    (void)raise(SIGSTOP); /* so that the commands sent until now can be counted */
}

/* Runs in its own process: locks KEY, then only keeps it. */
static void hold(void)
{
    static const struct redlock_async_key key = {.bytes = KEY, .len = sizeof KEY - 1};
    static const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = on_holders_lock};
    uv_loop_t loop;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    world.options.loop = &loop;
    world.options.on_node = NULL;
    world.options.on_state = on_holders_state;
    if (uv_loop_init(&loop) != 0 || redlock_async_open(&world.options, &holders, NULL) != 0) {
        _exit(1);
    }
    while (redlock_async_voting(holders) < world.count) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    if (redlock_async_acquire(holders, &request, NULL) != 0) {
        _exit(1);
    }
    for (;;) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
}

static char next_word(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char word = '-';
    ck_assert_int_eq(poll(&p, 1, WORLD_LIMIT_US / US_PER_MS), 1);
    ck_assert_int_eq(read(fd, &word, 1), 1);
    return word;
}

static pid_t given_a_holder(int *ret_fd)
{
    int ends[2];
    world_start(3, NULL);
    shorten_the_lease(US_PER_S);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        told_fd = ends[1];
        hold();
    }
    (void)close(ends[1]);
    *ret_fd = ends[0];
    ck_assert_int_eq(next_word(*ret_fd), 'W');
    ck_assert(WAIT_UNTIL(world_calls(0, "pexpire") >= 2, WORLD_LIMIT_US)); /* it is extended */
    return pid;
}

/* Counts all commands except those that counting itself needs. */
static long commands(size_t node)
{
    long calls = 0;
    static const char *const names[] = {"set",  "get",  "evalsha", "eval", "del",
                                        "time", "ping", "pexpire", "mget"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        calls += world_calls(node, names[i]);
    }
    return calls;
}

START_TEST(F3_W4_the_first_act_of_a_holder_that_was_stopped_for_too_long_is_LOST)
{
    int fd = -1;
    int wait_status = 0;
    pid_t pid = given_a_holder(&fd);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert(!WAIT_UNTIL(false, world.options.ttl_us + 200 * US_PER_MS));
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "SET", KEY, "the next owner");
        (void)cli(i, "CONFIG", "RESETSTAT");
    }
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_int_eq(next_word(fd), 'L');
    do { /* it has stopped itself from within the callback */
        ck_assert_int_eq(waitpid(pid, &wait_status, WUNTRACED), pid);
    } while (!WIFSTOPPED(wait_status));
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(commands(i), 0);
        ck_assert_str_eq(cli(i, "GET", KEY), "the next owner");
    }
    program_kill(pid);
    (void)close(fd);
}
END_TEST

START_TEST(W7_a_dead_holder_extends_nothing)
{
    int fd = -1;
    pid_t pid = given_a_holder(&fd);
    program_kill(pid);
    int64_t dead_us = clock_boot_us();
    ck_assert(WAIT_UNTIL(world_nodes_with(KEY) == 0, WORLD_LIMIT_US));
    ck_assert_int_lt(clock_boot_us() - dead_us, world.options.ttl_us + 5 * US_PER_S);
    (void)close(fd);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, W5_the_keeper_goes_on_after_an_error_of_any_kind, 0, (int)ERRORS);
    tcase_add_test(t, W5_C9_the_keeper_goes_on_after_SCRIPT_FLUSH);
    tcase_add_test(t, W5_the_keeper_goes_on_after_nodes_were_replicas_for_a_while);
    tcase_add_test(t, W5_nodes_without_memory_extend_what_they_have);
    tcase_add_test(t, W5_the_keeper_goes_on_when_connections_are_lost_again_and_again);
    tcase_add_test(t, W8_each_transition_is_told_once);
    tcase_add_test(t, W6_after_a_hundred_thousand_locks_nothing_is_extended_that_was_given_back);
    tcase_add_test(t, F3_W4_the_first_act_of_a_holder_that_was_stopped_for_too_long_is_LOST);
    tcase_add_test(t, W7_a_dead_holder_extends_nothing);
}

int main(void)
{
    return world_main("redlock_watch", add_tests);
}
