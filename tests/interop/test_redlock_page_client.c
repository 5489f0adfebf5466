/* SPDX-License-Identifier: Apache-2.0
 *
 * A client that was made from docs/lock-protocol.md (lock_client.py) and ours, on the same nodes.
 * 77 = there is no Python. */
#include "test_redlock_waiters.h"

#include <stdio.h>

#define SKIPPED 77
#define PYTHON "/usr/bin/python3"
#define CANARY "claimd:job:canary"
#define NODES 3
#define ANSWER_MAX 256

static struct page_client {
    uv_process_t process;
    uv_pipe_t in;
    uv_pipe_t out;
    char answer[ANSWER_MAX];
    size_t len;
    size_t open; /* handles */
} page_client;
static struct redlock_batch *held; /* ours */
static enum redlock_result result;

/* ---- the other client ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct page_client *c = handle->data;
    *buf = uv_buf_init(c->answer + c->len, (unsigned)(sizeof c->answer - 1 - c->len));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct page_client *c = stream->data;
    (void)buf;
    c->len += count > 0 ? (size_t)count : 0;
}

static void on_exit_of(uv_process_t *process, int64_t status, int signal_number)
{
    struct page_client *c = process->data;
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(signal_number, 0);
    c->open--;
}

static bool is_answered(const struct page_client *c)
{
    return c->len > 0 && c->answer[c->len - 1] == '\n';
}

/* What it answers to one line; valid until the next. */
static const char *ask(const char *line)
{
    struct page_client *c = &page_client;
    char text[64];
    int len = snprintf(text, sizeof text, "%s\n", line);
    uv_buf_t buf = uv_buf_init(text, (unsigned)len);
    memset(c->answer, 0, sizeof c->answer);
    c->len = 0;
    ck_assert_int_eq(uv_try_write((uv_stream_t *)&c->in, &buf, 1), len);
    run_until(is_answered(c));
    c->answer[c->len - 1] = '\0';
    return c->answer;
}

static bool says(const char *line, const char *expected)
{
    const char *answer = ask(line);
    bool is_same = strncmp(answer, expected, strlen(expected)) == 0;
    if (!is_same) {
        (void)fprintf(stderr, "%s: %s, not %s\n", line, answer, expected);
    }
    return is_same;
}

static void start_client(const char *trusts_fresh)
{
    static char python[] = PYTHON;
    static char program[] = LOCK_CLIENT;
    static char words[4][16];
    struct page_client *c = &page_client;
    (void)snprintf(words[0], sizeof words[0], "serve");
    (void)snprintf(words[1], sizeof words[1], "%d", (int)(world.options.ttl_us / US_PER_MS));
    (void)snprintf(words[2], sizeof words[2], "%d",
                   (int)(world.options.node_timeout_us / US_PER_MS));
    (void)snprintf(words[3], sizeof words[3], "%s", trusts_fresh);
    static char prefix[32];
    (void)snprintf(prefix, sizeof prefix, "%s", world.options.prefix);
    char *argv[7 + NODES + 1] = {python, program, words[0], words[1], words[2], prefix, words[3]};
    for (size_t i = 0; i < NODES; i++) {
        argv[7 + i] = world.servers[i].path;
    }
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&c->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    const uv_process_options_t options = {
        .file = PYTHON, .args = argv, .stdio = stdio, .stdio_count = 3, .exit_cb = on_exit_of};
    *c = (struct page_client){.open = 1};
    (void)uv_pipe_init(&world.loop, &c->in, 0);
    (void)uv_pipe_init(&world.loop, &c->out, 0);
    c->process.data = c->out.data = c;
    ck_assert_int_eq(uv_spawn(&world.loop, &c->process, &options), 0);
    ck_assert_int_eq(uv_read_start((uv_stream_t *)&c->out, on_alloc, on_read), 0);
}

/* At the end of its input it ends. */
static void stop_client(void)
{
    struct page_client *c = &page_client;
    uv_close((uv_handle_t *)&c->in, NULL);
    run_until(c->open == 0);
    uv_close((uv_handle_t *)&c->out, NULL);
    uv_close((uv_handle_t *)&c->process, NULL);
}

static void given_both(void)
{
    world_start(NODES, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    world_open_voting();
    start_client("1");
    ck_assert(says("voting", "3"));
}

static void nobody_was_robbed(void)
{
    ck_assert(says("thefts", "0"));
    ck_assert_uint_eq(redlock_async_counters(world.lock)->stolen, 0);
    stop_client();
}

/* ---- ours ---- */

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    (void)ctx;
    result = redlock_batch_result(batch, 0);
    held = result == REDLOCK_OK ? batch : NULL;
}

