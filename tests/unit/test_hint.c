/* SPDX-License-Identifier: Apache-2.0 */
#include "hints/sets.h"
#include "model/hint.h"
#include "support/suite.h"

#include <check.h>

START_TEST(a_score_orders_by_priority_first_then_by_due_time)
{
    ck_assert_int_lt(hint_score(0, INT64_C(9000000000000000)), hint_score(1, 0));
    ck_assert_int_lt(hint_score(4, 1000000), hint_score(4, 1001000));
    ck_assert_int_eq(hint_score(7, INT64_C(1700000000000000)) / HINT_PRIORITY_STEP, 7);
}
END_TEST

START_TEST(a_score_is_exact_in_a_double)
{
    int64_t score = hint_score(9, INT64_MAX);
    ck_assert_int_eq((int64_t)(double)score, score);
    ck_assert_int_eq(score / HINT_PRIORITY_STEP, 9);
}
END_TEST

START_TEST(a_score_out_of_range_is_clamped)
{
    ck_assert_int_eq(hint_score(-1, -1), 0);
    ck_assert_int_eq(hint_score(99, 0) / HINT_PRIORITY_STEP, 9);
}
END_TEST

START_TEST(H3_only_canonical_positive_decimals_are_ids)
{
    static const char *const junk[] = {"",   "0",   "-1",  "01", "+1",
                                       " 1", "1.0", "1e3", "x",  "9223372036854775808"};
    int64_t id = 0;
    for (size_t i = 0; i < ARRAY_COUNT(junk); i++) {
        ck_assert_int_eq(hint_id_parse(junk[i], strlen(junk[i]), &id, NULL), STATUS_INVALID);
    }
    ck_assert_int_eq(hint_id_parse("9223372036854775807", 19, &id, NULL), STATUS_OK);
    ck_assert_int_eq(id, INT64_MAX);
}
END_TEST

START_TEST(a_set_is_found_by_its_key)
{
    static const struct hints_set list[] = {{.queue = "default"},
                                            {.queue = "mail", .kind = "send"}};
    struct hints_sets *sets = NULL;
    ck_assert_int_eq(hints_sets_new("claimd", "me", list, 2, &sets, NULL), STATUS_OK);
    const struct hints_set *found = hints_sets_find(sets, "claimd:hints:mail:send", 22);
    ck_assert_str_eq(found->kind, "send");
    ck_assert_ptr_null(hints_sets_find(sets, "claimd:hints:mail", 17));
    hints_sets_drop(sets);
}
END_TEST

START_TEST(every_rotation_of_the_keys_is_a_slice)
{
    static const struct hints_set list[] = {{.queue = "a"}, {.queue = "b"}, {.queue = "c"}};
    struct hints_sets *sets = NULL;
    ck_assert_int_eq(hints_sets_new("claimd", "me", list, 3, &sets, NULL), STATUS_OK);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(sets->keys[i].bytes, sets->keys[3 + i].bytes);
    }
    hints_sets_drop(sets);
}
END_TEST

/* Tests arguments of the pop script: hints/sets.h. */
START_TEST(the_sets_of_a_queue_share_its_weight_and_a_queue_without_one_counts_as_1)
{
    static const struct hints_set list[] = {{.queue = "a", .weight = 100},
                                            {.queue = "a", .kind = "x", .weight = 100},
                                            {.queue = "b"},
                                            {.queue = "c", .weight = 7},
                                            {.queue = "c", .kind = "x", .weight = 7},
                                            {.queue = "c", .kind = "y", .weight = 7}};
    struct hints_sets *sets = NULL;
    ck_assert_int_eq(hints_sets_new("claimd", "me", list, 6, &sets, NULL), STATUS_OK);
    ck_assert_str_eq(buf_at(&sets->shares), "100:2,1:1,7:3");
    hints_sets_drop(sets);
}
END_TEST

START_TEST(without_any_weight_nothing_is_shared)
{
    static const struct hints_set list[] = {{.queue = "a"}, {.queue = "b"}};
    struct hints_sets *sets = NULL;
    ck_assert_int_eq(hints_sets_new("claimd", "me", list, 2, &sets, NULL), STATUS_OK);
    ck_assert_uint_eq(sets->shares.len, 0);
    hints_sets_drop(sets);
}
END_TEST

START_TEST(sets_lie_within_others_that_have_all_of_them)
{
    static const struct hints_set all[] = {
        {.queue = "a"}, {.queue = "a", .kind = "x"}, {.queue = "b"}, {.queue = "c"}};
    struct hints_sets *whole = NULL;
    ck_assert_int_eq(hints_sets_new("claimd", "me", all, 4, &whole, NULL), STATUS_OK);
    ck_assert_str_eq(whole->wake_key, "claimd:hints:!me");
    for (unsigned chosen = 0; chosen < 16; chosen++) {
        struct hints_set list[4];
        struct hints_sets *part = NULL;
        size_t count = 0;
        for (unsigned i = 0; i < 4; i++) {
            if ((chosen & 1U << i) != 0) {
                list[count++] = all[i];
            }
        }
        ck_assert_int_eq(hints_sets_new("claimd", "me", list, count, &part, NULL), STATUS_OK);
        ck_assert(hints_sets_are_within(part, whole));
        ck_assert_int_eq(hints_sets_are_within(whole, part), chosen == 15);
        hints_sets_drop(part);
    }
    hints_sets_drop(whole);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hint");
    TCase *t = tcase_create("hint");
    tcase_add_test(t, a_score_orders_by_priority_first_then_by_due_time);
    tcase_add_test(t, a_score_is_exact_in_a_double);
    tcase_add_test(t, a_score_out_of_range_is_clamped);
    tcase_add_test(t, H3_only_canonical_positive_decimals_are_ids);
    tcase_add_test(t, a_set_is_found_by_its_key);
    tcase_add_test(t, every_rotation_of_the_keys_is_a_slice);
    tcase_add_test(t, the_sets_of_a_queue_share_its_weight_and_a_queue_without_one_counts_as_1);
    tcase_add_test(t, without_any_weight_nothing_is_shared);
    tcase_add_test(t, sets_lie_within_others_that_have_all_of_them);
    suite_add_tcase(s, t);
    return suite_run(s);
}
