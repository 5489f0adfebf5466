/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues of the job store, without a server: finishes, claims, kinds, suspects. */
#include "base/clock.h"
#include "store/jobs/claim.h"
#include "store/jobs/finish.h"
#include "store/jobs/group_commit.h"
#include "store/jobs/kind_cache.h"
#include "store/jobs/suspects.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct finish *given(struct job_finish f)
{
    struct finish *made = NULL;
    f.id = f.id == 0 ? 1 : f.id;
    f.attempt = f.attempt == 0 ? 1 : f.attempt;
    f.worker_id = "00000000-0000-0000-0000-000000000001";
    ck_assert_int_eq(finish_new(&f, NULL, NULL, &made, NULL), STATUS_OK);
    return made;
}

START_TEST(a_finish_is_a_copy_with_clean_texts)
{
    char result[] = "[1]";
    char error[] = "a\0b\xff";
    struct finish *f = given((struct job_finish){.kind = FINISH_COMPLETED,
                                                 .result = result,
                                                 .result_len = 3,
                                                 .error = error,
                                                 .error_len = 4});
    memset(result, 'x', 3);
    memset(error, 'x', 4);
    ck_assert_str_eq(f->f.result, "[1]");
    ck_assert_str_eq(f->f.error, "a\xEF\xBF\xBD"
                                 "b\xEF\xBF\xBD");
    ck_assert_uint_eq(f->f.error_len, 8);
    ck_assert_ptr_null(f->f.log_tail);
    finish_free(f);
}
END_TEST

START_TEST(a_long_log_loses_its_head_and_a_long_error_its_tail)
{
    size_t len = JOB_LOG_TAIL_MAX + 100;
    char *text = malloc(len);
    ck_assert_ptr_nonnull(text);
    memset(text, 'h', 100);
    memset(text + 100, 't', len - 100);
    struct finish *f = given((struct job_finish){.kind = FINISH_RETRY,
                                                 .error = text,
                                                 .error_len = len,
                                                 .log_tail = text,
                                                 .log_tail_len = len});
    ck_assert_uint_eq(f->f.log_tail_len, JOB_LOG_TAIL_MAX);
    ck_assert_int_eq(f->f.log_tail[0], 't');
    ck_assert_uint_eq(f->f.error_len, JOB_ERROR_MAX);
    ck_assert_int_eq(f->f.error[0], 'h');
    finish_free(f);
    free(text);
}
END_TEST

START_TEST(a_log_that_grows_when_it_is_cleaned_loses_its_head_too)
{
    static char log[JOB_LOG_TAIL_MAX];
    memset(log, '\xff', sizeof log);
    log[sizeof log - 1] = 'z';
    struct finish *f = given(
        (struct job_finish){.kind = FINISH_RETRY, .log_tail = log, .log_tail_len = sizeof log});
    ck_assert_uint_le(f->f.log_tail_len, JOB_LOG_TAIL_MAX);
    ck_assert_uint_ge(f->f.log_tail_len, JOB_LOG_TAIL_MAX - 3);
    ck_assert_int_eq(f->f.log_tail[f->f.log_tail_len - 1], 'z');
    finish_free(f);
}
END_TEST

START_TEST(a_result_that_cannot_be_stored_is_refused_at_once)
{
    static char large[JOB_RESULT_MAX + 1];
    memset(large, '1', sizeof large);
    struct finish *too_long = given(
        (struct job_finish){.kind = FINISH_COMPLETED, .result = large, .result_len = sizeof large});
    ck_assert_int_eq(too_long->f.kind, FINISH_DISCARDED);
    ck_assert_str_eq(too_long->f.error, "result refused: longer than 64 KiB");
    struct finish *half =
        given((struct job_finish){.kind = FINISH_COMPLETED, .result = "\"\xc3\"", .result_len = 3});
    ck_assert_int_eq(half->f.kind, FINISH_DISCARDED);
    ck_assert_str_eq(half->f.outcome, "failed");
    ck_assert(half->is_refused);
    finish_free(too_long);
    finish_free(half);
}
END_TEST

