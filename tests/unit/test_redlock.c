/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "redlock/rules/lease.h"
#include "redlock/rules/line_rules.h"
#include "redlock/rules/token.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define NODES 5
#define QUORUM 3
#define COMBINATIONS 243 /* 3^5 */
#define TTL_US (10 * US_PER_S)
#define DRIFT_US (102 * US_PER_MS)

static const struct lease_terms terms = {.ttl_us = TTL_US, .drift_us = DRIFT_US};

/* Returns the i-th of all sequences of answers. */
static void answers_of(int combination, enum vote *answers)
{
    for (int i = 0; i < NODES; i++) {
        answers[i] = (enum vote)(combination % 3);
        combination /= 3;
    }
}

static int count_of(const enum vote *answers, int len, enum vote what)
{
    int count = 0;
    for (int i = 0; i < len; i++) {
        count += answers[i] == what;
    }
    return count;
}

/* Determines whether some sequence of the missing answers wins, and whether some loses, by trying
 * all of them. */
static void futures(const enum vote *answers, int len, bool *ret_may_win, bool *ret_may_lose)
{
    *ret_may_win = false;
    *ret_may_lose = false;
    for (int c = 0; c < COMBINATIONS; c++) {
        enum vote all[NODES];
        answers_of(c, all);
        memcpy(all, answers, (size_t)len * sizeof all[0]);
        bool is_won = count_of(all, NODES, VOTE_OK) >= QUORUM;
        *ret_may_win = *ret_may_win || is_won;
        *ret_may_lose = *ret_may_lose || !is_won;
    }
}

static enum redlock_result expected_verdict(const enum vote *answers, int len, bool is_late)
{
    if (count_of(answers, len, VOTE_OK) >= 3) {
        return is_late ? REDLOCK_LOST : REDLOCK_OK;
    }
    if (count_of(answers, len, VOTE_REFUSED) >= 3) {
        return REDLOCK_HELD;
    }
    return count_of(answers, len, VOTE_ERROR) >= 3 ? REDLOCK_NO_QUORUM : REDLOCK_SPLIT;
}

static void check_combination(int combination, bool is_late)
{
    enum vote answers[NODES];
    struct tally tally = {.nodes = NODES};
    int64_t validity_us = is_late ? TTL_US / 2 - 1 : TTL_US / 2;
    answers_of(combination, answers);
    for (int len = 0; len <= NODES; len++) {
        enum redlock_result verdict = REDLOCK_INVALID;
        bool may_win = false;
        bool may_lose = false;
        bool is_decided = tally_verdict(&tally, validity_us, TTL_US / 2, &verdict);
        futures(answers, len, &may_win, &may_lose);
        ck_assert_msg(is_decided == (may_win != may_lose), "combination %d after %d", combination,
                      len);
        if (is_decided) {
            ck_assert_int_eq(verdict, expected_verdict(answers, len, is_late));
        }
        if (len < NODES) {
            tally_add(&tally, answers[len]);
        }
    }
}

START_TEST(A7_A8_A9_A15_every_combination_of_answers_has_its_verdict)
{
    check_combination(_i, false);
}
END_TEST

START_TEST(A7_every_combination_that_comes_too_late_is_never_won)
{
    check_combination(_i, true);
}
END_TEST

START_TEST(A7_no_validity_is_never_a_success)
{
    const struct tally tally = {.nodes = NODES, .ok = NODES};
    enum redlock_result verdict = REDLOCK_OK;
    ck_assert(tally_verdict(&tally, 0, 0, &verdict));
    ck_assert_int_eq(verdict, REDLOCK_LOST);
    ck_assert(tally_verdict(&tally, 1, 0, &verdict));
    ck_assert_int_eq(verdict, REDLOCK_OK);
}
END_TEST

START_TEST(A8_errors_of_a_minority_do_not_fail_a_won_key)
{
    const struct tally tally = {.nodes = NODES, .ok = 3, .error = 2};
    enum redlock_result verdict = REDLOCK_INVALID;
    ck_assert(tally_verdict(&tally, TTL_US, TTL_US / 2, &verdict));
    ck_assert_int_eq(verdict, REDLOCK_OK);
}
END_TEST

