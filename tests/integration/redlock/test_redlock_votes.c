/* SPDX-License-Identifier: Apache-2.0
 *
 * The answer of each node, as the owner of a batch can read it. */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

#define KEY "claimd:job:1"

static const struct redlock_async_key one_key = {.bytes = KEY, .len = sizeof KEY - 1};

/* A batch in which nothing was won can be read only until its callback returns. */
struct outcome {
    bool is_there;
    struct redlock_batch *batch; /* NULL = nothing was won */
    enum redlock_result result;
    enum redlock_vote votes[REDLOCK_NODES_MAX];
    int64_t holder_ttl_us;
    char holder[REDLOCK_LABEL_LEN_MAX + 1];
};

static void note_outcome(void *ctx, struct redlock_batch *batch)
{
    struct outcome *o = ctx;
    o->is_there = true;
    o->result = redlock_batch_result(batch, 0);
    o->batch = o->result == REDLOCK_OK ? batch : NULL;
    o->holder_ttl_us = redlock_batch_holder_ttl_us(batch, 0);
    (void)snprintf(o->holder, sizeof o->holder, "%s", redlock_batch_holder(batch, 0));
    for (size_t i = 0; i < world.count; i++) {
        o->votes[i] = redlock_batch_vote(batch, 0, i);
    }
}

static struct outcome try_key(bool wants_holder_ttl)
{
    struct outcome o = {0};
    const struct redlock_async_request request = {.keys = &one_key,
                                                  .count = 1,
                                                  .wants_holder_ttl = wants_holder_ttl,
                                                  .done = note_outcome,
                                                  .ctx = &o};
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(o.is_there);
    return o;
}

static void given_foreign(size_t node, const char *ttl_ms)
{
    ck_assert_str_eq(cli(node, "SET", KEY, "somebody", "PX", ttl_ms), "OK");
}

static void given_a_world_of(size_t count)
{
    world_start(count, NULL);
    world_open_voting();
}

static void keep_batch(void *ctx, struct redlock_batch *batch)
{
    *(struct redlock_batch **)ctx = batch;
}

START_TEST(A11_a_node_that_reports_our_own_token_gives_its_vote)
{
    /* The second finds the token of the first. */
    const struct redlock_async_key twice[] = {one_key, one_key};
    struct redlock_batch *b = NULL;
    given_a_world_of(3);
    const struct redlock_async_request request = {
        .keys = twice, .count = 2, .done = keep_batch, .ctx = &b};
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(b != NULL);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(redlock_batch_result(b, i), REDLOCK_OK);
        redlock_batch_release(b, i);
    }
}
END_TEST

START_TEST(A15_each_nodes_vote_can_be_read)
{
    world_start(5, NULL);
    world.options.node_timeout_us = 200 * US_PER_MS;
    world_open_voting();
    given_foreign(1, "60000");
    redis_server_kill(&world.servers[4]);
    run_until(redlock_async_voting(world.lock) == 4);
    world_signal(3, 1, SIGSTOP);
    struct outcome o = try_key(false);
    world_signal(3, 1, SIGCONT);
    ck_assert_int_eq(o.result, REDLOCK_SPLIT); /* 2 of 5, 1 refused, 2 failed */
    ck_assert_int_eq(o.votes[0], REDLOCK_VOTE_OK);
    ck_assert_int_eq(o.votes[1], REDLOCK_VOTE_REFUSED);
    ck_assert_int_eq(o.votes[2], REDLOCK_VOTE_OK);
    ck_assert_int_eq(o.votes[3], REDLOCK_VOTE_ERROR);
    ck_assert_int_eq(o.votes[4], REDLOCK_VOTE_DOWN);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->node_errors, 1);
}
END_TEST

START_TEST(N1_a_node_in_quarantine_is_told_from_one_that_is_down)
{
    world_start(3, NULL);
    world_open_voting();
    redis_server_kill(&world.servers[2]);
    run_until(world_events_of(REDLOCK_EVENT_DOWN) == 1);
    ck_assert_int_eq(redis_server_restart(&world.servers[2], NULL), STATUS_OK);
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == 1);
    struct outcome o = try_key(false);
    ck_assert_int_eq(o.result, REDLOCK_OK);
    ck_assert_int_eq(o.votes[2], REDLOCK_VOTE_QUARANTINED);
    redlock_batch_release(o.batch, 0);
}
END_TEST