static enum redlock_result try_ours(void)
{
    const struct redlock_async_key key = {.bytes = JOB, .len = strlen(JOB)};
    const struct redlock_async_request request = {.keys = &key, .count = 1, .done = on_acquired};
    result = REDLOCK_INVALID;
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(result != REDLOCK_INVALID);
    return result;
}

static void release_ours(void)
{
    world_release_all(held);
    world_flush(world.lock);
}

static void on_extended(void *ctx, enum redlock_result extended)
{
    (void)ctx;
    result = extended;
}

static enum redlock_result extend_ours(void)
{
    result = REDLOCK_INVALID;
    ck_assert_int_eq(redlock_batch_extend(held, 0, on_extended, NULL), 0);
    run_until(result != REDLOCK_INVALID);
    return result;
}

static void on_fenced(void *ctx, uint64_t fence)
{
    *(uint64_t *)ctx = fence;
}

static uint64_t fence_ours(void)
{
    uint64_t fence = UINT64_MAX;
    ck_assert_int_eq(redlock_batch_fence(held, 0, 1, on_fenced, &fence), 0);
    run_until(fence != UINT64_MAX);
    return fence;
}

/* ---- level 1 ---- */

START_TEST(L8_a_client_of_the_page_and_ours_exclude_each_other)
{
    given_both();
    for (int i = 0; i < 3; i++) {
        ck_assert(says("acquire " JOB, "OK "));
        ck_assert_int_eq(try_ours(), REDLOCK_HELD);
        ck_assert(says("release", "3 0 0 0"));
        ck_assert_int_eq(try_ours(), REDLOCK_OK);
        ck_assert(says("acquire " JOB, "HELD"));
        release_ours();
    }
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    nobody_was_robbed();
}
END_TEST

START_TEST(E1_E6_a_client_of_the_page_extends_beside_ours)
{
    given_both();
    ck_assert(says("acquire " JOB, "OK "));
    for (size_t i = 0; i < NODES; i++) {
        ck_assert_str_eq(cli(i, "PEXPIRE", JOB, "60000"), "1");
    }
    ck_assert_str_eq(cli(2, "DEL", JOB), "1");
    ck_assert(says("extend", "DONE HELD")); /* puts it back on node 2 */
    run_until(world_nodes_with(JOB) == NODES);
    ck_assert_int_le(number(0, "PTTL", JOB), world.options.ttl_us / US_PER_MS);
    ck_assert_int_eq(try_ours(), REDLOCK_HELD);
    ck_assert(says("extend", "DONE HELD"));
    ck_assert(says("release", "3 0 0 0"));
    ck_assert_int_eq(try_ours(), REDLOCK_OK);
    ck_assert(says("acquire " JOB, "HELD"));
    ck_assert_int_eq(extend_ours(), REDLOCK_OK); /* what it released of its try was not ours */
    release_ours();
    nobody_was_robbed();
}
END_TEST

START_TEST(E3_E8_a_client_of_the_page_sees_that_it_lost_the_lock)
{
    given_both();
    ck_assert(says("acquire " JOB, "OK "));
    ck_assert_str_eq(cli(0, "DEL", JOB), "1");
    ck_assert_str_eq(cli(1, "SET", JOB, "another"), "OK");
    ck_assert(says("extend", "DENIED LOST"));
    ck_assert(says("thefts", "1"));
    ck_assert(says("release", "1 1 1 0"));
    ck_assert(says("thefts", "1"));
    stop_client();
}
END_TEST

/* ---- the canary ---- */

static void flush(size_t nodes)
{
    for (size_t i = 0; i < nodes; i++) {
        ck_assert_str_eq(cli(i, "FLUSHALL"), "OK");
    }
}

START_TEST(N9_both_know_the_same_canary)
{
    char before[ANSWER_MAX];
    world_start(NODES, NULL);
    start_client("1");
    ck_assert(says("voting", "3"));
    (void)snprintf(before, sizeof before, "%s", cli(1, "GET", CANARY));
    world_open_voting();
    ck_assert_str_eq(cli(1, "GET", CANARY), before);
    ck_assert_int_eq(try_ours(), REDLOCK_OK);
    ck_assert(says("acquire " JOB, "HELD"));
    release_ours();
    nobody_was_robbed();
}
END_TEST

START_TEST(N9_nodes_that_forgot_give_the_page_s_client_no_lock)
{
    given_both();
    ck_assert_int_eq(try_ours(), REDLOCK_OK);
    flush(2);
    ck_assert(strncmp(ask("acquire " JOB), "OK", 3) != 0); /* the order of replies says why */
    ck_assert(says("known", "forgot forgot -"));
    ck_assert_int_ne(try_ours(), REDLOCK_OK);
    ck_assert(says("acquire " JOB, "NO_QUORUM")); /* the canary is back, but they are banned */
    ck_assert(says("thefts", "0"));
    stop_client();
}
END_TEST