START_TEST(A9_every_number_of_nodes_ends_in_a_verdict)
{
    uint8_t n = (uint8_t)_i;
    for (uint8_t ok = 0; ok <= n; ok++) {
        for (uint8_t refused = 0; refused <= n - ok; refused++) {
            const struct tally tally = {
                .nodes = n, .ok = ok, .refused = refused, .error = (uint8_t)(n - ok - refused)};
            enum redlock_result verdict = REDLOCK_INVALID;
            ck_assert(tally_verdict(&tally, TTL_US, TTL_US / 2, &verdict));
            ck_assert((verdict == REDLOCK_OK) == (2 * ok > n));
        }
    }
}
END_TEST

START_TEST(E2_E3_E5_every_combination_of_a_round_of_extending)
{
    enum vote answers[NODES]; /* OK = confirmed, REFUSED = denied */
    struct extend_tally tally = {.nodes = NODES};
    answers_of(_i, answers);
    for (int len = 0; len <= NODES; len++) {
        enum extend_verdict want = len == NODES ? EXTEND_UNSURE : EXTEND_OPEN;
        if (count_of(answers, len, VOTE_OK) >= 3) {
            want = EXTEND_DONE;
        } else if (count_of(answers, len, VOTE_REFUSED) >= 3) {
            want = EXTEND_DENIED;
        }
        ck_assert_int_eq(extend_tally_verdict(&tally), want);
        if (len < NODES) {
            tally.confirmed = (uint8_t)(tally.confirmed + (answers[len] == VOTE_OK));
            tally.denied = (uint8_t)(tally.denied + (answers[len] == VOTE_REFUSED));
            tally.error = (uint8_t)(tally.error + (answers[len] == VOTE_ERROR));
        }
    }
}
END_TEST

START_TEST(A4_the_deadline_counts_from_before_the_first_byte)
{
    struct lease l = lease_start(&terms, 1000);
    ck_assert_int_eq(l.deadline_us, 1000 + TTL_US - DRIFT_US);
    ck_assert_int_eq(l.state, REDLOCK_STATE_HELD);
    ck_assert_int_eq(lease_drift_us(TTL_US, 10000), DRIFT_US);
    ck_assert_int_eq(lease_drift_us(1, 1), 1 + 2 * US_PER_MS);
}
END_TEST

START_TEST(E9_a_deadline_and_what_nodes_are_given_are_cut_to_the_longest_hold)
{
    struct lease_terms bound = terms;
    bound.end_us = 10 * US_PER_S + 300;
    int64_t far_us = bound.end_us - TTL_US;
    int64_t near_us = bound.end_us - TTL_US / 2;
    ck_assert_int_eq(lease_start(&bound, far_us).deadline_us, bound.end_us - DRIFT_US);
    ck_assert_int_eq(lease_ttl_us(&bound, far_us), TTL_US);
    ck_assert_int_eq(lease_start(&bound, near_us).deadline_us, bound.end_us);
    ck_assert_int_ge(lease_ttl_us(&bound, near_us), TTL_US / 2 + DRIFT_US);
    ck_assert_int_lt(lease_ttl_us(&bound, near_us), TTL_US / 2 + DRIFT_US + US_PER_MS);
    ck_assert_int_eq(lease_ttl_us(&bound, near_us) % US_PER_MS, 0);
    ck_assert_int_eq(lease_ttl_us(&bound, bound.end_us + TTL_US), US_PER_MS); /* never too short */
    ck_assert_int_eq(lease_ttl_us(&terms, near_us), TTL_US);
    struct lease l = lease_start(&bound, near_us);
    ck_assert(!lease_extend(&l, &bound, EXTEND_DONE, near_us + US_PER_S, near_us + US_PER_S));
    ck_assert_int_eq(l.deadline_us, bound.end_us);
}
END_TEST

START_TEST(E4_a_confirmed_round_installs_a_new_deadline)
{
    struct lease l = lease_start(&terms, 0);
    ck_assert(!lease_extend(&l, &terms, EXTEND_DONE, 3 * US_PER_S, 3 * US_PER_S + 1));
    ck_assert_int_eq(l.deadline_us, 3 * US_PER_S + TTL_US - DRIFT_US);
}
END_TEST

