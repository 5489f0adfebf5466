/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients with a label (lock.K3): alone, beside clients without one, and beside other programs. */
#include "test_redlock_waiters.h"

#include <stdio.h>

#define LABEL "backup@db7 [4711] | nightly"
#define LONG_LABEL "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ROUNDS 20

/* An earlier waiter of another client. */
#define EARLY "AAAAAAAAAAAA~00000000012345"

static struct waiter waiters[4];
static char long_value[REDLOCK_TOKEN_LEN + 1 + 5000 + 1];

static void start_labelled(size_t count, const char *label)
{
    world_start(count, NULL);
    world.options.label = label;
    world_open_voting();
}

static struct redlock_async *client_with(const char *label)
{
    world.options.label = label;
    return another_client();
}

static size_t nodes_labelled(const char *label)
{
    size_t count = 0;
    for (size_t i = 0; i < world.count; i++) {
        const char *value = cli(i, "GET", JOB);
        count += strlen(value) == REDLOCK_TOKEN_LEN + 1 + strlen(label) &&
                 value[REDLOCK_TOKEN_LEN] == '|' &&
                 strcmp(value + REDLOCK_TOKEN_LEN + 1, label) == 0;
    }
    return count;
}

static struct redlock_batch *given_lock_everywhere(void)
{
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    run_until(world_nodes_with(JOB) == world.count);
    return b;
}

/* ---- the value ---- */

START_TEST(K3_the_value_of_a_key_is_the_token_and_the_label)
{
    static const char *const labels[] = {LABEL, "x", LONG_LABEL};
    char label[REDLOCK_LABEL_LEN_MAX + 1];
    (void)snprintf(label, sizeof label, "%s", labels[_i]);
    start_labelled(3, label);
    memset(label, '-', sizeof label); /* the option was copied */
    struct redlock_batch *b = given_lock_everywhere();
    ck_assert_uint_eq(nodes_labelled(labels[_i]), 3);
    ck_assert_mem_eq(cli(0, "GET", JOB), redlock_async_prefix(world.lock), REDLOCK_PREFIX_LEN);
    redlock_batch_release(b, 0);
    run_until(redlock_async_counters(world.lock)->release_deleted == 3);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
}
END_TEST

START_TEST(K3_without_a_label_the_value_is_the_token)
{
    start_labelled(1, _i == 0 ? NULL : "");
    struct redlock_batch *b = given_lock_everywhere();
    ck_assert_uint_eq(strlen(cli(0, "GET", JOB)), REDLOCK_TOKEN_LEN);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(K3_a_label_out_of_bounds_is_refused)
{
    static const struct {
        const char *label;
        const char *says;
    } bad[] = {{LONG_LABEL "0", "65 bytes"},
               {"a\nb", "byte 2"},
               {"\x1b[31mred", "byte 1"},
               {"del\x7f", "byte 4"},
               {"m\xc3\xbcller", "byte 2"}};
    struct redlock_error e;
    struct redlock_async *lock = NULL;
    world_start(1, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        world.options.label = bad[i].label;
        ck_assert_int_eq(redlock_async_open(&world.options, &lock, &e), -EINVAL);
        ck_assert_msg(strstr(e.message, bad[i].says) != NULL && strstr(e.message, "label") != NULL,
                      "%s", e.message);
    }
}
END_TEST

START_TEST(E1_E6_a_labelled_lock_is_extended_and_healed_as_it_is)
{
    start_labelled(3, LABEL);
    struct redlock_batch *b = given_lock_everywhere();
    int64_t first_us = redlock_batch_deadline_us(b, 0);
    ck_assert_str_eq(cli(0, "DEL", JOB), "1");
    run_until(redlock_async_counters(world.lock)->healed == 1);
    run_until(nodes_labelled(LABEL) == 3);
    ck_assert_int_gt(redlock_batch_deadline_us(b, 0), first_us);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->stolen, 0);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
}
END_TEST

