/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of tables: in a pipe, and on terminals of several widths. */
#include "ctl/core/human.h"
#include "ctl/core/table_text.h"
#include "support/suite.h"

#include <check.h>
#include <locale.h>
#include <stdio.h>

#define NOW_US INT64_C(1767225600000000) /* 2026-01-01 00:00:00 UTC */

static const struct {
    double seconds;
    const char *text;
} durations[] = {{0, "0s"},         {0.25, "250ms"}, {0.9996, "1.0s"}, {4.24, "4.2s"},
                 {9.96, "10s"},     {59.4, "59s"},   {60, "1m00s"},    {192, "3m12s"},
                 {3599.7, "1h00m"}, {7500, "2h05m"}, {86400, "1d00h"}, {273600, "3d04h"},
                 {-3, "0s"}};

START_TEST(a_duration_is_short)
{
    char text[HUMAN_MAX];
    human_duration(durations[_i].seconds, text);
    ck_assert_str_eq(text, durations[_i].text);
}
END_TEST

START_TEST(a_time_is_an_age)
{
    char text[HUMAN_MAX];
    ck_assert_int_eq(human_time("2025-12-31T23:56:48.000Z", NOW_US, text), STATUS_OK);
    ck_assert_str_eq(text, "3m12s ago");
    ck_assert_int_eq(human_time("2026-01-01T00:05:00Z", NOW_US, text), STATUS_OK);
    ck_assert_str_eq(text, "in 5m00s");
    ck_assert_int_eq(human_time("2025-12-31T23:59:59.750Z", NOW_US, text), STATUS_OK);
    ck_assert_str_eq(text, "250ms ago");
    ck_assert_int_eq(human_time("soon", NOW_US, text), STATUS_INVALID);
    ck_assert_int_eq(human_time("2026-01-01T00:05:00+01", NOW_US, text), STATUS_INVALID);
    char iso[HUMAN_TIME_MAX];
    human_iso(NOW_US + 1500, iso);
    ck_assert_str_eq(iso, "2026-01-01T00:00:00.001500Z");
}
END_TEST

/* ---- tables ---- */

static const struct table_column columns[] = {
    {"id", CELL_NUMBER},  {"age_s", CELL_SECONDS},         {"due_at", CELL_TIME},
    {"jobs", CELL_COUNT}, {"host", CELL_TEXT | CELL_WIDE}, {"error", CELL_TEXT | CELL_LONG}};

static void fill(struct table *t)
{
    static const char *const rows[][6] = {
        {"7", "192.4", "2025-12-31T23:59:00.000Z", "~5000", "a-host-with-a-name",
         "the quick brown fox jumps over the lazy dog and dives into the grass"},
        {"123456", NULL, NULL, "3", NULL, "\x1b[31mred"}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ck_assert_int_eq(table_add(t, rows[i], NULL), STATUS_OK);
    }
}

/* Returns the text of one table; the caller frees it. */
static char *print(const struct table *t, bool is_terminal, size_t width)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    const struct table_style style = {.is_terminal = is_terminal, .width = width};
    const struct table *const tables[] = {t};
    ck_assert_int_eq(tables_print_text(tables, 1, &style, out, NULL), STATUS_OK);
    (void)fclose(out);
    return text;
}

static size_t widest_line(const char *text)
{
    size_t widest = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        widest = len > widest ? len : widest;
        text += len + (text[len] != '\0');
    }
    return widest;
}

START_TEST(to_a_pipe_nothing_is_cut_or_rounded)
{
    auto_table struct table t = TABLE("rows", columns);
    t.now_us = NOW_US;
    fill(&t);
    autofree char *text = print(&t, false, 80);
    ck_assert_str_eq(
        text, "    ID AGE S DUE AT                    JOBS HOST               ERROR\n"
              "     7 192.4 2025-12-31T23:59:00.000Z ~5000 a-host-with-a-name the quick brown fox "
              "jumps over the lazy dog and dives into the grass\n"
              "123456     - -                            3 -                  \\x1b[31mred\n");
}
END_TEST

