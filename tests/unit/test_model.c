/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hint.h"
#include "model/job.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define NONE (-1)

/* What each event leads to from each state, written down a second time on purpose: a change of the
 * table has to be meant. Columns: available, running, completed, cancelled, discarded. */
static const int expected[JOB_EVENT_COUNT][JOB_STATE_COUNT] = {
    [JOB_EVENT_CLAIM] = {JOB_RUNNING, NONE, NONE, NONE, NONE},
    [JOB_EVENT_COMPLETE] = {NONE, JOB_COMPLETED, NONE, NONE, NONE},
    [JOB_EVENT_RETRY] = {NONE, JOB_AVAILABLE, NONE, NONE, NONE},
    [JOB_EVENT_HAND_BACK] = {NONE, JOB_AVAILABLE, NONE, NONE, NONE},
    [JOB_EVENT_RESCUE] = {NONE, JOB_AVAILABLE, NONE, NONE, NONE},
    [JOB_EVENT_DISCARD] = {NONE, JOB_DISCARDED, NONE, NONE, NONE},
    [JOB_EVENT_LOSE] = {NONE, JOB_DISCARDED, NONE, NONE, NONE},
    [JOB_EVENT_CANCEL] = {JOB_CANCELLED, JOB_CANCELLED, NONE, NONE, NONE},
    [JOB_EVENT_REDRIVE] = {NONE, NONE, JOB_AVAILABLE, JOB_AVAILABLE, JOB_AVAILABLE},
};

START_TEST(every_pair_of_state_and_event_does_what_the_table_says)
{
    for (int event = 0; event < JOB_EVENT_COUNT; event++) {
        for (int from = 0; from < JOB_STATE_COUNT; from++) {
            enum job_state to = JOB_STATE_COUNT;
            enum status st = job_transition((enum job_state)from, (enum job_event)event, &to, NULL);
            if (expected[event][from] == NONE) {
                ck_assert_int_eq(st, STATUS_CONFLICT);
                ck_assert_int_eq(to, JOB_STATE_COUNT);
            } else {
                ck_assert_int_eq(st, STATUS_OK);
                ck_assert_int_eq((int)to, expected[event][from]);
            }
        }
    }
}
END_TEST

START_TEST(only_a_redrive_leads_out_of_a_final_state)
{
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
        enum job_state to = JOB_STATE_COUNT;
        bool is_left = false;
        for (int event = 0; event < JOB_EVENT_REDRIVE; event++) {
            is_left = is_left || job_transition((enum job_state)from, (enum job_event)event, &to,
                                                NULL) == STATUS_OK;
        }
        ck_assert_int_eq(is_left, !job_state_is_final((enum job_state)from));
    }
}
END_TEST

START_TEST(a_states_text_reads_back)
{
    for (int s = 0; s < JOB_STATE_COUNT; s++) {
        enum job_state back = JOB_STATE_COUNT;
        ck_assert_int_eq(job_state_parse(job_state_text((enum job_state)s), &back, NULL),
                         STATUS_OK);
        ck_assert_int_eq((int)back, s);
    }
    enum job_state none = JOB_STATE_COUNT;
    ck_assert_int_eq(job_state_parse("Running", &none, NULL), STATUS_NOT_FOUND);
    ck_assert_str_eq(job_state_text(JOB_STATE_COUNT), "no state");
    ck_assert_str_eq(job_event_text(JOB_EVENT_COUNT), "no event");
}
END_TEST

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
    const char *name;
    bool is_kind;
    bool is_queue;
} names[] = {
    {"a", true, true},     {"send_mail2", true, true},
    {A64, true, true},     {A64 "a", false, false},
    {"", false, false},    {"A", false, false},
    {"2a", false, false},  {"_a", false, false},
    {"a b", false, false}, {"eu.high-mem", false, true},
    {".a", false, false},  {"-a", false, false},
    {"a/b", false, false}, {"\xC3\xA4", false, false},
    {"a\n", false, false}, {"a:b", false, false},
};

START_TEST(names_follow_the_rule_of_interfaces)
{
    struct err err = {0};
    ck_assert_int_eq(job_kind_check(names[_i].name, &err) == STATUS_OK, names[_i].is_kind);
    ck_assert(names[_i].is_kind || strstr(err.msg, "must match ^[a-z][a-z0-9_]*$") != NULL);
    ck_assert_int_eq(job_queue_check(names[_i].name, NULL) == STATUS_OK, names[_i].is_queue);
}
END_TEST

static const struct {
    int attempt;
    int64_t seconds;
} backoffs[] = {{0, 15},   {1, 15},   {2, 30},    {3, 60},
                {8, 1920}, {9, 3600}, {10, 3600}, {1 << 30, 3600}};