START_TEST(N9_N2_nodes_that_forgot_do_not_extend_for_the_page_s_client)
{
    given_both();
    ck_assert(says("acquire " JOB, "OK "));
    flush(2);
    ck_assert(says("extend", "UNSURE SUSPECT"));
    ck_assert_int_ne(try_ours(), REDLOCK_OK);
    ck_assert(says("extend", "UNSURE SUSPECT"));
    ck_assert(says("release", "1 0 2 0"));
    nobody_was_robbed();
}
END_TEST

START_TEST(N1_young_nodes_have_no_vote_for_the_page_s_client)
{
    world_start(NODES, NULL);
    world.options.ttl_us = world.options.ttl_max_us = 1000 * US_PER_S;
    world_open_voting();
    start_client("0");
    ck_assert(says("known", "fresh fresh fresh"));
    ck_assert(says("acquire " JOB, "NO_QUORUM"));
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    stop_client();
}
END_TEST

/* ---- level 2, and beside level 3 ---- */

START_TEST(the_fences_of_both_rise_together)
{
    uint64_t last = 0;
    given_both();
    for (int i = 0; i < 3; i++) {
        ck_assert(says("acquire " JOB, "OK "));
        uint64_t fence = strtoull(ask("fence"), NULL, 10);
        ck_assert_uint_gt(fence, last);
        ck_assert(says("release", "3 0 0 0"));
        ck_assert_int_eq(try_ours(), REDLOCK_OK);
        last = fence_ours();
        ck_assert_uint_gt(last, fence);
        release_ours();
    }
    nobody_was_robbed();
}
END_TEST

START_TEST(L8_who_stands_in_line_follows_the_page_s_client)
{
    struct waiter waiters[2];
    given_both();
    ck_assert(says("acquire " JOB, "OK "));
    start_waiting(world.lock, &waiters[0]);
    start_waiting(another_client(), &waiters[1]);
    ck_assert(says("extend", "DONE HELD"));
    ck_assert_uint_eq(waiters_told(waiters, 2), 0);
    ck_assert(says("release", "3 0 0 0"));
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    ck_assert(says("acquire " JOB, "HELD"));
    world_release_all(waiters[0].batch); /* hands over, or leaves a gap */
    run_until(waiters[1].order != 0);
    ck_assert_int_eq(waiters[1].result, REDLOCK_OK);
    ck_assert(says("acquire " JOB, "HELD"));
    world_release_all(waiters[1].batch);
    run_until(world_nodes_with(JOB) == 0);
    ck_assert(says("acquire " JOB, "OK "));
    ck_assert(says("release", "3 0 0 0"));
    close_others();
    nobody_was_robbed();
}
END_TEST

START_TEST(the_page_s_client_computes_as_the_vectors_say)
{
    static const char *const argv[] = {PYTHON, LOCK_CLIENT, "vectors", LOCK_VECTORS, NULL};
    autobuf struct buf out = BUF_INIT(65536);
    int code = -1;
    ck_assert_int_eq(program_run(argv, NULL, WORLD_LIMIT_US, &out, &code, NULL), STATUS_OK);
    ck_assert_msg(code == 0, "%s", (const char *)buf_at(&out));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 120);
    tcase_add_test(t, L8_a_client_of_the_page_and_ours_exclude_each_other);
    tcase_add_test(t, E1_E6_a_client_of_the_page_extends_beside_ours);
    tcase_add_test(t, E3_E8_a_client_of_the_page_sees_that_it_lost_the_lock);
    tcase_add_test(t, N9_both_know_the_same_canary);
    tcase_add_test(t, N9_nodes_that_forgot_give_the_page_s_client_no_lock);
    tcase_add_test(t, N9_N2_nodes_that_forgot_do_not_extend_for_the_page_s_client);
    tcase_add_test(t, N1_young_nodes_have_no_vote_for_the_page_s_client);
    tcase_add_test(t, the_fences_of_both_rise_together);
    tcase_add_test(t, L8_who_stands_in_line_follows_the_page_s_client);
    tcase_add_test(t, the_page_s_client_computes_as_the_vectors_say);
}

int main(void)
{
    if (access(PYTHON, X_OK) != 0) {
        (void)fprintf(stderr, "SKIPPED: there is no " PYTHON "\n");
        return SKIPPED;
    }
    return world_main("redlock_page_client", add_tests);
}