START_TEST(a_delay_is_brought_into_its_range)
{
    static const int64_t wanted[][2] = {{INT64_MIN, 0},
                                        {-1, 0},
                                        {5, 5},
                                        {JOB_DELAY_US_MAX + 1, JOB_DELAY_US_MAX},
                                        {INT64_MAX, JOB_DELAY_US_MAX}};
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        struct finish *f =
            given((struct job_finish){.kind = FINISH_RETRY, .delay_us = wanted[i][0]});
        ck_assert_int_eq(f->f.delay_us, wanted[i][1]);
        finish_free(f);
    }
}
END_TEST

START_TEST(a_refused_failure_keeps_its_outcome_and_gives_up_its_log)
{
    struct finish *f = given((struct job_finish){
        .kind = FINISH_RETRY, .outcome = "crashed", .log_tail = "log", .log_tail_len = 3});
    ck_assert_int_eq(finish_refuse(f, "why", NULL), STATUS_OK);
    ck_assert_str_eq(f->f.outcome, "crashed");
    ck_assert_int_eq(f->f.kind, FINISH_RETRY);
    ck_assert_int_eq(f->f.delay_us, job_backoff_us(1, 500));
    ck_assert_int_eq(finish_refuse(f, "why", NULL), STATUS_OK);
    ck_assert_ptr_null(f->f.log_tail);
    ck_assert_int_eq(finish_refuse(f, "why", NULL), STATUS_NOT_FOUND);
    finish_free(f);
}
END_TEST

START_TEST(finishes_leave_in_the_order_of_arrival_and_may_come_back_first)
{
    struct finish_queue q = {.first = NULL};
    for (int64_t id = 1; id <= 3; id++) {
        finish_queue_push(&q, given((struct job_finish){.id = id}));
    }
    struct finish *first = finish_queue_pop(&q);
    ck_assert_int_eq(first->f.id, 1);
    finish_queue_push_front(&q, first);
    ck_assert_uint_eq(q.count, 3);
    ck_assert_int_eq(q.first->f.id, 1);
    finish_queue_release(&q);
    ck_assert_ptr_null(finish_queue_pop(&q));
    struct finish *only = given((struct job_finish){.id = 9});
    finish_queue_push_front(&q, only);
    ck_assert_ptr_eq(q.last, only);
    finish_queue_release(&q);
}
END_TEST

static void ignore(void *ctx, const struct claimed_job *jobs, size_t count,
                   const struct refused_job *refused, size_t refused_count)
{
    (void)jobs;
    (void)refused;
    size_t *counts = ctx;
    counts[0] += count;
    counts[1] += refused_count;
}

static struct claim *asked(const int64_t *ids, size_t count, size_t *counts)
{
    static const char *const kinds[] = {"noop", "mail"};
    const struct claim_request r = {.ids = ids,
                                    .count = count,
                                    .kinds = kinds,
                                    .kind_count = 2,
                                    .ahead_from = count,
                                    .done = ignore,
                                    .ctx = counts};
    struct claim *c = NULL;
    ck_assert_int_eq(claim_new(&r, &c, NULL), STATUS_OK);
    return c;
}

START_TEST(every_id_of_a_claim_is_answered_once)
{
    const int64_t ids[] = {7, 5, 6};
    size_t counts[2] = {0, 0};
    struct claim *c = asked(ids, 3, counts);
    claim_refuse(c, 1, CLAIM_GONE, NULL, 0);
    ck_assert(!claim_is_settled(c));
    claim_refuse_rest(c, CLAIM_NOT_TRIED);
    ck_assert(claim_is_settled(c));
    ck_assert_int_eq(c->refused[0].id, 5);
    ck_assert_int_eq(c->refused[1].why, CLAIM_NOT_TRIED);
    claim_answer(c);
    ck_assert_uint_eq(counts[0], 0);
    ck_assert_uint_eq(counts[1], 3);
}
END_TEST