START_TEST(A6_nodes_that_were_not_asked_have_no_vote)
{
    given_a_world_of(3);
    redis_server_kill(&world.servers[0]);
    redis_server_kill(&world.servers[1]);
    run_until(redlock_async_voting(world.lock) == 1);
    struct outcome o = try_key(false);
    ck_assert_int_eq(o.result, REDLOCK_NO_QUORUM);
    ck_assert_int_eq(o.votes[0], REDLOCK_VOTE_DOWN);
    ck_assert_int_eq(o.votes[2], REDLOCK_VOTE_NONE); /* there was nothing left to win */
    ck_assert_int_eq(world_calls(2, "set"), 0);
}
END_TEST

START_TEST(A15_a_lock_of_another_kind_is_a_refusal_and_no_fault_of_the_node)
{
    given_a_world_of(3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "HSET", KEY, "uuid:1", "1"), "1"); /* as Redisson stores it */
    }
    struct outcome o = try_key(true);
    ck_assert_int_eq(o.result, REDLOCK_HELD);
    ck_assert_int_eq(o.holder_ttl_us, -1); /* the key has no ttl */
    ck_assert_str_eq(o.holder, "");
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_REFUSED), 0);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->node_errors, 0);
    world_flush(world.lock);
    run_until(world_nodes_with(KEY) == 3);
}
END_TEST

START_TEST(C8_an_error_of_the_configuration_takes_the_nodes_vote)
{
    given_a_world_of(3);
    (void)cli(0, "CONFIG", "SET", "maxmemory", "1");
    struct outcome o = try_key(false);
    ck_assert_int_eq(o.result, REDLOCK_OK);
    run_until(world_events_of(REDLOCK_EVENT_REFUSED) == 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, "OOM"));
    ck_assert_int_eq(redlock_batch_vote(o.batch, 0, 0), REDLOCK_VOTE_ERROR);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 2);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->node_errors, 1);
    redlock_batch_release(o.batch, 0);
}
END_TEST

START_TEST(A15_the_holders_ttl_is_the_time_after_which_a_quorum_is_free)
{
    given_a_world_of(5);
    given_foreign(0, "9000");
    given_foreign(1, "20000");
    given_foreign(2, "60000");
    /* The fifth is free: a quorum is free after the second of these expires. */
    given_foreign(3, "30000");
    struct outcome o = try_key(true);
    ck_assert_int_eq(o.result, REDLOCK_HELD);
    ck_assert_int_gt(o.holder_ttl_us, 15 * US_PER_S);
    ck_assert_int_le(o.holder_ttl_us, 60 * US_PER_S);
    world_flush(world.lock);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(world_calls(i, "pttl"), 1);
    }
}
END_TEST

START_TEST(A15_the_holders_ttl_is_unknown_unless_it_was_asked_for_or_when_there_is_none)
{
    given_a_world_of(3);
    for (size_t i = 0; i < 3; i++) {
        given_foreign(i, "60000");
    }
    struct outcome o = try_key(false);
    ck_assert_int_eq(o.holder_ttl_us, -1);
    ck_assert_int_eq(world_calls(0, "pttl"), 0);
    ck_assert_str_eq(cli(0, "PERSIST", KEY), "1");
    ck_assert_str_eq(cli(1, "PERSIST", KEY), "1");
    ck_assert_int_eq(try_key(true).holder_ttl_us, -1);
}
END_TEST