START_TEST(R2_our_token_without_our_label_is_not_ours)
{
    char value[REDLOCK_VALUE_LEN_MAX + 1];
    start_labelled(3, LABEL);
    struct redlock_batch *b = given_lock_everywhere();
    (void)snprintf(value, sizeof value, "%s", cli(0, "GET", JOB));
    value[REDLOCK_TOKEN_LEN + (_i == 0 ? 0 : 2)] = '\0';
    ck_assert_str_eq(cli(0, "SET", JOB, value), "OK");
    run_until(redlock_async_counters(world.lock)->stolen == 1);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_str_eq(cli(0, "GET", JOB), value);
    ck_assert_uint_eq(world_nodes_with(JOB), 1);
}
END_TEST

static void on_fenced(void *ctx, uint64_t fence)
{
    *(uint64_t *)ctx = fence;
}

START_TEST(a_labelled_lock_gets_a_fence)
{
    uint64_t fence = 0;
    start_labelled(3, LABEL);
    struct redlock_batch *b = given_lock_everywhere();
    ck_assert_int_eq(redlock_batch_fence(b, 0, 1, on_fenced, &fence), 0);
    run_until(fence == 1);
    redlock_batch_release(b, 0);
}
END_TEST

static void on_freed(void *ctx)
{
    *(bool *)ctx = true;
}

START_TEST(K1_a_successor_frees_labelled_keys_by_their_prefix)
{
    static const struct redlock_async_key key = {.bytes = JOB, .len = sizeof JOB - 1};
    bool is_freed = false;
    start_labelled(3, LABEL);
    (void)given_lock_everywhere();
    struct redlock_async *successor = another_client();
    ck_assert_int_eq(redlock_async_free_prefix(successor, redlock_async_prefix(world.lock), &key, 1,
                                               on_freed, &is_freed, NULL),
                     0);
    run_until(is_freed);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    close_others();
}
END_TEST

/* ---- in line ---- */

START_TEST(L2_clients_hand_over_to_each_other_whatever_their_labels)
{
    static const char *const labels[] = {LABEL, NULL, LONG_LABEL, "x"};
    struct redlock_async *clients[ARRAY_COUNT(labels)];
    start_world(3);
    struct redlock_async *other = client_with(_i == 0 ? NULL : LABEL);
    struct redlock_batch *held = world_acquire(other, 1, 1);
    for (size_t i = 0; i < ARRAY_COUNT(labels); i++) {
        clients[i] = client_with(labels[i]);
        start_waiting(clients[i], &waiters[i]);
    }
    world_release_all(held);
    for (size_t i = 0; i < ARRAY_COUNT(labels); i++) {
        run_until(waiters[i].order != 0);
        ck_assert_int_eq(waiters[i].result, REDLOCK_OK);
        ck_assert_int_eq(waiters[i].order, (int)i + 1);
        if (labels[i] != NULL) {
            ck_assert_uint_ge(nodes_labelled(labels[i]), 2);
        }
        world_release_all(waiters[i].batch);
    }
    run_until(world_nodes_with(JOB) == 0);
    for (size_t i = 0; i < 3; i++) { /* none mistook another for a client without a line */
        ck_assert_int_eq(number(i, "EXISTS", "redlock:foreign:" JOB), 0);
    }
    close_others();
}
END_TEST

START_TEST(L7_a_labelled_waiter_is_told_by_its_whole_value)
{
    char channel[64];
    char message[2 + REDLOCK_VALUE_LEN_MAX + 1];
    start_world(1);
    struct redlock_batch *held = world_acquire(world.lock, 1, 1);
    struct redlock_async *labelled = client_with(LABEL);
    start_waiting(labelled, &waiters[0]);
    (void)snprintf(channel, sizeof channel, "redlock:to:%s", redlock_async_prefix(labelled));
    (void)snprintf(message, sizeof message, "0:%s", cli(0, "ZRANGE", LINE, "0", "0"));
    ck_assert_str_eq(message + 2 + REDLOCK_TOKEN_LEN, "|" LABEL);
    run_until(strcmp(cli(0, "PUBLISH", channel, message), "1") == 0);
    run_until(redlock_async_counters(labelled)->wakeups > 0);
    (void)release_and_win(held, &waiters[0]);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L2_two_labelled_clients_take_turns)
{
    start_world(3);
    struct redlock_async *clients[] = {client_with(LABEL), client_with(LONG_LABEL)};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(waiter_start(clients[i], &waiters[i], 1, 1, FOR_EVER, 0), 0);
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        run_until(waiters[0].order != 0 || waiters[1].order != 0);
        size_t i = waiters[0].order != 0 ? 0 : 1;
        ck_assert_int_eq(waiters[i].result, REDLOCK_OK);
        world_release_all(waiters[i].batch);
        ck_assert_int_eq(waiter_start(clients[i], &waiters[i], 1, 1, FOR_EVER, 0), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        redlock_wait_cancel(waiters[i].wait);
    }
    run_until(waiters_told(waiters, 2) == 2);
    close_others();
}
END_TEST