START_TEST(E4_a_confirmation_after_the_old_deadline_is_lost)
{
    struct lease l = lease_start(&terms, 0);
    int64_t deadline_us = l.deadline_us;
    ck_assert(lease_extend(&l, &terms, EXTEND_DONE, 9 * US_PER_S, deadline_us));
    ck_assert_int_eq(l.state, REDLOCK_STATE_LOST);
    ck_assert_int_eq(l.deadline_us, deadline_us);
}
END_TEST

START_TEST(E4_the_deadline_never_moves_backwards)
{
    struct lease l = lease_start(&terms, 5 * US_PER_S);
    int64_t deadline_us = l.deadline_us;
    ck_assert(!lease_extend(&l, &terms, EXTEND_DONE, 4 * US_PER_S, 6 * US_PER_S));
    ck_assert_int_eq(l.deadline_us, deadline_us);
}
END_TEST

START_TEST(E4_a_verdict_from_before_the_last_confirmed_round_says_nothing)
{
    struct lease l = lease_start(&terms, 0);
    ck_assert(!lease_extend(&l, &terms, EXTEND_DONE, 2 * US_PER_S, 2 * US_PER_S + 1));
    ck_assert(!lease_extend(&l, &terms, EXTEND_UNSURE, US_PER_S, 3 * US_PER_S));
    ck_assert(!lease_extend(&l, &terms, EXTEND_DENIED, US_PER_S, 3 * US_PER_S));
    ck_assert_int_eq(l.state, REDLOCK_STATE_HELD);
    ck_assert(lease_extend(&l, &terms, EXTEND_UNSURE, 1, l.deadline_us)); /* time ends the lease */
    ck_assert_int_eq(l.state, REDLOCK_STATE_LOST);
}
END_TEST

START_TEST(N2_a_lease_is_put_in_doubt_once)
{
    struct lease l = lease_start(&terms, 0);
    int64_t deadline_us = l.deadline_us;
    ck_assert(lease_doubt(&l));
    ck_assert(!lease_doubt(&l));
    ck_assert_int_eq(l.state, REDLOCK_STATE_SUSPECT);
    ck_assert_int_eq(l.deadline_us, deadline_us);
    ck_assert(lease_check(&l, deadline_us));
    ck_assert(!lease_doubt(&l)); /* E8 */
    ck_assert_int_eq(l.state, REDLOCK_STATE_LOST);
}
END_TEST

START_TEST(N2_a_vote_that_is_taken_back_is_an_error)
{
    struct tally tally = {.nodes = NODES, .ok = QUORUM};
    enum redlock_result verdict = REDLOCK_INVALID;
    tally_take_back(&tally);
    ck_assert(!tally_verdict(&tally, TTL_US, 0, &verdict));
    tally_add(&tally, VOTE_REFUSED);
    tally_add(&tally, VOTE_REFUSED);
    ck_assert(tally_verdict(&tally, TTL_US, 0, &verdict));
    ck_assert_int_eq(verdict, REDLOCK_SPLIT);
}
END_TEST

START_TEST(E5_an_inconclusive_round_keeps_the_deadline_and_is_suspect)
{
    struct lease l = lease_start(&terms, 0);
    int64_t deadline_us = l.deadline_us;
    ck_assert(lease_extend(&l, &terms, EXTEND_UNSURE, 3 * US_PER_S, 4 * US_PER_S));
    ck_assert_int_eq(l.state, REDLOCK_STATE_SUSPECT);
    ck_assert_int_eq(l.deadline_us, deadline_us);
    ck_assert(!lease_extend(&l, &terms, EXTEND_UNSURE, 4 * US_PER_S, 5 * US_PER_S));
    ck_assert(lease_extend(&l, &terms, EXTEND_DONE, 5 * US_PER_S, 6 * US_PER_S));
    ck_assert_int_eq(l.state, REDLOCK_STATE_HELD);
}
END_TEST

START_TEST(E3_a_denied_round_is_lost_before_the_deadline)
{
    struct lease l = lease_start(&terms, 0);
    ck_assert(lease_extend(&l, &terms, EXTEND_DENIED, 3 * US_PER_S, 3 * US_PER_S));
    ck_assert_int_eq(l.state, REDLOCK_STATE_LOST);
}
END_TEST