START_TEST(an_id_in_two_claims_belongs_to_one_place_at_a_time)
{
    const int64_t ids[] = {3, 1};
    size_t counts[2] = {0, 0};
    struct claim *a = asked(ids, 2, counts);
    struct claim *b = asked(ids, 1, counts);
    struct claim_place places[] = {{3, a, 0}, {1, a, 1}, {3, b, 0}};
    claim_places_sort(places, 3);
    const struct claim_place *first = claim_places_find(places, 3, 3);
    ck_assert_ptr_nonnull(first);
    claim_refuse(first->claim, first->n, CLAIM_GONE, NULL, 0);
    const struct claim_place *second = claim_places_find(places, 3, 3);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_ne(second->claim, first->claim);
    claim_refuse(second->claim, second->n, CLAIM_GONE, NULL, 0);
    ck_assert_ptr_null(claim_places_find(places, 3, 3));
    ck_assert_ptr_null(claim_places_find(places, 3, 2));
    claim_free(a);
    claim_free(b);
}
END_TEST

START_TEST(claims_share_a_segment_only_with_the_same_kinds)
{
    static const char *const one[] = {"noop"};
    static const char *const bad[] = {"No Kind"};
    const int64_t ids[] = {1};
    size_t counts[2] = {0, 0};
    struct claim *a = asked(ids, 1, counts);
    struct claim *b = asked(ids, 1, counts);
    struct claim *other = NULL;
    struct claim_request r = {
        .ids = ids, .count = 1, .kinds = one, .kind_count = 1, .done = ignore, .ctx = counts};
    ck_assert_int_eq(claim_new(&r, &other, NULL), STATUS_OK);
    ck_assert(claim_same_kinds(a, b));
    ck_assert(!claim_same_kinds(a, other));
    r.kinds = bad;
    struct claim *none = NULL;
    ck_assert_int_eq(claim_new(&r, &none, NULL), STATUS_INVALID);
    claim_free(a);
    claim_free(b);
    claim_free(other);
}
END_TEST

START_TEST(kinds_are_unknown_until_they_were_read_and_sorted)
{
    static const char *const names[] = {"mail", "noop", "alpha", "noop"};
    struct kind_cache c = {.kinds = NULL};
    ck_assert_int_eq(kind_cache_want(&c, names, 4, NULL), STATUS_OK);
    ck_assert_uint_eq(c.count, 3);
    ck_assert(!kind_cache_knows(&c, names, 4));
    const char *asked_for[KIND_CACHE_MAX];
    ck_assert_uint_eq(kind_cache_ask(&c, asked_for), 3);
    ck_assert_str_eq(asked_for[0], "alpha");
    ck_assert_str_eq(asked_for[2], "noop");
    kind_cache_release(&c);
}
END_TEST

START_TEST(the_number_of_kinds_is_bounded)
{
    struct kind_cache c = {.kinds = NULL};
    enum status st = STATUS_OK;
    for (int i = 0; i <= KIND_CACHE_MAX && st == STATUS_OK; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "kind_%d", i);
        const char *const names[] = {name};
        st = kind_cache_want(&c, names, 1, NULL);
    }
    ck_assert_int_eq(st, STATUS_LIMIT);
    ck_assert_uint_eq(c.count, KIND_CACHE_MAX);
    kind_cache_release(&c);
}
END_TEST

/* ---- suspects: which finish caused the refusal of a segment? ---- */

struct trial {
    struct suspects suspects;
    struct finish_queue waiting;
    struct segment segment;
};

/* Sends what the suspects allow, and is refused; returns whether others may continue at once. */
static bool refused(struct trial *t, enum status st, int64_t now_us)
{
    const struct err why = {.status = st, .msg = "no"};
    segment_take_finishes(&t->segment, &t->waiting, t->suspects.finish_max);
    bool goes_on = suspects_blame(&t->suspects, &t->segment, &why, &t->waiting, now_us);
    segment_return_finishes(&t->segment, &t->waiting, false);
    return goes_on;
}