struct given_up {
    enum redlock_result result;
    char holder[REDLOCK_LABEL_LEN_MAX + 1];
    bool is_told;
};

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct given_up *g = ctx;
    (void)tries;
    ck_assert_ptr_nonnull(batch);
    g->result = result;
    (void)snprintf(g->holder, sizeof g->holder, "%s", redlock_batch_holder(batch, 0));
    g->is_told = true;
}

START_TEST(A15_who_waited_in_vain_is_told_the_holders_label)
{
    static const struct redlock_async_key key = {.bytes = JOB, .len = sizeof JOB - 1};
    struct given_up g = {0};
    start_world(3);
    struct redlock_batch *held = world_acquire(client_with(LABEL), 1, 1);
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .wants_holder_ttl = true};
    const struct redlock_wait_options options = {
        .deadline_us = clock_boot_us() + 200 * US_PER_MS * _i, .done = on_waited, .ctx = &g};
    struct redlock_wait *wait = NULL;
    ck_assert_int_eq(redlock_async_wait(world.lock, &request, &options, &wait, NULL), 0);
    run_until(g.is_told);
    ck_assert_int_eq(g.result, REDLOCK_HELD);
    ck_assert_str_eq(g.holder, LABEL);
    world_release_all(held);
    close_others();
}
END_TEST

START_TEST(L4_several_keys_are_won_together_under_a_label)
{
    start_world(3);
    struct redlock_batch *held = world_acquire(another_client(), 1, 1);
    struct redlock_async *labelled = client_with(LABEL);
    ck_assert_int_eq(waiter_start(labelled, &waiters[0], 1, 2, FOR_EVER, 0), 0);
    run_until(in_line(LINE) == 1);
    world_release_all(held);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    ck_assert_uint_ge(nodes_labelled(LABEL), 2);
    world_release_all(waiters[0].batch);
    world_flush(labelled);
    ck_assert_uint_eq(world_nodes_with(JOB) + world_nodes_with("claimd:job:2"), 0);
    close_others();
}
END_TEST