START_TEST(backoff_doubles_up_to_an_hour_within_ten_percent)
{
    int64_t middle = backoffs[_i].seconds * 1000000;
    int64_t low = job_backoff_us(backoffs[_i].attempt, 0);
    int64_t high = job_backoff_us(backoffs[_i].attempt, 1000);
    ck_assert_int_eq(low, middle * 9 / 10);
    ck_assert_int_eq(high, middle * 11 / 10);
    ck_assert_int_eq(job_backoff_us(backoffs[_i].attempt, 500), middle);
}
END_TEST

START_TEST(priority_comes_before_time_in_a_score)
{
    const int64_t year_3000_us = INT64_C(32503680000) * 1000000;
    ck_assert_int_lt(hint_score(0, year_3000_us), hint_score(1, 0));
    ck_assert_int_lt(hint_score(4, 1000), hint_score(4, 2000));
    ck_assert_int_eq(hint_score(4, 1999), hint_score(4, 1000)); /* milliseconds */
    for (int p = 0; p <= JOB_PRIORITY_MAX; p++) {
        ck_assert_int_eq(hint_score(p, year_3000_us) / HINT_PRIORITY_STEP, p);
    }
}
END_TEST

START_TEST(a_score_is_exact_in_a_double)
{
    int64_t largest = hint_score(JOB_PRIORITY_MAX, INT64_MAX);
    double as_double = (double)largest;
    ck_assert_int_eq((int64_t)as_double, largest);
    ck_assert_int_eq((int64_t)(as_double - 1), largest - 1);
    ck_assert_int_eq(hint_score(99, INT64_MAX), largest); /* both parts are clamped */
    ck_assert_int_eq(hint_score(-1, -5), 0);
}
END_TEST

static const struct {
    const char *text;
    int64_t id;
} ids[] = {
    {"1", 1},   {"9223372036854775807", INT64_MAX}, {"0", 0},   {"-1", 0}, {"01", 0}, {"", 0},
    {"abc", 0}, {"9223372036854775808", 0},         {"1.0", 0}, {"1 ", 0},
};

START_TEST(a_member_that_is_no_id_is_junk)
{
    int64_t id = 0;
    enum status st = hint_id_parse(ids[_i].text, strlen(ids[_i].text), &id, NULL);
    ck_assert_int_eq(st, ids[_i].id > 0 ? STATUS_OK : STATUS_INVALID);
    ck_assert_int_eq(id, ids[_i].id);
}
END_TEST

START_TEST(keys_have_the_shape_of_interfaces)
{
    char key[HINT_KEY_MAX];
    ck_assert_uint_eq(hint_key(key, "claimd", "default", NULL), 20);
    ck_assert_str_eq(key, "claimd:hints:default");
    (void)hint_key(key, "claimd", "eu.mail", "send");
    ck_assert_str_eq(key, "claimd:hints:eu.mail:send");
    ck_assert_uint_eq(job_lock_key(key, "p", INT64_MAX), strlen("p:job:9223372036854775807"));
    ck_assert_str_eq(key, "p:job:9223372036854775807");
}
END_TEST

START_TEST(the_longest_names_fit_into_a_key)
{
    char key[HINT_KEY_MAX];
    char prefix[64];
    memset(prefix, 'p', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    size_t n = hint_key(key, prefix, A64, A64);
    ck_assert_uint_eq(n, strlen(key));
    ck_assert_uint_eq(n, 63 + strlen(":hints::") + 128);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model");
    TCase *t = tcase_create("model");
    tcase_add_test(t, every_pair_of_state_and_event_does_what_the_table_says);
    tcase_add_test(t, only_a_redrive_leads_out_of_a_final_state);
    tcase_add_test(t, a_states_text_reads_back);
    tcase_add_loop_test(t, names_follow_the_rule_of_interfaces, 0, (int)ARRAY_COUNT(names));
    tcase_add_loop_test(t, backoff_doubles_up_to_an_hour_within_ten_percent, 0,
                        (int)ARRAY_COUNT(backoffs));
    tcase_add_test(t, priority_comes_before_time_in_a_score);
    tcase_add_test(t, a_score_is_exact_in_a_double);
    tcase_add_loop_test(t, a_member_that_is_no_id_is_junk, 0, (int)ARRAY_COUNT(ids));
    tcase_add_test(t, keys_have_the_shape_of_interfaces);
    tcase_add_test(t, the_longest_names_fit_into_a_key);
    suite_add_tcase(s, t);
    return suite_run(s);
}
