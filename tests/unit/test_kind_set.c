/* SPDX-License-Identifier: Apache-2.0 */
#include "support/suite.h"
#include "worker/membership/kind_set.h"

#include <check.h>
#include <stdio.h>

static struct kind_set sets[4];

static void setup(void)
{
    memset(sets, 0, sizeof sets);
}

static void teardown(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(sets); i++) {
        kind_set_release(&sets[i]);
    }
}

/* Parses "a1 b2": kind a of version 1, … */
static const struct kind_set *given(size_t i, const char *text)
{
    struct worker_kind kinds[8];
    const struct worker_kind *list[8];
    char names[8][2] = {""};
    char versions[8][2] = {""};
    size_t n = 0;
    for (; *text != '\0'; text += text[2] == ' ' ? 3 : 2) {
        names[n][0] = text[0];
        versions[n][0] = text[1];
        kinds[n] = (struct worker_kind){
            .name = names[n],
            .plugin = "p",
            .version = versions[n],
            .settings = {.max_attempts = 3, .max_crashes = 2, .timeout_us = 1}};
        list[n] = &kinds[n];
        n++;
    }
    ck_assert_int_eq(kind_set_fill(&sets[i], list, n, NULL), STATUS_OK);
    return &sets[i];
}

static void assert_is(const struct kind_set *set, const char *text)
{
    char got[64] = "";
    size_t len = 0;
    for (size_t i = 0; i < set->count; i++) {
        ck_assert_str_eq(set->names[i], set->list[i].name);
        len += (size_t)snprintf(got + len, sizeof got - len, "%s%s%s", i > 0 ? " " : "",
                                set->names[i], set->list[i].version);
    }
    ck_assert_str_eq(got, text);
}

START_TEST(a_set_has_its_own_copy_of_every_text)
{
    assert_is(given(0, "a1 b2 c3"), "a1 b2 c3");
    assert_is(given(1, ""), "");
    ck_assert_ptr_nonnull(sets[1].block);
    ck_assert_ptr_null(kind_set_find(&sets[0], "d"));
    ck_assert_str_eq(kind_set_find(&sets[0], "b")->version, "2");
}
END_TEST

START_TEST(what_all_have_is_as_the_first_has_it)
{
    static const struct {
        const char *sets[3];
        const char *common;
    } cases[] = {
        {{"a1 b1 c1", "a1 b1 c1", "a1 b1 c1"}, "a1 b1 c1"},
        {{"a2 b1 c1", "c1 a1", "b1 a1 c1"}, "a2 c1"},
        {{"a1", "a1 b1", "a1 b1"}, "a1"},
        {{"a1 b1", "", "a1 b1"}, ""},
    };
    const struct kind_set *all[3];
    for (size_t i = 0; i < 3; i++) {
        all[i] = given(i, cases[_i].sets[i]);
    }
    ck_assert_int_eq(kind_set_common(&sets[3], all, 3, NULL), STATUS_OK);
    assert_is(&sets[3], cases[_i].common);
}
END_TEST

START_TEST(sets_are_compared_by_what_is_in_them)
{
    const struct kind_set *a = given(0, "a1 b1");
    const struct kind_set *b = given(1, "b1 a1");
    const struct kind_set *more = given(2, "b1 c1 a1");
    const struct kind_set *other = given(3, "a1 b2");
    ck_assert(kind_set_equal(a, b));
    ck_assert(!kind_set_equal(a, more) && !kind_set_equal(a, other));
    ck_assert(kind_set_covers(more, a) && !kind_set_covers(a, more));
    ck_assert(!kind_set_covers(other, a));
}
END_TEST

START_TEST(kinds_differ_in_each_of_their_numbers)
{
    const struct worker_kind kind = {
        .name = "a", .plugin = "p", .version = "1", .settings = {.max_attempts = 1}};
    struct worker_kind others[7] = {kind, kind, kind, kind, kind, kind, kind};
    others[0].plugin = "q";
    others[1].version = "2";
    others[2].settings.max_attempts = 2;
    others[3].settings.max_crashes = 1;
    others[4].settings.timeout_us = 1;
    others[5].settings.at_most_once = true;
    others[6].settings.keeps_log = true;
    ck_assert(kind_equal(&kind, &kind));
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        ck_assert(!kind_equal(&kind, &others[i]));
    }
}
END_TEST

/* A member that kind_settings_equal() forgets would never reach PostgreSQL when a plugin changes
 * it. So each byte is changed, also those of members that this test doesn't know. */
START_TEST(settings_differ_in_each_of_their_bytes)
{
    struct kind_settings a;
    memset(&a, 0, sizeof a);
    memset(a.backoff, 'x', sizeof a.backoff - 1);
    ck_assert(kind_settings_equal(&a, &a));
    for (size_t at = 0; at < sizeof a; at++) {
        size_t end_of_text = offsetof(struct kind_settings, backoff) + sizeof a.backoff - 1;
        if (at == offsetof(struct kind_settings, keeps_none) || at == end_of_text) {
            continue; /* plugins don't set it; the NUL stays */
        }
        struct kind_settings b = a;
        ((unsigned char *)&b)[at] ^= 1;
        ck_assert_msg(!kind_settings_equal(&a, &b), "byte %zu of %zu", at, sizeof a);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kind sets");
    TCase *c = tcase_create("kind sets");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_set_has_its_own_copy_of_every_text);
    tcase_add_loop_test(c, what_all_have_is_as_the_first_has_it, 0, 4);
    tcase_add_test(c, sets_are_compared_by_what_is_in_them);
    tcase_add_test(c, kinds_differ_in_each_of_their_numbers);
    tcase_add_test(c, settings_differ_in_each_of_their_bytes);
    suite_add_tcase(s, c);
    return suite_run(s);
}