static struct trial *trial_of(int64_t finishes)
{
    struct trial *t = calloc(1, sizeof *t);
    ck_assert_ptr_nonnull(t);
    suspects_init(&t->suspects);
    for (int64_t id = 1; id <= finishes; id++) {
        finish_queue_push(&t->waiting, given((struct job_finish){.id = id, .result = "1"}));
    }
    return t;
}

static void trial_free(struct trial *t)
{
    suspects_release(&t->suspects);
    finish_queue_release(&t->waiting);
    segment_release(&t->segment);
    free(t);
}

START_TEST(bad_data_are_found_by_halving_and_condemned_at_once)
{
    struct trial *t = trial_of(4);
    ck_assert(refused(t, STATUS_INVALID, 0));
    ck_assert_uint_eq(t->suspects.finish_max, 2);
    ck_assert(refused(t, STATUS_INVALID, 0));
    ck_assert_uint_eq(t->suspects.finish_max, 1);
    ck_assert(refused(t, STATUS_INVALID, 0));
    ck_assert(!suspects_is_searching(&t->suspects));
    ck_assert(t->waiting.first->is_refused);
    ck_assert_int_eq(t->waiting.first->f.kind, FINISH_DISCARDED);
    ck_assert_uint_eq(t->waiting.count, 4);
    segment_take_finishes(&t->segment, &t->waiting, t->suspects.finish_max);
    ck_assert_uint_eq(t->segment.finish_count, 1); /* it is sent alone */
    trial_free(t);
}
END_TEST

START_TEST(the_servers_trouble_condemns_nobody)
{
    struct trial *t = trial_of(4);
    ck_assert(!refused(t, STATUS_UNAVAILABLE, 0));
    ck_assert(!suspects_is_searching(&t->suspects));
    ck_assert_uint_eq(t->waiting.count, 4);
    trial_free(t);
}
END_TEST

START_TEST(what_may_be_the_servers_trouble_is_set_aside_until_others_pass_three_times)
{
    struct trial *t = trial_of(1);
    for (int refusals = 1; refusals <= 2; refusals++) {
        ck_assert_int_eq(refused(t, STATUS_INTERNAL, 0), refusals > 1);
        ck_assert_uint_eq(t->suspects.aside.count, 1);
        suspects_retry(&t->suspects, &t->waiting, t->suspects.aside_until_us - 1);
        ck_assert_uint_eq(t->waiting.count, 0);
        suspects_retry(&t->suspects, &t->waiting, t->suspects.aside_until_us);
        ck_assert_uint_eq(t->waiting.count, 1);
        suspects_committed(&t->suspects);
    }
    ck_assert(refused(t, STATUS_INTERNAL, 0));
    ck_assert(t->waiting.first->is_refused);
    trial_free(t);
}
END_TEST

START_TEST(a_suspect_is_not_condemned_while_nothing_is_committed)
{
    struct trial *t = trial_of(1);
    for (int i = 0; i < 10; i++) {
        ck_assert(!refused(t, STATUS_INTERNAL, 0));
        suspects_retry(&t->suspects, &t->waiting, t->suspects.aside_until_us);
    }
    ck_assert(!t->waiting.first->is_refused);
    trial_free(t);
}
END_TEST

/* ---- group commit ---- */

#define GROUP_COMMIT_US (5 * US_PER_MS)

static void delay_finishes(struct group_commit *g, int count)
{
    for (int i = 0; i < count; i++) {
        finish_queue_push(&g->finishes, given((struct job_finish){.id = i + 1}));
    }
}

START_TEST(a_finish_that_nobody_waits_for_waits_5_ms_after_those_before_it_and_no_longer)
{
    struct group_commit g = {.sent_us = US_PER_S};
    struct finish_queue q = {.first = NULL};
    delay_finishes(&g, 1);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, US_PER_S + 100),
                     US_PER_S + GROUP_COMMIT_US);
    ck_assert_uint_eq(q.count, 0);
    delay_finishes(&g, 1);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, US_PER_S + GROUP_COMMIT_US), INT64_MAX);
    ck_assert_uint_eq(q.count, 2);
    ck_assert_uint_eq(g.finishes.count, 0);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, US_PER_S + GROUP_COMMIT_US), INT64_MAX);
    finish_queue_release(&q);
}
END_TEST