#define TOKEN "a-token-of-27-characters..."
#define LABEL_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *values[5]; /* any three of them agree for the most part */
    const char *holder;
} told[] = {
    {{TOKEN "|a", TOKEN "|a", TOKEN "|a", TOKEN "|a", TOKEN "|a"}, "a"},
    {{TOKEN "|b", TOKEN "|a", TOKEN "|a", TOKEN "|a", TOKEN "|a"}, "a"},
    {{TOKEN "|a", TOKEN "|a", TOKEN "|a", TOKEN "|ab", TOKEN "|a"}, "a"},
    {{TOKEN, TOKEN, TOKEN, TOKEN, TOKEN "|a"}, ""},
    {{TOKEN "|" LABEL_64, TOKEN "|" LABEL_64, TOKEN "|" LABEL_64, NULL, NULL}, LABEL_64},
    {{TOKEN "|" LABEL_64 "+", TOKEN "|" LABEL_64 "+", TOKEN "|" LABEL_64 "+", NULL, NULL}, ""},
    {{TOKEN "|\x1b[31m\r\n|\x7f\xc3\xbc", TOKEN "|\x1b[31m\r\n|\x7f\xc3\xbc",
      TOKEN "|\x1b[31m\r\n|\x7f\xc3\xbc", NULL, NULL},
     "?[31m??|???"},
    {{TOKEN "|", TOKEN "|", TOKEN "|", TOKEN "|", TOKEN "|"}, ""},
    {{"", "|", "|", "a|b", "a|b"}, ""},
    {{TOKEN ".|a", TOKEN ".|a", TOKEN ".|a", TOKEN ".|a", TOKEN ".|a"}, ""},
};

START_TEST(A15_the_holders_label_is_what_most_nodes_say)
{
    given_a_world_of(5);
    for (size_t i = 0; i < 5 && told[_i].values[i] != NULL; i++) {
        ck_assert_str_eq(cli(i, "SET", KEY, told[_i].values[i], "PX", "60000"), "OK");
    }
    struct outcome o = try_key(true);
    ck_assert_int_eq(o.result, REDLOCK_HELD);
    ck_assert_str_eq(o.holder, told[_i].holder);
    ck_assert_str_eq(try_key(false).holder, ""); /* kept only if requested */
}
END_TEST

START_TEST(the_time_that_a_won_round_took_is_counted)
{
    given_a_world_of(3);
    world_signal(0, 2, SIGSTOP);
    world_acquire_start(world.lock, 1, 1);
    world_run_for(50 * US_PER_MS);
    world_signal(0, 2, SIGCONT);
    run_until(world_acquired() != NULL);
    const struct redlock_counters *c = redlock_async_counters(world.lock);
    uint64_t slow = 0;
    for (size_t i = 13; i < REDLOCK_LATENCY_BUCKETS; i++) { /* more than 40.96 ms */
        slow += c->latency[i];
    }
    ck_assert_uint_eq(slow, 1);
    redlock_batch_release(world_acquired(), 0);
}
END_TEST

/* Acquires one batch of 64 keys "k00"… on one node, and reads that node's SLOWLOG: true if the keys
 * arrived in the order of the request. */
static bool came_in_order(bool is_ordered)
{
    char names[64][4];
    struct redlock_async_key keys[64];
    struct redlock_batch *b = NULL;
    for (size_t i = 0; i < 64; i++) {
        (void)snprintf(names[i], sizeof names[i], "k%02zu", i);
        keys[i] = (struct redlock_async_key){.bytes = names[i], .len = 3};
    }
    const struct redlock_async_request request = {
        .keys = keys, .count = 64, .is_ordered = is_ordered, .done = keep_batch, .ctx = &b};
    ck_assert_str_eq(cli(0, "SLOWLOG", "RESET"), "OK");
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(b != NULL);
    const char *log = cli(0, "SLOWLOG", "GET", "65"); /* newest first: lock.N9's check */
    bool is_in_order = true;
    const char *at = log;
    for (size_t i = 64; i > 0; i--) {
        const char *next = at != NULL ? strstr(at, names[i - 1]) : NULL;
        is_in_order = is_in_order && next != NULL;
        at = next;
    }
    world_release_all(b);
    world_flush(world.lock);
    return is_in_order;
}

START_TEST(keys_travel_in_the_given_order_only_if_that_is_asked_for)
{
    world_start(1, "slowlog-log-slower-than 0");
    world_open_voting();
    ck_assert(came_in_order(true));
    ck_assert(!came_in_order(false)); /* by chance once in 64! */
}
END_TEST

START_TEST(who_is_closing_takes_no_requests)
{
    given_a_world_of(1);
    struct redlock_async *lock = TAKE(world.lock);
    struct redlock_error e;
    const struct redlock_async_request request = {
        .keys = &one_key, .count = 1, .done = note_outcome};
    redlock_async_close(lock, NULL, NULL);
    ck_assert_int_eq(redlock_async_acquire(lock, &request, &e), -ESHUTDOWN);
    ck_assert_int_eq(e.code, -ESHUTDOWN);
}
END_TEST