START_TEST(L5_votes_are_yielded_to_a_labelled_waiter)
{
    static const char *const values[] = {EARLY "|x", EARLY "|" LONG_LABEL, EARLY "|", EARLY};
    start_world(4);
    struct redlock_async *mine = client_with(_i % 2 == 0 ? LABEL : NULL);
    for (size_t i = 0; i < 4; i++) {
        (void)cli(i, "SET", "redlock:alive:AAAAAAAAAAAA", "1", "PX", "60000");
        (void)cli(i, "SET", "redlock:any", "1", "PX", "60000");
        if (i < 2) {
            (void)cli(i, "SET", JOB, values[_i], "PX", "60000");
        } else { /* in line, but not first: the offer comes from the yield */
            (void)cli(i, "ZADD", LINE, "9007199254740991", values[_i]);
        }
    }
    ck_assert_int_eq(waiter_start(mine, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    for (size_t i = 2; i < 4; i++) { /* an offer removes it from the line */
        run_until(strcmp(cli(i, "ZRANK", LINE, values[_i]), "") == 0);
    }
    ck_assert_int_eq(waiters[0].order, 0);
    close_others();
}
END_TEST

/* ---- values of other programs, some of them hostile ---- */

static const char *const foreign_values[] = {
    "",
    "|",
    "another-client-of-27-charac",
    "another-client-of-27-charac|",
    "another-client-of-27-charac|something",
    EARLY "+label",
    "AAAAAAAAAAA|~00000000012345",
    EARLY "|\x1b]0;title\x07\x01\x7f\xff",
    EARLY "|" LONG_LABEL "+",
    long_value,
};

START_TEST(L8_any_value_is_outwaited)
{
    memset(long_value, 'x', sizeof long_value - 1);
    memcpy(long_value, EARLY "|", REDLOCK_TOKEN_LEN + 1);
    start_world(3);
    struct redlock_async *labelled = client_with(LABEL);
    int64_t end_us = clock_boot_us() + 700 * US_PER_MS;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "SET", JOB, foreign_values[_i], "PX", "700"), "OK");
    }
    ck_assert_int_eq(waiter_start(labelled, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    ck_assert_int_ge(waiters[0].at_us, end_us);
    ck_assert_uint_ge(nodes_labelled(LABEL), 2);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L5_any_value_of_a_minority_is_outvoted_or_outwaited)
{
    memset(long_value, 'x', sizeof long_value - 1);
    memcpy(long_value, EARLY "|", REDLOCK_TOKEN_LEN + 1);
    start_world(4);
    struct redlock_async *labelled = client_with(LABEL);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(cli(i, "SET", JOB, foreign_values[_i], "PX", "700"), "OK");
    }
    ck_assert_int_eq(waiter_start(labelled, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L7_any_member_of_a_line_and_any_message_is_survived)
{
    memset(long_value, 'x', sizeof long_value - 1);
    memcpy(long_value, EARLY "|", REDLOCK_TOKEN_LEN + 1);
    start_world(3);
    struct redlock_async *holder = another_client();
    struct redlock_async *labelled = client_with(LABEL);
    struct redlock_batch *held = world_acquire(holder, 1, 1);
    start_waiting(labelled, &waiters[0]);
    char channel[64];
    char message[sizeof long_value + 2];
    (void)snprintf(channel, sizeof channel, "redlock:to:%s", redlock_async_prefix(labelled));
    for (size_t v = 0; v < ARRAY_COUNT(foreign_values); v++) {
        (void)snprintf(message, sizeof message, "0:%s", foreign_values[v]);
        for (size_t i = 0; i < 3; i++) {
            (void)cli(i, "ZADD", LINE, "1", foreign_values[v]);
            (void)cli(i, "PUBLISH", channel, message);
        }
    }
    (void)release_and_win(held, &waiters[0]);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, K3_the_value_of_a_key_is_the_token_and_the_label, 0, 3);
    tcase_add_loop_test(t, K3_without_a_label_the_value_is_the_token, 0, 2);
    tcase_add_test(t, K3_a_label_out_of_bounds_is_refused);
    tcase_add_test(t, E1_E6_a_labelled_lock_is_extended_and_healed_as_it_is);
    tcase_add_loop_test(t, R2_our_token_without_our_label_is_not_ours, 0, 2);
    tcase_add_test(t, a_labelled_lock_gets_a_fence);
    tcase_add_test(t, K1_a_successor_frees_labelled_keys_by_their_prefix);
    tcase_add_loop_test(t, L2_clients_hand_over_to_each_other_whatever_their_labels, 0, 2);
    tcase_add_test(t, L7_a_labelled_waiter_is_told_by_its_whole_value);
    tcase_add_test(t, L2_two_labelled_clients_take_turns);
    tcase_add_loop_test(t, A15_who_waited_in_vain_is_told_the_holders_label, 0, 2);
    tcase_add_test(t, L4_several_keys_are_won_together_under_a_label);
    tcase_add_loop_test(t, L5_votes_are_yielded_to_a_labelled_waiter, 0, 4);
    tcase_add_loop_test(t, L8_any_value_is_outwaited, 0, (int)ARRAY_COUNT(foreign_values));
    tcase_add_loop_test(t, L5_any_value_of_a_minority_is_outvoted_or_outwaited, 0,
                        (int)ARRAY_COUNT(foreign_values));
    tcase_add_test(t, L7_any_member_of_a_line_and_any_message_is_survived);
}

int main(void)
{
    return world_main("redlock_label", add_tests);
}