START_TEST(E8_lost_is_latched)
{
    struct lease l = lease_start(&terms, 0);
    ck_assert(lease_extend(&l, &terms, EXTEND_DENIED, 1, 2));
    ck_assert(!lease_extend(&l, &terms, EXTEND_DONE, 3, 4));
    ck_assert(!lease_check(&l, INT64_MAX));
    ck_assert_int_eq(l.state, REDLOCK_STATE_LOST);
}
END_TEST

START_TEST(E7_W4_validity_is_the_local_deadline)
{
    struct lease l = lease_start(&terms, 0);
    ck_assert(!lease_check(&l, l.deadline_us - 1));
    ck_assert(lease_check(&l, l.deadline_us));
    ck_assert(!lease_check(&l, l.deadline_us));
}
END_TEST

START_TEST(W1_renewals_come_at_a_third_of_the_ttl_with_jitter)
{
    struct rand rand;
    int64_t third_us = TTL_US / 3;
    int64_t least_us = INT64_MAX;
    int64_t most_us = 0;
    rand_seed(&rand, 7);
    for (int i = 0; i < 10000; i++) {
        int64_t first_us = lease_renewal_us(&terms, 0, true, &rand);
        ck_assert_int_le(first_us, third_us);
        ck_assert_int_ge(first_us, third_us - third_us / 10);
        int64_t later_us = lease_renewal_us(&terms, 0, false, &rand);
        least_us = later_us < least_us ? later_us : least_us;
        most_us = later_us > most_us ? later_us : most_us;
    }
    ck_assert_int_ge(least_us, third_us * 9 / 10 - 1);
    ck_assert_int_lt(least_us, third_us * 91 / 100);
    ck_assert_int_le(most_us, third_us * 11 / 10 + 1);
    ck_assert_int_gt(most_us, third_us * 109 / 100);
}
END_TEST

START_TEST(W1_two_retries_fit_before_the_deadline)
{
    struct rand rand;
    int64_t timeout_us = 100 * US_PER_MS;
    rand_seed(&rand, 7);
    for (int i = 0; i < 1000; i++) {
        int64_t at_us = TTL_US / 3 * 11 / 10 + timeout_us; /* the latest end of a first round */
        for (unsigned failures = 1; failures <= 2; failures++) {
            at_us = lease_retry_us(&terms, at_us, timeout_us, failures, &rand) + timeout_us;
        }
        ck_assert_int_lt(at_us, TTL_US - DRIFT_US);
    }
}
END_TEST

static const struct {
    int64_t ttl_us;
    int64_t timeout_us;
    bool allow_short;
    enum status want;
} bounds[] = {
    {10 * US_PER_S, 100 * US_PER_MS, false, STATUS_OK},
    {US_PER_S, 100 * US_PER_MS, false, STATUS_OK},
    {US_PER_S - US_PER_MS, 10 * US_PER_MS, false, STATUS_INVALID},
    {US_PER_S, 101 * US_PER_MS, false, STATUS_INVALID},
    {101 * US_PER_MS, 100 * US_PER_MS, true, STATUS_OK},
    {100 * US_PER_MS, 100 * US_PER_MS, true, STATUS_INVALID},
    {US_PER_S + 1, 10 * US_PER_MS, false, STATUS_INVALID},
    {0, 10 * US_PER_MS, false, STATUS_INVALID},
    {INT64_MAX, 10 * US_PER_MS, false, STATUS_INVALID},
    {US_PER_S, 0, false, STATUS_INVALID},
    {US_PER_S, INT64_MAX, false, STATUS_INVALID},
};

START_TEST(A16_the_bounds_of_the_ttl_are_enforced)
{
    struct err err = {0};
    enum status st =
        lease_check_terms(bounds[_i].ttl_us, bounds[_i].timeout_us, bounds[_i].allow_short, &err);
    ck_assert_msg(st == bounds[_i].want, "%s", err.msg);
}
END_TEST