static struct redlock_batch *acquired(const char *const *keys, size_t count)
{
    struct redlock_async_key list[2];
    struct redlock_batch *b = NULL;
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct redlock_async_key){.bytes = keys[i], .len = strlen(keys[i])};
    }
    const struct redlock_async_request request = {
        .keys = list, .count = count, .done = keep_batch, .ctx = &b};
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(b != NULL);
    return b;
}

START_TEST(C8_a_key_that_the_nodes_forbid_costs_no_other_key)
{
    static const char *const keys[] = {KEY, "other:1"};
    given_a_world_of(3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "ACL", "SETUSER", "default", "resetkeys", "~claimd:*"), "OK");
    }
    struct redlock_batch *b = acquired(keys, 2);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    ck_assert_int_eq(redlock_batch_result(b, 1), REDLOCK_NO_QUORUM);
    for (size_t i = 0; i < 3; i++) { /* the last node answers after the verdict */
        run_until(redlock_batch_vote(b, 1, i) == REDLOCK_VOTE_FORBIDDEN);
    }
    redlock_batch_release(b, 0);
    run_until(world_nodes_with(KEY) == 0);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_REFUSED), 0);
}
END_TEST

/* Each node has its own access list. */
START_TEST(C8_one_node_that_forbids_a_key_still_votes_on_the_others)
{
    static const char *const free_key[] = {KEY};
    static const char *const forbidden_key[] = {"claimd:job:2"};
    world_start(3, NULL);
    world.options.ttl_us = US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    ck_assert_str_eq(
        cli(0, "ACL", "SETUSER", "default", "resetkeys", "~" KEY, "~claimd:job:canary"), "OK");
    struct redlock_batch *a = acquired(free_key, 1);
    struct redlock_batch *b = acquired(forbidden_key, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    run_until(redlock_batch_vote(b, 0, 0) == REDLOCK_VOTE_FORBIDDEN);
    world_signal(2, 1, SIGSTOP); /* so that `a` needs node 0 */
    run_until(redlock_async_voting(world.lock) == 2);
    uint64_t extended = redlock_async_counters(world.lock)->extended;
    run_until(redlock_async_counters(world.lock)->extended >= extended + 3);
    ck_assert_int_eq(redlock_batch_state(a, 0), REDLOCK_STATE_HELD);
    world_signal(2, 1, SIGCONT);
    redlock_batch_release(a, 0);
    redlock_batch_release(b, 0);
    run_until(world_nodes_with(KEY) == 0);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_REFUSED), 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, C8_a_key_that_the_nodes_forbid_costs_no_other_key);
    tcase_add_test(t, C8_one_node_that_forbids_a_key_still_votes_on_the_others);
    tcase_add_test(t, A11_a_node_that_reports_our_own_token_gives_its_vote);
    tcase_add_test(t, A15_each_nodes_vote_can_be_read);
    tcase_add_test(t, N1_a_node_in_quarantine_is_told_from_one_that_is_down);
    tcase_add_test(t, A6_nodes_that_were_not_asked_have_no_vote);
    tcase_add_test(t, A15_a_lock_of_another_kind_is_a_refusal_and_no_fault_of_the_node);
    tcase_add_test(t, C8_an_error_of_the_configuration_takes_the_nodes_vote);
    tcase_add_test(t, A15_the_holders_ttl_is_the_time_after_which_a_quorum_is_free);
    tcase_add_test(t, A15_the_holders_ttl_is_unknown_unless_it_was_asked_for_or_when_there_is_none);
    tcase_add_loop_test(t, A15_the_holders_label_is_what_most_nodes_say, 0, (int)ARRAY_COUNT(told));
    tcase_add_test(t, the_time_that_a_won_round_took_is_counted);
    tcase_add_test(t, keys_travel_in_the_given_order_only_if_that_is_asked_for);
    tcase_add_test(t, who_is_closing_takes_no_requests);
}

int main(void)
{
    return world_main("redlock_votes", add_tests);
}
