/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hint.h"
#include "model/job.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

START_TEST(inv_S5_no_way_leads_out_of_a_final_state)
{
    for (size_t i = 0; i < job_edge_count; i++) {
        ck_assert(!job_state_is_final(job_edges[i].from));
    }
}
END_TEST

static FILE *open_guarantees(void)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/docs/guarantees.md", getenv("CLAIMD_SOURCE_DIR"));
    FILE *doc = fopen(path, "re");
    ck_assert_msg(doc != NULL, "%s", path);
    return doc;
}

/* The lines "| from | event | to |" of the document. */
START_TEST(inv_S5_the_document_has_the_same_ways_between_states)
{
    char line[512];
    size_t i = 0;
    bool is_inside = false;
    FILE *doc = open_guarantees();
    while (fgets(line, sizeof line, doc) != NULL) {
        char expected[512] = "";
        if (is_inside && line[0] == '|' && i < job_edge_count) {
            const struct job_edge *e = &job_edges[i];
            (void)snprintf(expected, sizeof expected, "| %s | %s | %s |", job_state_text(e->from),
                           e->event, job_state_text(e->to));
        }
        if (is_inside && line[0] == '|') {
            ck_assert_msg(i < job_edge_count && strncmp(line, expected, strlen(expected)) == 0,
                          "expected '%s', found %s", expected, line);
            i++;
        }
        is_inside =
            strncmp(line, "|---|---|---|---|", 17) == 0 ? i == 0 : is_inside && line[0] == '|';
    }
    (void)fclose(doc);
    ck_assert_uint_eq(i, job_edge_count);
    ck_assert_str_eq(job_state_text(JOB_STATE_COUNT), "no state");
}
END_TEST

/* The lines "    from --> to: event" of the diagram. */
START_TEST(inv_S5_the_diagram_has_the_same_ways_between_states)
{
    char line[512];
    char expected[128];
    size_t i = 0;
    FILE *doc = open_guarantees();
    while (fgets(line, sizeof line, doc) != NULL) {
        if (strstr(line, "[*]") != NULL || strstr(line, " --> ") == NULL) {
            continue;
        }
        ck_assert_msg(i < job_edge_count, "there is no such way: %s", line);
        (void)snprintf(expected, sizeof expected, "    %s --> %s: %s\n",
                       job_state_text(job_edges[i].from), job_state_text(job_edges[i].to),
                       job_edges[i].event);
        ck_assert_str_eq(line, expected);
        i++;
    }
    (void)fclose(doc);
    ck_assert_uint_eq(i, job_edge_count);
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
    tcase_add_test(t, inv_S5_no_way_leads_out_of_a_final_state);
    tcase_add_test(t, inv_S5_the_document_has_the_same_ways_between_states);
    tcase_add_test(t, inv_S5_the_diagram_has_the_same_ways_between_states);
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