START_TEST(K1_a_token_is_27_characters_of_base64url)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char prefix[REDLOCK_PREFIX_LEN + 1];
    char token[REDLOCK_TOKEN_LEN + 1];
    size_t seen[sizeof alphabet] = {0};
    for (int i = 0; i < 500; i++) {
        ck_assert_int_eq(token_draw_prefix(prefix, NULL), STATUS_OK);
        ck_assert_int_eq(token_draw(prefix, token, NULL), STATUS_OK);
        ck_assert_uint_eq(strlen(token), REDLOCK_TOKEN_LEN);
        ck_assert_uint_eq(strspn(token, alphabet), REDLOCK_TOKEN_LEN);
        ck_assert_mem_eq(token, prefix, REDLOCK_PREFIX_LEN);
        for (const char *p = token; *p != '\0'; p++) {
            seen[strchr(alphabet, *p) - alphabet]++;
        }
    }
    for (size_t i = 0; i < sizeof alphabet - 1; i++) {
        ck_assert_msg(seen[i] > 100, "'%c' came %zu times of 13500", alphabet[i], seen[i]);
    }
}
END_TEST

START_TEST(K2_each_batch_draws_a_token_of_its_own)
{
    char prefix[REDLOCK_PREFIX_LEN + 1];
    char tokens[2][REDLOCK_TOKEN_LEN + 1];
    ck_assert_int_eq(token_draw_prefix(prefix, NULL), STATUS_OK);
    ck_assert_int_eq(token_draw(prefix, tokens[0], NULL), STATUS_OK);
    ck_assert_int_eq(token_draw(prefix, tokens[1], NULL), STATUS_OK);
    ck_assert_str_ne(tokens[0], tokens[1]);
}
END_TEST