START_TEST(a_wide_terminal_shows_all_for_people)
{
    auto_table struct table t = TABLE("rows", columns);
    t.now_us = NOW_US;
    fill(&t);
    autofree char *text = print(&t, true, 200);
    ck_assert_ptr_nonnull(strstr(text, "    ID   AGE DUE        JOBS HOST               ERROR"));
    ck_assert_ptr_nonnull(
        strstr(text, "     7 3m12s 1m00s ago ~5000 a-host-with-a-name the quick"));
    ck_assert_ptr_nonnull(strstr(text, "into the grass\n"));
}
END_TEST

START_TEST(a_narrow_terminal_cuts_what_may_be_cut_and_leaves_out_what_may_be_left_out)
{
    auto_table struct table t = TABLE("rows", columns);
    t.now_us = NOW_US;
    fill(&t);
    autofree char *eighty = print(&t, true, 80);
    ck_assert_uint_le(widest_line(eighty), 80 + strlen("…") - 1);
    ck_assert_ptr_nonnull(strstr(eighty, "a-host-with-a-name the quick brown fox jumps over …\n"));
    autofree char *seventy = print(&t, true, 70);
    ck_assert_ptr_null(strstr(seventy, "a-host-with-a-name"));
    ck_assert_ptr_nonnull(strstr(seventy, "the quick brown fox jumps over the lazy"));
    autofree char *fifty = print(&t, true, 50);
    ck_assert_uint_le(widest_line(fifty), 50 + strlen("…") - 1);
    ck_assert_ptr_null(strstr(fifty, "a-host"));
    ck_assert_ptr_nonnull(strstr(fifty, "123456"));
}
END_TEST

static const struct table_column prose_columns[] = {{"check", CELL_TEXT},
                                                    {"detail", CELL_TEXT | CELL_PROSE}};

START_TEST(prose_breaks_between_words_and_at_its_newlines)
{
    auto_table struct table t = TABLE("rows", prose_columns);
    const char *const row[] = {"redis", "one two three four five six seven\n→ überall"};
    ck_assert_int_eq(table_add(&t, row, NULL), STATUS_OK);
    autofree char *text = print(&t, true, 30);
    ck_assert_str_eq(text, "CHECK DETAIL\nredis one two three four five\n      six seven\n"
                           "      → überall\n");
    autofree char *piped = print(&t, false, 30);
    ck_assert_str_eq(piped, "CHECK DETAIL\nredis one two three four five six seven\n"
                            "      → überall\n");
    t.is_record = true;
    autofree char *record = print(&t, true, 34);
    ck_assert_str_eq(record, "check  redis\ndetail one two three four five six\n       seven\n"
                             "       → überall\n");
}
END_TEST

START_TEST(a_word_without_end_is_cut)
{
    auto_table struct table t = TABLE("rows", prose_columns);
    const char *const row[] = {"x",
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    ck_assert_int_eq(table_add(&t, row, NULL), STATUS_OK);
    autofree char *text = print(&t, true, 40);
    ck_assert_uint_le(widest_line(text), 40);
}
END_TEST

START_TEST(json_has_numbers_and_all_columns)
{
    auto_table struct table t = TABLE("rows", columns);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    const struct table *const tables[] = {&t};
    fill(&t);
    ck_assert_int_eq(tables_print(tables, 1, true, out, NULL), STATUS_OK);
    (void)fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "\"id\": 7, \"age_s\": 192.4, \"due_at\": "
                                       "\"2025-12-31T23:59:00.000Z\", \"jobs\": 5000, "));
    free(text);
}
END_TEST

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    Suite *suite = suite_create("ctl table");
    TCase *tests = tcase_create("table");
    tcase_add_loop_test(tests, a_duration_is_short, 0, ARRAY_COUNT(durations));
    tcase_add_test(tests, a_time_is_an_age);
    tcase_add_test(tests, to_a_pipe_nothing_is_cut_or_rounded);
    tcase_add_test(tests, a_wide_terminal_shows_all_for_people);
    tcase_add_test(tests,
                   a_narrow_terminal_cuts_what_may_be_cut_and_leaves_out_what_may_be_left_out);
    tcase_add_test(tests, prose_breaks_between_words_and_at_its_newlines);
    tcase_add_test(tests, a_word_without_end_is_cut);
    tcase_add_test(tests, json_has_numbers_and_all_columns);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