START_TEST(the_first_finish_after_a_pause_is_sent_at_once)
{
    struct group_commit g = {.sent_us = US_PER_S};
    struct finish_queue q = {.first = NULL};
    delay_finishes(&g, 1);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, US_PER_S + GROUP_COMMIT_US + 1),
                     INT64_MAX);
    ck_assert_uint_eq(q.count, 1);
    finish_queue_release(&q);
}
END_TEST

START_TEST(finishes_that_are_many_or_go_with_others_anyway_do_not_wait)
{
    struct group_commit g = {.sent_us = US_PER_S};
    struct finish_queue q = {.first = NULL};
    delay_finishes(&g, 31);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, US_PER_S), US_PER_S + GROUP_COMMIT_US);
    delay_finishes(&g, 1);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, US_PER_S), INT64_MAX);
    ck_assert_uint_eq(q.count, 32);
    delay_finishes(&g, 1);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, US_PER_S), INT64_MAX);
    ck_assert_uint_eq(q.count, 33);
    finish_queue_release(&q);
}
END_TEST

START_TEST(feat_B30_finishes_go_along_with_a_claim_that_no_runner_waits_for)
{
    struct group_commit g = {.sent_us = US_PER_S};
    struct finish_queue q = {.first = NULL};
    delay_finishes(&g, 2);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, true, US_PER_S + 1), INT64_MAX);
    ck_assert_uint_eq(q.count, 2);
    finish_queue_release(&q);
    delay_finishes(&g, 1); /* waits for a while for the next claim, but no longer */
    int64_t due_us = group_commit_pass_on(&g, &q, false, US_PER_S + 2);
    ck_assert_int_eq(due_us, US_PER_S + 1 + 12 * US_PER_MS);
    ck_assert_int_eq(group_commit_pass_on(&g, &q, false, due_us), INT64_MAX);
    ck_assert_uint_eq(q.count, 1);
    finish_queue_release(&q);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store");
    TCase *tests = tcase_create("waiting");
    tcase_add_test(tests, a_finish_is_a_copy_with_clean_texts);
    tcase_add_test(tests, a_log_that_grows_when_it_is_cleaned_loses_its_head_too);
    tcase_add_test(tests, a_long_log_loses_its_head_and_a_long_error_its_tail);
    tcase_add_test(tests, a_result_that_cannot_be_stored_is_refused_at_once);
    tcase_add_test(tests, a_delay_is_brought_into_its_range);
    tcase_add_test(tests, a_refused_failure_keeps_its_outcome_and_gives_up_its_log);
    tcase_add_test(tests, finishes_leave_in_the_order_of_arrival_and_may_come_back_first);
    tcase_add_test(tests, every_id_of_a_claim_is_answered_once);
    tcase_add_test(tests, an_id_in_two_claims_belongs_to_one_place_at_a_time);
    tcase_add_test(tests, claims_share_a_segment_only_with_the_same_kinds);
    tcase_add_test(tests, kinds_are_unknown_until_they_were_read_and_sorted);
    tcase_add_test(tests, the_number_of_kinds_is_bounded);
    tcase_add_test(tests, bad_data_are_found_by_halving_and_condemned_at_once);
    tcase_add_test(tests, the_servers_trouble_condemns_nobody);
    tcase_add_test(tests,
                   what_may_be_the_servers_trouble_is_set_aside_until_others_pass_three_times);
    tcase_add_test(tests, a_suspect_is_not_condemned_while_nothing_is_committed);
    tcase_add_test(tests,
                   a_finish_that_nobody_waits_for_waits_5_ms_after_those_before_it_and_no_longer);
    tcase_add_test(tests, the_first_finish_after_a_pause_is_sent_at_once);
    tcase_add_test(tests, feat_B30_finishes_go_along_with_a_claim_that_no_runner_waits_for);
    tcase_add_test(tests, finishes_that_are_many_or_go_with_others_anyway_do_not_wait);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