START_TEST(K3_a_value_is_the_token_or_the_token_and_the_label)
{
    static const char longest[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    char prefix[REDLOCK_PREFIX_LEN + 1];
    char value[VALUE_SIZE];
    ck_assert_int_eq(token_draw_prefix(prefix, NULL), STATUS_OK);
    ck_assert_int_eq(value_draw(prefix, "", value, NULL), STATUS_OK);
    ck_assert_uint_eq(strlen(value), REDLOCK_TOKEN_LEN);
    ck_assert_int_eq(value_draw(prefix, longest, value, NULL), STATUS_OK);
    ck_assert_uint_eq(strlen(value), REDLOCK_VALUE_LEN_MAX);
    ck_assert_mem_eq(value, prefix, REDLOCK_PREFIX_LEN);
    ck_assert_int_eq(value[REDLOCK_TOKEN_LEN], '|');
    ck_assert_str_eq(value + REDLOCK_TOKEN_LEN + 1, longest);
}
END_TEST

static const struct {
    size_t len; /* length of a value with a score */
    char behind;
    bool is_waiter;
} forms[] = {{26, '\0', false}, {27, '\0', true}, {28, '|', true},    {29, '|', true},
             {92, '|', true},   {93, '|', false}, {5028, '|', false}, {28, ':', false},
             {92, 'x', false},  {28, '\0', false}};

START_TEST(L1_a_score_is_read_of_a_token_with_or_without_a_label)
{
    static char value[5028 + 1];
    memset(value, 'x', sizeof value);
    line_write_score(value, 1234567);
    value[REDLOCK_TOKEN_LEN] = forms[_i].behind;
    ck_assert_int_eq(line_read_score(value, forms[_i].len), forms[_i].is_waiter ? 1234567 : -1);
    value[REDLOCK_PREFIX_LEN] = '|'; /* not the mark of a score */
    ck_assert_int_eq(line_read_score(value, forms[_i].len), -1);
}
END_TEST

static void see_waiter(struct line_view *view, char client, int64_t score, const char *label)
{
    *view = (struct line_view){.owner = LINE_WAITER};
    memset(view->value, client, REDLOCK_TOKEN_LEN);
    line_write_score(view->value, score);
    (void)snprintf(view->value + REDLOCK_TOKEN_LEN, VALUE_SIZE - REDLOCK_TOKEN_LEN, "%s", label);
    view->len = (uint8_t)strlen(view->value);
}

START_TEST(L5_votes_are_given_to_a_whole_value_in_the_order_of_tokens)
{
    struct line_view views[NODES] = {{.owner = LINE_MINE}, {.owner = LINE_MINE}};
    struct line_view mine;
    see_waiter(&mine, 'm', 5, "|a");
    see_waiter(&views[2], 'k', 4, "|zzz");
    see_waiter(&views[3], 'l', 4, "");
    see_waiter(&views[4], 'n', 6, "|a");
    struct line_decision d = line_decide(views, NODES, mine.value, false);
    ck_assert_int_eq(d.step, LINE_YIELD);
    ck_assert_ptr_eq(d.to, &views[2]); /* independent of the labels */
    see_waiter(&views[2], 'n', 7, "|b");
    see_waiter(&views[3], 'n', 7, "|b");
    see_waiter(&views[4], 'n', 7, "|b");
    d = line_decide(views, NODES, mine.value, false);
    ck_assert_int_eq(d.step, LINE_YIELD); /* to a quorum */
    ck_assert_str_eq(d.to->value, views[2].value);
    see_waiter(&views[4], 'n', 7, "|bc"); /* another value belongs to another client */
    d = line_decide(views, NODES, mine.value, false);
    ck_assert_int_eq(d.step, LINE_LOOK);
}
END_TEST

static void add_tally_tests(Suite *s)
{
    TCase *t = tcase_create("tally");
    tcase_add_loop_test(t, A7_A8_A9_A15_every_combination_of_answers_has_its_verdict, 0,
                        COMBINATIONS);
    tcase_add_loop_test(t, A7_every_combination_that_comes_too_late_is_never_won, 0, COMBINATIONS);
    tcase_add_test(t, A7_no_validity_is_never_a_success);
    tcase_add_test(t, A8_errors_of_a_minority_do_not_fail_a_won_key);
    tcase_add_loop_test(t, A9_every_number_of_nodes_ends_in_a_verdict, 1, REDLOCK_NODES_MAX + 1);
    tcase_add_loop_test(t, E2_E3_E5_every_combination_of_a_round_of_extending, 0, COMBINATIONS);
    suite_add_tcase(s, t);
}

int main(void)
{
    Suite *s = suite_create("redlock");
    TCase *t = tcase_create("lease and token");
    add_tally_tests(s);
    tcase_add_test(t, A4_the_deadline_counts_from_before_the_first_byte);
    tcase_add_test(t, E4_a_confirmed_round_installs_a_new_deadline);
    tcase_add_test(t, E4_a_confirmation_after_the_old_deadline_is_lost);
    tcase_add_test(t, E4_the_deadline_never_moves_backwards);
    tcase_add_test(t, E4_a_verdict_from_before_the_last_confirmed_round_says_nothing);
    tcase_add_test(t, N2_a_lease_is_put_in_doubt_once);
    tcase_add_test(t, N2_a_vote_that_is_taken_back_is_an_error);
    tcase_add_test(t, E5_an_inconclusive_round_keeps_the_deadline_and_is_suspect);
    tcase_add_test(t, E3_a_denied_round_is_lost_before_the_deadline);
    tcase_add_test(t, E8_lost_is_latched);
    tcase_add_test(t, E7_W4_validity_is_the_local_deadline);
    tcase_add_test(t, E9_a_deadline_and_what_nodes_are_given_are_cut_to_the_longest_hold);
    tcase_add_test(t, W1_renewals_come_at_a_third_of_the_ttl_with_jitter);
    tcase_add_test(t, W1_two_retries_fit_before_the_deadline);
    tcase_add_loop_test(t, A16_the_bounds_of_the_ttl_are_enforced, 0, (int)ARRAY_COUNT(bounds));
    tcase_add_test(t, K1_a_token_is_27_characters_of_base64url);
    tcase_add_test(t, K2_each_batch_draws_a_token_of_its_own);
    tcase_add_test(t, K3_a_value_is_the_token_or_the_token_and_the_label);
    tcase_add_loop_test(t, L1_a_score_is_read_of_a_token_with_or_without_a_label, 0,
                        (int)ARRAY_COUNT(forms));
    tcase_add_test(t, L5_votes_are_given_to_a_whole_value_in_the_order_of_tokens);
    suite_add_tcase(s, t);
    return suite_run(s);
}
